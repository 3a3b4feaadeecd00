// One verilated SD host and a card: commands from the standard input, results as JSON lines.
// sim/sd.py makes the top and `sd_ports.h` beside it: WIDTH (bits of the port), LINES.
//
//   r LBA COUNT, w LBA COUNT   read, write: data are compared with the card's file
//   short, long, torn LBA COUNT  write; the packet is a sector and a beat shorter, a beat longer, or ends with `error`
//   wait CYCLES, ready         let time pass; wait until a card can be used
//   out, in                    remove the card, insert it
//   out_in CYCLES              remove it after so many cycles of the next command
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "Vtop.h"
#include "sd_card.h"
#include "sd_ports.h"
#include "verilated.h"

namespace {

using sim::SdCard;
using sim::SdOptions;

constexpr unsigned kBytes = WIDTH / 8;

// The card's file, in memory while the test runs.
struct Loaded : sim::SdContents {
    std::vector<uint8_t>& bytes_;

    explicit Loaded(std::vector<uint8_t>& bytes) : bytes_(bytes) {}
    uint64_t sectors() const override { return bytes_.size() / 512; }
    bool read(uint64_t sector, uint8_t* bytes) override { return memcpy(bytes, &bytes_[sector * 512], 512), true; }
    bool write(uint64_t sector, const uint8_t* bytes) override { return memcpy(&bytes_[sector * 512], bytes, 512), true; }
};

struct Bench {
    Vtop top;
    Loaded contents;
    SdCard card;
    std::vector<uint8_t>& file;
    std::mt19937_64 rng;
    unsigned stall;  // per mille of cycles in which a stream is held
    bool detect_pin, cmd_i = true;
    uint8_t dat_i = 15;
    uint64_t cycle = 0, limit, remove_at = 0;
    std::vector<uint8_t> got;
    bool over = false, bad = false, first = true;
    bool held = false;
    uint64_t held_data = 0;

    Bench(const SdOptions& o, std::vector<uint8_t>& bytes, uint64_t seed)
        : contents(bytes), card(o, contents, seed), file(bytes), rng(seed ^ 0x5d) {}

    void require(bool good, const char* what) const {
        if (!good) throw std::runtime_error(what);
    }
    bool pass() { return !stall || rng() % 1000 >= stall; }

    // The inputs are set; one clock cycle.
    void step() {
        require(++cycle < limit, "cycle limit: the host does not end");
        if (remove_at && cycle >= remove_at) remove_at = 0, card.remove();
        top.detect = detect_pin ? card.present() : 1;
        top.cmd_i = cmd_i, top.dat_i = dat_i & ((1 << LINES) - 1);
        top.rdata_ready = pass();
        top.eval();
        const auto c = card.out();
        const bool cmd = top.cmd_oe ? top.cmd_o : c.cmd_oe ? c.cmd : true;
        uint8_t dat = 15;
        const uint8_t host = top.dat_oe ? (1 << LINES) - 1 : 0;
        dat = uint8_t((dat & ~c.dat_oe) | (c.dat & c.dat_oe));
        dat = uint8_t((dat & ~host) | (top.dat_o & host));
        card.step(top.clk_o, cmd, dat, top.cmd_oe, top.dat_oe);
        collect();
        cmd_i = cmd, dat_i = dat;
        top.clk = 1, top.eval(), top.clk = 0, top.eval();
    }

    void collect() {
        if (held) require(top.rdata_valid && uint64_t(top.rdata_data) == held_data, "rdata changed while it waited");
        held = top.rdata_valid && !top.rdata_ready;
        held_data = top.rdata_data;
        if (!top.rdata_valid || !top.rdata_ready) return;
        require(!over, "data after the end of a packet");
        require(top.rdata_first == first, "`first` is wrong");
        require(top.rdata_empty == 0, "`empty` is not 0");
        require(top.rdata_last || !top.rdata_error, "`error` without `last`");
        first = top.rdata_last, over = top.rdata_last, bad = top.rdata_error;
        if (bad) return;
        for (unsigned i = 0; i < kBytes; ++i) got.push_back(uint8_t(uint64_t(top.rdata_data) >> 8 * i));
    }

