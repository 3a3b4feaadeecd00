// What a batch asks of a role and what came of it: the two files that sim/roles.py writes and reads.
#pragma once

#include <cstdio>
#include <cstring>
#include <memory>

#include "../harness/common.h"

namespace sim {

// The fields of a job as they lie in the batch file: little-endian, without gaps.
struct __attribute__((packed)) JobRecord {
    uint8_t kind, first, source, ring_log2;
    uint32_t session, id, base, offset, length, result, room;
    uint32_t region;  // no two jobs of one region are under way together
    uint32_t wait;    // cycles to wait before the job is offered
};

struct __attribute__((packed)) WriteRecord {
    uint32_t number;  // of the register (role_ports.h)
    uint32_t wait;    // cycles to wait before
    uint8_t idle;     // wait until every job so far is answered
    uint64_t value;
};

struct Operation {
    bool job = false;
    JobRecord fields = {};
    Bytes operand;
    WriteRecord write = {};
};

struct Outcome {
    bool taken = false, ended = false, answered = false;
    Cycle taken_at = 0, answered_at = 0;
    uint8_t status = 0;
    uint32_t length = 0;
    Bytes result;
};

class BatchFile {
  public:
    explicit BatchFile(const std::string& path) : file_(fopen(path.c_str(), "rb"), fclose) {
        if (!file_) throw UserError("cannot open " + path);
    }
    std::vector<Operation> read() {
        std::vector<Operation> operations;
        for (int tag; (tag = fgetc(file_.get())) != EOF;) {
            Operation op;
            op.job = tag == 'J';
            if (op.job) {
                get(&op.fields, sizeof op.fields);
                op.operand.resize(op.fields.length);
                get(op.operand.data(), op.operand.size());
            } else {
                get(&op.write, sizeof op.write);
            }
            operations.push_back(std::move(op));
        }
        return operations;
    }

  private:
    void get(void* to, size_t size) {
        if (size && fread(to, size, 1, file_.get()) != 1) throw UserError("the batch is cut short");
    }
    std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

inline void write_outcomes(const std::string& path, const std::vector<Outcome>& outcomes,
                           const std::vector<uint64_t>& counters) {
    std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "wb"), fclose);
    if (!file) throw UserError("cannot write " + path);
    const auto put = [&](const void* from, size_t size) {
        if (size && fwrite(from, size, 1, file.get()) != 1) throw UserError("cannot write " + path);
    };
    for (const auto& o : outcomes) {
        const uint64_t words[] = {o.taken_at, o.answered_at, o.status, o.length, o.result.size()};
        put(words, sizeof words);
        put(o.result.data(), o.result.size());
    }
    put(counters.data(), 8 * counters.size());
    if (fflush(file.get())) throw UserError("cannot write " + path);
}

}  // namespace sim
