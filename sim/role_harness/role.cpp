// Drives one verilated role (or a slot with one) with a batch of jobs, and checks the contract of
// cores/roles/contract.py and the stream rules at every port. sim/roles.py makes the top and the
// batch; `role_ports.h` is generated beside the Verilog: TREBUCHET_WIDTH, and the registers as
// TREBUCHET_SET(X) (writable: number, port, is a strobe, reset value) and TREBUCHET_GET(X) (readable: port).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

#include "../harness/lanes.h"
#include "Vtop.h"
#include "batch.h"
#include "memory.h"
#include "role_ports.h"
#include "verilated.h"

namespace sim {

namespace {

constexpr size_t kLanes = TREBUCHET_WIDTH / 8;
constexpr uint8_t kOk = 0;

struct Options {
    std::string batch, result;
    uint64_t seed = 1, limit = 200000, tail = 200;
    uint64_t scratch = 0, scratch_size = 0;
    double stall = 0;  // of the answer, and idle cycles before jobs
    MemoryOptions memory;
};

// Stream rule 2: what was offered and not taken stays as it was.
class Hold {
  public:
    explicit Hold(const char* name) : name_(name) {}
    void check(bool valid, bool ready, const std::array<uint64_t, 5>& payload) {
        if (held_ && !valid) throw Fault(std::string(name_) + ": valid fell before the transfer");
        if (held_ && payload != payload_)
            throw Fault(std::string(name_) + ": payload changed before the transfer");
        held_ = valid && !ready;
        if (held_) payload_ = payload;
    }

  private:
    const char* name_;
    bool held_ = false;
    std::array<uint64_t, 5> payload_ = {};
};

}  // namespace

class RoleBench : public Access {
  public:
    explicit RoleBench(const Options& o)
        : options_(o), rng_(o.seed, "role"), memory_(o.memory, o.seed, kLanes, *this),
          operations_(BatchFile(o.batch).read()), outcomes_(operations_.size()),
          top_(new Vtop(&context_)) {
        context_.randReset(0);
#define RESET(number, port, strobe, reset) top_->port = reset;
        TREBUCHET_SET(RESET)
#undef RESET
        top_->rst = 1;
        for (int i = 0; i < 15; ++i) clock();
        top_->rst = 0;
        clock();  // the design's reset is a register: it ends a cycle later
    }

    int run() {
        int code = 0;
        try {
            while (!finished()) cycle();
        } catch (const Fault& fault) {
            fprintf(stderr, "cycle %llu: %s\n", (unsigned long long)cycle_, fault.what());
            code = 1;
        }
        std::vector<uint64_t> counters{cycle_};
#define READ(port) counters.push_back(top_->port);
        TREBUCHET_GET(READ)
#undef READ
        std::vector<Outcome> jobs;
        for (size_t i = 0; i < operations_.size(); ++i)
            if (operations_[i].job) jobs.push_back(std::move(outcomes_[i]));
        write_outcomes(options_.result, jobs, counters);
        return code;
    }

    // Rule 2: operands of jobs that are taken and not answered; the role's own result and scratch.
    void read(uint64_t addr) override {
        if (scratch(addr)) return;
        for (size_t i : live_) {
            const JobRecord& j = operations_[i].fields;
            const uint64_t ring = uint64_t(1) << j.ring_log2;
            const uint64_t at = (addr - j.base - j.offset) & (ring - 1);
            const bool in_ring = addr >= j.base && addr < j.base + ring;
            if (in_ring && j.length && (at < j.length || at + kLanes > ring)) return;
            if (addr + kLanes > j.result && addr < uint64_t(j.result) + j.room) return;
        }
        throw Fault("reads " + hex(addr) + ", which is in no operand of a job under way");
    }

    // Rule 3.
    void write(uint64_t addr) override {
        if (scratch(addr)) return;
        for (size_t i : live_) {
            const JobRecord& j = operations_[i].fields;
            if (addr >= j.result && addr < uint64_t(j.result) + j.room) return;
        }
        throw Fault("writes " + hex(addr) + ", which is in no result of a job under way");
    }