    enum Packet { kWhole, kShort, kLong, kTorn };

    void command(bool write, uint64_t lba, unsigned count, Packet packet = kWhole) {
        const unsigned tag = unsigned(rng() % 4);
        const uint64_t began = cycle, clocks = card.clocks();
        got.clear(), over = bad = false;
        std::vector<uint8_t> data(size_t(count) * 512);
        if (packet == kShort) data.resize(data.size() - 512 - kBytes);
        if (packet == kLong) data.resize(data.size() + kBytes);
        const std::vector<uint8_t> before = packet == kWhole ? std::vector<uint8_t>() : file;
        if (write) for (uint8_t& byte : data) byte = uint8_t(rng());
        top.cmd_write = write, top.cmd_lba = lba, top.cmd_count = count, top.cmd_tag = tag;
        bool asked = false, done = false;
        unsigned status = 0;
        size_t at = 0;
        const size_t end = write ? data.size() : 0;
        bool offer = false;
        while (!done) {
            top.cmd_valid = !asked;
            offer = offer || pass();
            top.wdata_valid = offer && at < end;
            if (top.wdata_valid) {
                uint64_t word = 0;
                for (unsigned i = 0; i < kBytes; ++i) word |= uint64_t(data[at + i]) << 8 * i;
                top.wdata_data = word, top.wdata_first = at == 0, top.wdata_last = at + kBytes == end;
                top.wdata_error = packet == kTorn && top.wdata_last;
            }
            top.done_ready = pass();
            top.cmd_i = cmd_i, top.dat_i = dat_i & ((1 << LINES) - 1);
            top.eval();
            const bool taken = top.cmd_valid && top.cmd_ready, moved = top.wdata_valid && top.wdata_ready;
            done = top.done_valid && top.done_ready;
            if (top.done_valid) {
                require(asked && (write ? at == end : over), "`done` before the data have ended");
                require(top.done_tag == tag, "`done` with another tag");
                status = top.done_status;
            }
            step();
            asked = asked || taken;
            if (moved) at += kBytes, offer = false;
        }
        top.cmd_valid = top.wdata_valid = top.done_ready = 0;
        if (packet == kWhole) check(write, lba, count, status, data);
        else check_odd(lba, count, status, before);
        printf("{\"op\": \"%c\", \"status\": %u, \"bytes\": %zu, \"cycles\": %llu, \"clocks\": %llu}\n", write ? 'w' : 'r',
               status, got.size(), (unsigned long long)(cycle - began), (unsigned long long)(card.clocks() - clocks));
    }

    void check(bool write, uint64_t lba, unsigned count, unsigned status, const std::vector<uint8_t>& data) {
        if (write) {
            if (status == 0) require(!memcmp(&file[lba * 512], data.data(), data.size()), "written data differ");
            return;
        }
        require((status != 0) == bad, "`error` and status differ");
        require(status != 0 || got.size() == size_t(count) * 512, "length of a good read");
        require(got.size() <= size_t(count) * 512, "more data than asked for");
        if (!got.empty()) require(!memcmp(&file[lba * 512], got.data(), got.size()), "read data differ from the card's");
    }

    // No more sectors than the command's were written; of a short packet none after its end.
    void check_odd(uint64_t lba, unsigned count, unsigned status, const std::vector<uint8_t>& before) {
        require(status == 2, "a packet of a wrong length, or with `error`, was not reported as DATA");
        for (size_t at = 0; at < file.size(); ++at)
            require(file[at] == before[at] || (at / 512 >= lba && at / 512 < lba + count), "a sector outside was written");
    }

