// VexRiscv alone, with a Wishbone memory on both buses that answers when it likes (tests/cpu_bench.py).
//
// Memory is 1 MiB from address 0, where the program begins. A store with the highest address bit set
// goes to the harness: to 0x80000000 it ends the run, its value the exit code; to 0x80000004 it notes
// value and cycle. Other addresses answer with a bus error.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "../../sim/harness/common.h"
#include "Vtop.h"
#include "verilated.h"

namespace sim {

namespace {

constexpr size_t kBytes = 1 << 20;
constexpr uint32_t kHarness = 0x80000000;
constexpr double kInterruptEnds = 0.05;  // in each cycle

struct Request {
    bool valid = false, write = false;
    uint32_t address = 0, data = 0, select = 0;
};

struct Reply {
    bool ack = false, error = false;
    uint32_t data = 0;
};

}  // namespace

class CpuBench {
  public:
    CpuBench(uint64_t seed, double stall, double interrupts)
        : rng_(seed, "cpu"), stall_(stall), interrupts_(interrupts), memory_(kBytes),
          top_(new Vtop(&context_)) {}

    int run(const std::string& image, const std::string& result, Cycle limit);

  private:
    void cycle();
    Reply answer(const Request& request, Request& before, const char* bus);
    void store(const Request& request);
    Request instruction() const;
    Request data() const;

    Rng rng_;
    double stall_, interrupts_;
    Bytes memory_;
    VerilatedContext context_;
    std::unique_ptr<Vtop> top_;
    Request instruction_before_, data_before_;
    Cycle cycle_ = 0;
    bool ended_ = false;
    uint32_t code_ = 0;
};

Request CpuBench::instruction() const {
    const Vtop& t = *top_;
    return {bool(t.iBusWishbone_CYC && t.iBusWishbone_STB), bool(t.iBusWishbone_WE),
            t.iBusWishbone_ADR << 2, 0, 15};
}

Request CpuBench::data() const {
    const Vtop& t = *top_;
    return {bool(t.dBusWishbone_CYC && t.dBusWishbone_STB), bool(t.dBusWishbone_WE),
            t.dBusWishbone_ADR << 2, t.dBusWishbone_DAT_MOSI, t.dBusWishbone_SEL};
}

// Wishbone B4, 3.1.3: what was asked for stays until it is answered.
Reply CpuBench::answer(const Request& r, Request& before, const char* bus) {
    const bool changed = !r.valid || r.write != before.write || r.address != before.address ||
                         (r.write && (r.data != before.data || r.select != before.select));
    if (before.valid && changed) throw UserError(std::string(bus) + ": a request changed");
    before = r;
    if (!r.valid || rng_.chance(stall_)) return {};
    before.valid = false;
    Reply reply;
    reply.ack = r.address < kBytes || (r.write && r.address >= kHarness);
    reply.error = !reply.ack;
    if (reply.ack && r.write) store(r);
    else if (reply.ack)
        for (int k = 0; k < 4; ++k) reply.data |= uint32_t(memory_[r.address + size_t(k)]) << 8 * k;
    return reply;
}

void CpuBench::store(const Request& r) {
    if (r.address == kHarness) ended_ = true, code_ = r.data;
    else if (r.address >= kHarness) printf("%u %llu\n", r.data, (unsigned long long)cycle_);
    else
        for (int k = 0; k < 4; ++k)
            if (r.select >> k & 1) memory_[r.address + size_t(k)] = uint8_t(r.data >> 8 * k);
}

void CpuBench::cycle() {
    Vtop& t = *top_;
    t.clk = 0;
    // A level: the core forgets an interrupt that goes while its pipeline runs empty.
    t.timerInterrupt = t.timerInterrupt ? !rng_.chance(kInterruptEnds) : rng_.chance(interrupts_);
    t.iBusWishbone_ACK = t.iBusWishbone_ERR = t.dBusWishbone_ACK = t.dBusWishbone_ERR = 0;
    t.eval();
    if (!t.reset) {
        const Reply i = answer(instruction(), instruction_before_, "instructions");
        const Reply d = answer(data(), data_before_, "data");
        t.iBusWishbone_ACK = i.ack, t.iBusWishbone_ERR = i.error, t.iBusWishbone_DAT_MISO = i.data;
        t.dBusWishbone_ACK = d.ack, t.dBusWishbone_ERR = d.error, t.dBusWishbone_DAT_MISO = d.data;
        t.eval();
    }
    t.clk = 1;
    t.eval();
    ++cycle_;
}

int CpuBench::run(const std::string& image, const std::string& result, Cycle limit) {
    std::ifstream in(image, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(in), {}};
    if (bytes.empty() || bytes.size() > kBytes) throw UserError("the image has a wrong size");
    std::copy(bytes.begin(), bytes.end(), memory_.begin());
    top_->externalResetVector = 0;
    top_->reset = 1;
    for (int k = 0; k < 4; ++k) cycle();
    top_->reset = 0;
    while (!ended_) {
        if (cycle_ >= limit) throw UserError("the program did not end");
        cycle();
    }
    std::ofstream out(result, std::ios::binary);
    out.write(reinterpret_cast<const char*>(memory_.data()), std::streamsize(memory_.size()));
    printf("end %u %llu\n", code_, (unsigned long long)cycle_);
    return 0;
}

}  // namespace sim

int main(int argc, char** argv) {
    std::map<std::string, std::string> given;
    for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
    try {
        sim::CpuBench bench(strtoull(given["--seed"].c_str(), nullptr, 10),
                            atof(given["--stall"].c_str()), atof(given["--interrupts"].c_str()));
        const sim::Cycle limit = strtoull(given["--limit"].c_str(), nullptr, 10);
        return bench.run(given["--image"], given["--result"], limit);
    } catch (const sim::UserError& error) {
        fprintf(stderr, "cpu: %s\n", error.what());
        return 2;
    }
}
