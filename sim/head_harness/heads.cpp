// Sends request heads to a verilated HeadParser, with idle cycles and back-pressure of a seed, and
// writes what it reports of each. sim/heads.py makes the top and both files.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../harness/common.h"
#include "Vtop.h"
#include "verilated.h"

namespace {

using sim::Rng;

// Little-endian, without gaps, as in sim/heads.py.
struct __attribute__((packed)) Record {
    uint8_t verdict, head, close, http10, any_tag, tagged, path_offset, path_length;
    uint32_t path_crc;
    uint64_t tag;
    uint32_t length;
    uint32_t cycles;     // from the first byte to the verdict
    uint32_t path_size;  // of the path bytes, which follow
};

constexpr unsigned kCut = 2;
// Cycles that the last byte's verdict may take; beyond, the parser hangs.
constexpr uint64_t kPatience = 64;

class Bench {
  public:
    Bench(FILE* in, FILE* out, uint64_t seed, double stall)
        : in_(in), out_(out), rng_(seed, "heads"), stall_(uint64_t(stall * 65536)) {
        top_.rst = 1, step(), step(), top_.rst = 0, step();
    }

    // A head of the file: length and `end` as 32 bits each, and the bytes. False at the file's end.
    bool next() {
        uint32_t about[2];
        if (fread(about, sizeof about, 1, in_) != 1) return false;
        bytes_.resize(about[0]);
        if (fread(bytes_.data(), 1, bytes_.size(), in_) != bytes_.size() || bytes_.empty())
            throw std::runtime_error("the file of heads is cut");
        send(about[1]);
        if (about[1] != kCut) receive();
        return true;
    }

    uint64_t cycle() const { return cycle_; }

  private:
    bool stalls() { return stall_ && rng_.below(65536) < stall_; }

    void step() {
        top_.clk = 0, top_.eval();
        if (top_.path) {
            if (top_.new_path) path_.clear();
            path_.push_back(top_.path_byte);
        }
        top_.clk = 1, top_.eval();
        cycle_++;
    }

    void send(unsigned end) {
        path_.clear();
        for (size_t k = 0; k < bytes_.size(); k++) {
            while (stalls()) step();
            top_.i_valid = 1, top_.i_data = bytes_[k];
            top_.i_end = k + 1 == bytes_.size() ? end : 0;
            top_.clk = 0, top_.eval();
            for (uint64_t waited = 0; !top_.i_ready; waited++) {
                if (waited > kPatience) throw std::runtime_error("no byte is taken");
                step();
                top_.clk = 0, top_.eval();
            }
            if (top_.o_valid) throw std::runtime_error("a verdict before the head's end");
            if (k == 0) begun_ = cycle_;
            step();
            top_.i_valid = 0;
        }
    }

    void receive() {
        while (!top_.o_valid) {
            if (cycle_ - begun_ > 1000 * (bytes_.size() + kPatience))
                throw std::runtime_error("no verdict");
            step();
        }
        const uint32_t cycles = uint32_t(cycle_ - begun_);
        while (stalls()) step();
        if (!top_.o_valid) throw std::runtime_error("a verdict was withdrawn");
        const Record record{
            uint8_t(top_.o_verdict), uint8_t(top_.o_head), uint8_t(top_.o_close),
            uint8_t(top_.o_http10), uint8_t(top_.o_any_tag), uint8_t(top_.o_tagged),
            uint8_t(top_.o_path_offset), uint8_t(top_.o_path_length), uint32_t(top_.o_path_crc),
            uint64_t(top_.o_tag), uint32_t(top_.o_length), cycles, uint32_t(path_.size())};
        fwrite(&record, sizeof record, 1, out_);
        fwrite(path_.data(), 1, path_.size(), out_);
        top_.o_ready = 1, step(), top_.o_ready = 0;
    }

    Vtop top_;
    FILE *in_, *out_;
    Rng rng_;
    uint64_t stall_, cycle_ = 0, begun_ = 0;
    std::vector<uint8_t> bytes_, path_;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: sim HEADS RECORDS SEED STALL\n");
        return 2;
    }
    using File = std::unique_ptr<FILE, int (*)(FILE*)>;
    const File in(fopen(argv[1], "rb"), fclose), out(fopen(argv[2], "wb"), fclose);
    if (!in || !out) {
        fprintf(stderr, "cannot open %s and %s\n", argv[1], argv[2]);
        return 2;
    }
    Bench bench(in.get(), out.get(), strtoull(argv[3], nullptr, 10), atof(argv[4]));
    uint64_t heads = 0;
    try {
        for (; bench.next(); heads++) {
        }
    } catch (const std::exception& fault) {
        fprintf(stderr, "head %llu, cycle %llu: %s\n", (unsigned long long)heads,
                (unsigned long long)bench.cycle(), fault.what());
        return 1;
    }
    return 0;
}