  private:
    static std::string hex(uint64_t value) {
        char text[24];
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
        return text;
    }
    bool scratch(uint64_t addr) const {
        return addr >= options_.scratch && addr < options_.scratch + options_.scratch_size;
    }
    bool stalls() { return options_.stall > 0 && rng_.chance(options_.stall); }

    void clock() {
        top_->clk = 0;
        top_->eval();
        top_->clk = 1;
        top_->eval();
    }

    bool finished() {
        if (next_ < operations_.size() || !live_.empty() || ending_ || memory_.busy()) {
            quiet_ = cycle_;
            if (cycle_ - progress_ > options_.limit)
                throw Fault("no answer for " + std::to_string(options_.limit) + " cycles");
        }
        return cycle_ - quiet_ > options_.tail;  // nothing may come any more
    }

    void cycle() {
        top_->clk = 0;
        drive();
        top_->eval();
        transfer();
        top_->clk = 1;
        top_->eval();
        ++cycle_;
    }

    void drive() {
        memory_.offer(cycle_);
        top_->answer_ready = !stalls();
        top_->mem_cmd_ready = memory_.cmd_ready;
        top_->mem_wdata_ready = memory_.wdata_ready;
        top_->mem_rdata_valid = memory_.rdata_valid;
        top_->mem_rdata_tag = memory_.rdata_tag;
        top_->mem_rdata_last = memory_.rdata_last;
        put_lanes(top_->mem_rdata_data, memory_.rdata);
        top_->mem_wdone_valid = memory_.wdone_valid;
        top_->mem_wdone_tag = memory_.wdone_tag;
        clear_strobes();
        if (next_ < operations_.size() && !offered_) begin(operations_[next_]);
        top_->job_valid = offered_;
    }

    void clear_strobes() {
#define CLEAR(number, port, strobe, reset) \
    if (strobe) top_->port = 0;
        TREBUCHET_SET(CLEAR)
#undef CLEAR
    }

    void begin(const Operation& op) {
        const uint32_t wait = op.job ? op.fields.wait : op.write.wait;
        if (waited_ < wait) {
            ++waited_;
            return;
        }
        if (op.job) {
            if (regions_[op.fields.region] || stalls()) return;
            offer(op);
        } else if (!op.write.idle || live_.empty()) {
#define SET(number_, port, strobe, reset) \
    if (op.write.number == number_) top_->port = op.write.value;
            TREBUCHET_SET(SET)
#undef SET
            ++next_, waited_ = 0;
        }
    }

    void offer(const Operation& op) {
        const JobRecord& j = op.fields;
        const uint64_t mask = (uint64_t(1) << j.ring_log2) - 1;
        for (size_t i = 0; i < op.operand.size(); ++i)
            memory_[j.base + ((j.offset + i) & mask)] = op.operand[i];
        top_->job_kind = j.kind, top_->job_first = j.first;
        top_->job_source = j.source, top_->job_session = j.session, top_->job_id = j.id;
        top_->job_base = j.base, top_->job_offset = j.offset, top_->job_ring_log2 = j.ring_log2;
        top_->job_length = j.length, top_->job_result = j.result, top_->job_room = j.room;
        offered_ = true;
    }

    void transfer() {
        if (offered_ && top_->job_ready) {
            live_.push_back(next_);
            outcomes_[next_].taken = true;
            outcomes_[next_].taken_at = progress_ = cycle_;
            regions_[operations_[next_].fields.region] = true;
            offered_ = false;
            ++next_, waited_ = 0;
        }
        commands();
        answers();
    }