    void run(const std::string& line) {
        std::istringstream in(line);
        std::string op;
        uint64_t a = 0, b = 0;
        in >> op >> a >> b;
        const Packet packet = op == "short" ? kShort : op == "long" ? kLong : op == "torn" ? kTorn : kWhole;
        if (op == "r" || op == "w" || packet) command(op != "r", a, unsigned(b), packet);
        else if (op == "wait") while (a--) step();
        else if (op == "out") card.remove();
        else if (op == "in") card.insert();
        else if (op == "out_in") remove_at = cycle + a;
        else if (op == "ready") {
            while (!top.ready) step();
            printf("{\"op\": \"ready\", \"sectors\": %llu, \"speed\": \"%s\"}\n", (unsigned long long)top.sectors, card.speed());
        } else throw std::runtime_error("unknown operation " + op);
        require(!top.ready || top.sectors == file.size() / 512, "`sectors` is wrong");
    }
};

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, uint64_t> given;
    if (argc < 2) return fprintf(stderr, "usage: sim IMAGE [name=value]...\n"), 2;
    for (int i = 2; i < argc; ++i) {
        const char* equals = strchr(argv[i], '=');
        if (!equals) return fprintf(stderr, "option '%s' must be name=value\n", argv[i]), 2;
        given[std::string(argv[i], size_t(equals - argv[i]))] = strtoull(equals + 1, nullptr, 0);
    }
    const auto take = [&](const char* name, uint64_t otherwise) {
        const auto at = given.find(name);
        if (at == given.end()) return otherwise;
        const uint64_t value = at->second;
        given.erase(at);
        return value;
    };
    std::vector<uint8_t> file;
    FILE* image = fopen(argv[1], "rb");
    if (!image) return fprintf(stderr, "cannot read %s\n", argv[1]), 2;
    for (uint8_t part[65536]; const size_t n = fread(part, 1, sizeof part, image);) file.insert(file.end(), part, part + n);
    fclose(image);
    SdOptions o;
    o.high_capacity = take("high_capacity", 1), o.version_2 = take("version_2", 1), o.high_speed = take("high_speed", 1);
    o.access = unsigned(take("access", 100)), o.gap = unsigned(take("gap", 2)), o.busy = unsigned(take("busy", 20));
    o.response = unsigned(take("response", 8)), o.early = take("early", 0), o.polls = unsigned(take("polls", 3));
    o.delay = unsigned(take("delay", 0)), o.slow_cycles = unsigned(take("slow_cycles", 2));
    o.fast_cycles = unsigned(take("fast_cycles", 2)), o.high_cycles = unsigned(take("high_cycles", 2));
    o.bad_block = unsigned(take("bad_block", 0)), o.bad_end = unsigned(take("bad_end", 0));
    o.lost_response = unsigned(take("lost_response", 0)), o.bad_response = unsigned(take("bad_response", 0));
    o.refused = unsigned(take("refused", 0)), o.late_error = unsigned(take("late_error", 0));
    o.dead_blocks = take("dead_blocks", 0), o.removal = take("removal", 0);
    Bench bench(o, file, take("seed", 1));
    bench.stall = unsigned(take("stall", 0)), bench.detect_pin = take("detect", 1), bench.limit = take("limit", 20000000);
    Vtop& top = bench.top;
    top.csr_clocks = unsigned(take("clocks", 0x100)), top.csr_timeout = unsigned(take("timeout", 200));
    if (!given.empty()) return fprintf(stderr, "unknown option '%s'\n", given.begin()->first.c_str()), 2;
    try {
        top.rst = 1, bench.step(), top.rst = 0, bench.step();
        for (std::string line; std::getline(std::cin, line);) bench.run(line);
        printf("{\"op\": \"end\", \"cycles\": %llu, \"repeats\": %u}\n", (unsigned long long)bench.cycle, unsigned(top.csr_state >> 8));
    } catch (const std::exception& fault) {
        printf("{\"fault\": \"%s\", \"cycle\": %llu}\n", fault.what(), (unsigned long long)bench.cycle);
        return 1;
    }
    if (FILE* back = fopen(argv[1], "wb")) fwrite(file.data(), 1, file.size(), back), fclose(back);
    return 0;
}
