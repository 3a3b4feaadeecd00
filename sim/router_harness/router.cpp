// Traffic for one verilated network of routers: sources with backlog or a set load, sinks that check
// content, order and credits of every flit. sim/router.py makes the top and `router_ports.h` beside
// it: PORTS, VCS, BUFFER, RESERVED, and the functions put(), credit_in(), get(), credit_out().
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vtop.h"
#include "verilated.h"

struct Flit {
    uint64_t data = 0;
    unsigned dest = 0, vc = 0;
    bool head = false, tail = false, valid = false;
};

#include "router_ports.h"

namespace {

void require(bool good, const char* what) {
    if (!good) throw std::runtime_error(what);
}

// Rule 3 of cores/router/contract.py.
struct Credits {
    int held[VCS] = {};
    bool may(int vc) const {
        int lent = 0;
        for (int h : held) lent += h > RESERVED ? h - RESERVED : 0;
        return held[vc] < RESERVED || lent < BUFFER - VCS * RESERVED;
    }
};

struct Packet {
    int dest;
    uint64_t made, number;
};

struct Source {
    Credits credits;
    std::deque<Packet> waiting[VCS];
    int sent[VCS] = {};  // flits of the first packet that have gone
    int turn = 0;
};

struct Sink {
    Credits credits;
    unsigned pulse = 0;
    int open[VCS];  // source of the packet that is open, or -1
    int index[VCS] = {};
    Sink() { for (int& o : open) o = -1; }
};

struct Bench {
    Vtop top;
    std::mt19937_64 rng;
    int length;
    double load;  // flits a port and cycle; negative: infinite backlog
    double back;  // probability that a flit's credit goes back in a cycle
    Source sources[PORTS];
    Sink sinks[PORTS];
    std::map<std::tuple<int, int, int>, uint64_t> made, seen;
    std::map<uint64_t, uint64_t> born;  // of packets under way
    uint64_t cycle = 0, from = 0, flits = 0, packets = 0, latency = 0;

    double chance() { return std::uniform_real_distribution<double>(0, 1)(rng); }

    void make(int p, int vc) {
        const int dest = rng() % PORTS;
        sources[p].waiting[vc].push_back({dest, cycle, made[{p, vc, dest}]++});
    }

    void generate(int p) {
        if (load < 0) {
            for (int v = 0; v < VCS; v++)
                while (sources[p].waiting[v].size() < 2) make(p, v);
        } else if (chance() < load / length) {
            make(p, rng() % VCS);
        }
    }

    // VCs take turns, flit by flit.
    Flit next(int p) {
        Source& s = sources[p];
        for (int k = 0; k < VCS; k++) {
            const int v = (s.turn + k) % VCS;
            if (s.waiting[v].empty() || !s.credits.may(v)) continue;
            s.turn = (v + 1) % VCS;
            s.credits.held[v]++;
            const Packet packet = s.waiting[v].front();
            const int k_flit = s.sent[v]++;
            const bool tail = s.sent[v] == length;
            Flit flit{name(p, v, packet.dest, packet.number) | uint64_t(k_flit),
                      unsigned(packet.dest), unsigned(v), k_flit == 0, tail, true};
            if (k_flit == 0) born[flit.data] = packet.made;
            if (tail) s.waiting[v].pop_front(), s.sent[v] = 0;
            return flit;
        }
        return {};
    }

    static uint64_t name(int p, int vc, int dest, uint64_t number) {
        return uint64_t(p) << 56 | uint64_t(vc) << 52 | uint64_t(dest) << 44 | number << 8;
    }

    void receive(int p, const Flit& flit) {
        Sink& s = sinks[p];
        const int v = flit.vc, source = flit.data >> 56, vc = flit.data >> 52 & 15;
        require(v < VCS && s.credits.may(v), "a flit without credit");
        s.credits.held[v]++;
        require(int(flit.data >> 44 & 255) == p, "a flit at the wrong port");
        require(flit.head == (s.open[v] < 0), "a head inside of a packet, or none before it");
        if (flit.head) s.open[v] = source << 8 | vc, s.index[v] = 0;
        require(s.open[v] == (source << 8 | vc), "packets interleave on a VC");
        uint64_t& number = seen[{source, vc, p}];
        require(flit.data == (name(source, vc, p, number) | uint64_t(s.index[v])),
                "content or order of a packet changed");
        s.index[v]++;
        require(flit.tail == (s.index[v] == length), "a packet of another length");
        if (flit.tail) {
            const uint64_t key = name(source, vc, p, number++);
            s.open[v] = -1;
            if (cycle >= from) packets++, latency += cycle - born[key];
            born.erase(key);
        }
        if (cycle >= from) flits++;
    }

    void step(bool generating) {
        for (int p = 0; p < PORTS; p++) {
            if (generating) generate(p);
            put(top, p, next(p));
            Sink& s = sinks[p];
            s.pulse = 0;
            for (int v = 0; v < VCS; v++)
                if (s.credits.held[v] && chance() < back) s.credits.held[v]--, s.pulse |= 1u << v;
            credit_in(top, p, s.pulse);
        }
        for (int p = 0; p < PORTS; p++) {  // of this cycle, counted from the next on
            const unsigned credit = credit_out(top, p);
            for (int v = 0; v < VCS; v++)
                if (credit >> v & 1)
                    require(sources[p].credits.held[v]-- > 0, "a credit that nobody is owed");
        }
        top.clk = 0, top.eval(), top.clk = 1, top.eval();
        cycle++;
        for (int p = 0; p < PORTS; p++)
            if (const Flit flit = get(top, p); flit.valid) receive(p, flit);
    }

    bool empty() const {
        if (!born.empty()) return false;
        for (int p = 0; p < PORTS; p++)
            for (int v = 0; v < VCS; v++)
                if (!sources[p].waiting[v].empty() || sources[p].credits.held[v] ||
                    sinks[p].credits.held[v])
                    return false;
        return true;
    }
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7) {
        fprintf(stderr, "usage: sim LENGTH LOAD BACK WARM_UP CYCLES SEED\n");
        return 2;
    }
    Bench bench;
    bench.length = atoi(argv[1]), bench.load = atof(argv[2]), bench.back = atof(argv[3]);
    bench.from = atoll(argv[4]), bench.rng.seed(atoll(argv[6]));
    const uint64_t cycles = atoll(argv[5]), end = bench.from + cycles;
    try {
        // The design's reset is a register: it ends a cycle after the port's.
        bench.top.rst = 1, bench.step(false), bench.top.rst = 0, bench.step(false);
        bench.cycle = 0;
        while (bench.cycle < end) bench.step(true);
        const double share = double(bench.flits) / double(cycles) / PORTS;
        const double wait = bench.packets ? double(bench.latency) / double(bench.packets) : 0;
        const unsigned long long packets = bench.packets;
        bench.from = ~uint64_t(0);
        while (!bench.empty()) {
            require(bench.cycle < end + 200 * end + 100000, "packets or credits do not come back");
            bench.step(false);
        }
        for (int k = 0; k < 4; k++) bench.step(false);
        require(bench.top.idle, "not idle when all is drained");
        require(bench.made == bench.seen || bench.made.size() >= bench.seen.size(), "lost packets");
        printf("{\"throughput\": %.5f, \"latency\": %.3f, \"packets\": %llu}\n", share, wait, packets);
    } catch (const std::exception& fault) {
        printf("{\"fault\": \"%s\", \"cycle\": %llu}\n", fault.what(),
               static_cast<unsigned long long>(bench.cycle));
        return 1;
    }
    return 0;
}