    void commands() {
        const Vtop& t = *top_;
        uint8_t lanes[kLanes];
        get_lanes(t.mem_wdata_data, lanes);
        uint8_t used[16] = {};  // bytes that are not strobed may change
        for (size_t lane = 0; lane < kLanes; ++lane)
            if (t.mem_wdata_strb >> lane & 1) used[lane] = lanes[lane];
        uint64_t words[2];
        memcpy(words, used, sizeof words);
        cmd_.check(t.mem_cmd_valid, t.mem_cmd_ready,
                   {t.mem_cmd_write, t.mem_cmd_addr, t.mem_cmd_beats, t.mem_cmd_tag});
        wdata_.check(t.mem_wdata_valid, t.mem_wdata_ready,
                     {words[0], words[1], t.mem_wdata_strb, t.mem_wdata_last});
        if (t.mem_wdata_valid && t.mem_wdata_ready)
            memory_.store(lanes, t.mem_wdata_strb, t.mem_wdata_last);
        if (t.mem_cmd_valid && t.mem_cmd_ready)
            memory_.command(t.mem_cmd_write, t.mem_cmd_addr, size_t(t.mem_cmd_beats) + 1,
                            t.mem_cmd_tag);
        if (t.mem_rdata_valid && t.mem_rdata_ready) memory_.rdata_taken();
        if (t.mem_wdone_valid && t.mem_wdone_ready) memory_.wdone_taken();
    }

    void answers() {
        const Vtop& t = *top_;
        answer_.check(t.answer_valid, t.answer_ready,
                      {t.answer_source, t.answer_session, t.answer_id, t.answer_status,
                       t.answer_length});
        if (!t.answer_valid) return;
        if (!ending_) end();
        if (!t.answer_ready) return;
        Outcome& o = outcomes_[ended_];
        const JobRecord& j = operations_[ended_].fields;
        o.status = t.answer_status, o.length = t.answer_length;
        o.answered_at = progress_ = cycle_;
        if (o.length && o.status != kOk) throw Fault("an answer that is not OK has a length");
        if (o.length > j.room) throw Fault("the result is longer than its room");
        for (uint32_t i = 0; i < o.length; ++i) o.result.push_back(memory_[j.result + i]);
        regions_[j.region] = false;
        ending_ = false;
    }

    // Rules 1 and 2, at the moment an answer is offered.
    void end() {
        const Vtop& t = *top_;
        const auto found = std::find_if(live_.begin(), live_.end(), [&](size_t i) {
            const JobRecord& j = operations_[i].fields;
            return j.source == t.answer_source && j.session == t.answer_session &&
                   j.id == t.answer_id;
        });
        if (found == live_.end()) throw Fault("an answer to no job that is under way (rule 1)");
        ended_ = *found;
        const JobRecord& j = operations_[ended_].fields;
        if (memory_.writing(j.result, j.room))
            throw Fault("answers before the last wdone of its result (rule 2)");
        live_.erase(found);
        ending_ = true;
    }

    Options options_;
    Rng rng_;
    RoleMemory memory_;
    std::vector<Operation> operations_;
    std::vector<Outcome> outcomes_;
    VerilatedContext context_;
    std::unique_ptr<Vtop> top_;
    Hold cmd_{"mem.cmd"}, wdata_{"mem.wdata"}, answer_{"answer"};
    std::vector<size_t> live_;  // taken, and no answer offered yet
    std::map<uint32_t, bool> regions_;
    size_t next_ = 0, ended_ = 0;
    bool offered_ = false, ending_ = false;
    uint32_t waited_ = 0;
    Cycle cycle_ = 0, progress_ = 0, quiet_ = 0;
};

namespace {

Options parse(int argc, char** argv) {
    Options o;
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    const auto number = [&](const char* name, auto& value) {
        if (const auto it = given.find(name); it != given.end())
            value = std::decay_t<decltype(value)>(atof(it->second.c_str()));
    };
    o.batch = given["--batch"], o.result = given["--result"];
    number("--seed", o.seed), number("--limit", o.limit), number("--tail", o.tail);
    number("--stall", o.stall), number("--scratch", o.scratch);
    number("--scratch-size", o.scratch_size), number("--memory", o.memory.bytes);
    number("--latency-low", o.memory.latency_low), number("--latency-high", o.memory.latency_high);
    number("--memory-stall", o.memory.stall), number("--outstanding", o.memory.outstanding);
    number("--reorder", o.memory.reorder);
    return o;
}

}  // namespace

}  // namespace sim

int main(int argc, char** argv) {
    try {
        return sim::RoleBench(sim::parse(argc, argv)).run();
    } catch (const sim::UserError& error) {
        fprintf(stderr, "%s\n", error.what());
        return 2;
    }
}
