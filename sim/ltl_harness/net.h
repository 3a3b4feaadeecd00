// Frames on their way: impairments, and a switch with queues, marking and PFC.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

using Cycle = uint64_t;
using Bytes = std::vector<uint8_t>;

struct Rng {  // splitmix64
    uint64_t state;
    explicit Rng(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1) {}
    uint64_t next() {
        uint64_t z = (state += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return z ^ (z >> 31);
    }
    bool chance(double p) { return p > 0 && (next() >> 11) * 0x1.0p-53 < p; }
    uint64_t below(uint64_t n) { return next() % n; }
};

struct Flow {
    unsigned source, sink, messages, vc, low, high;
};

struct Options {
    unsigned boards = 2, latency = 0, gap = 3, credit = 4;
    uint64_t seed = 1, queue = 1 << 20, kmin = 1 << 30, kmax = 1 << 30, xoff = 1 << 30,
             xon = 1 << 30, limit = 2000000, stop = 0, dead_at = 0, warm = 0;
    int dead = -1;
    bool direct = false, serial = false;
    double loss = 0, duplicate = 0, reorder = 0, corrupt = 0, stall = 0, pmax = 1;
    std::vector<Flow> flows;
    std::vector<std::pair<std::string, uint64_t>> sets;

    Options(int argc, char** argv) {
        for (int i = 1; i + 1 < argc; i += 2) set(argv[i], argv[i + 1]);
    }

  private:
    void set(const std::string& key, const char* value) {
        std::map<std::string, uint64_t*> wide{
            {"--seed", &seed}, {"--queue", &queue}, {"--kmin", &kmin}, {"--kmax", &kmax},
            {"--xoff", &xoff}, {"--xon", &xon}, {"--limit", &limit}, {"--stop", &stop},
            {"--dead-at", &dead_at}, {"--warm", &warm}};
        std::map<std::string, unsigned*> narrow{{"--boards", &boards}, {"--latency", &latency},
                                                {"--gap", &gap}, {"--credit", &credit}};
        std::map<std::string, double*> chances{
            {"--loss", &loss}, {"--duplicate", &duplicate}, {"--reorder", &reorder},
            {"--corrupt", &corrupt}, {"--stall", &stall}, {"--pmax", &pmax}};
        if (wide.count(key)) *wide[key] = strtoull(value, nullptr, 0);
        else if (narrow.count(key)) *narrow[key] = unsigned(strtoul(value, nullptr, 0));
        else if (chances.count(key)) *chances[key] = strtod(value, nullptr);
        else if (key == "--dead") dead = atoi(value);
        else if (key == "--direct") direct = atoi(value);
        else if (key == "--serial") serial = atoi(value);
        else if (key == "--flow") {
            Flow f;
            if (sscanf(value, "%u,%u,%u,%u,%u,%u", &f.source, &f.sink, &f.messages, &f.vc, &f.low,
                       &f.high) != 6)
                throw std::runtime_error("a flow must be six numbers");
            flows.push_back(f);
        } else if (key == "--set") {
            const char* equal = strchr(value, '=');
            if (!equal) throw std::runtime_error("a register must be NAME=VALUE");
            sets.emplace_back(std::string(value, equal), strtoull(equal + 1, nullptr, 0));
        } else throw std::runtime_error("unknown option " + key);
    }
};

struct Queued {
    Bytes bytes;
    unsigned from;
    Cycle ready;
    bool pfc = false;
};

// Output-queued, store and forward. Memory is accounted to the port a frame came in by, as IEEE
// 802.1Qbb does; a port's sender is paused by class 3.
class Switch {
  public:
    std::map<std::string, uint64_t> counts{{"overflow", 0}, {"marked", 0}, {"pfc", 0}, {"lost", 0},
                                           {"duplicated", 0}, {"reordered", 0}, {"corrupted", 0},
                                           {"peak", 0}, {"unknown", 0}};

    Switch(const Options& o)
        : options_(o), rng_(o.seed ^ 0x5EED), out_(o.boards), bytes_(o.boards), from_(o.boards),
          paused_(o.boards), refreshed_(o.boards) {}

    // The last beat of a frame has come in from a board.
    void put(unsigned from, Bytes frame, Cycle now) {
        if (rng_.chance(options_.loss)) { counts["lost"]++; return; }
        if (rng_.chance(options_.corrupt)) {
            counts["corrupted"]++;
            for (uint64_t k = 1 + rng_.below(4); k--;)
                frame[rng_.below(frame.size())] ^= 1 << rng_.below(8);
        }
        const unsigned to = frame[5] < options_.boards ? frame[5] : ~0u;
        if (to == ~0u) { counts["unknown"]++; return; }
        if (rng_.chance(options_.duplicate)) {
            counts["duplicated"]++;
            enqueue(from, to, frame, now);
        }
        enqueue(from, to, std::move(frame), now);
    }

    bool get(unsigned to, Cycle now, Bytes& frame) {
        auto& q = out_[to];
        if (q.empty() || q.front().ready > now) return false;
        Queued head = std::move(q.front());
        q.pop_front();
        frame = std::move(head.bytes);
        if (!head.pfc) {
            bytes_[to] -= frame.size();
            from_[head.from] -= frame.size();
            pfc(head.from, now);
        }
        return true;
    }

    bool empty() const {
        for (auto& q : out_)
            if (!q.empty()) return false;
        return true;
    }

  private:
    void enqueue(unsigned from, unsigned to, Bytes frame, Cycle now) {
        if (bytes_[to] + frame.size() > options_.queue) { counts["overflow"]++; return; }
        if ((frame[15] & 3) == 2 && marks(bytes_[to])) mark(frame);
        bytes_[to] += frame.size();
        from_[from] += frame.size();
        counts["peak"] = std::max<uint64_t>(counts["peak"], bytes_[to]);
        Queued item{std::move(frame), from, now + options_.latency};
        auto& q = out_[to];
        if (q.size() > 1 && rng_.chance(options_.reorder)) {
            counts["reordered"]++;
            const size_t back = 1 + rng_.below(std::min<size_t>(q.size() - 1, 8));
            item.ready = (q.end() - back)->ready;
            q.insert(q.end() - back, std::move(item));
        } else if (rng_.chance(options_.reorder)) {  // nothing to overtake: be overtaken
            counts["reordered"]++;
            item.ready += 50 + rng_.below(400);
            held_.push_back({std::move(item), to});
        } else {
            q.push_back(std::move(item));
        }
        pfc(from, now);
    }

  public:
    // Frames that others were to overtake join their queue late.
    void release(Cycle now) {
        for (size_t i = 0; i < held_.size();) {
            if (held_[i].first.ready > now) { ++i; continue; }
            out_[held_[i].second].push_back(std::move(held_[i].first));
            held_.erase(held_.begin() + long(i));
        }
    }
    bool holding() const { return !held_.empty(); }

  private:
    bool marks(uint64_t level) {
        if (level <= options_.kmin) return false;
        if (level >= options_.kmax) return true;
        const double share = double(level - options_.kmin) / double(options_.kmax - options_.kmin);
        return rng_.chance(share * options_.pmax);
    }
    void mark(Bytes& frame) {
        counts["marked"]++;
        frame[15] |= 3;
        frame[24] = frame[25] = 0;
        uint32_t sum = 0;
        for (int i = 14; i < 34; i += 2) sum += uint32_t(frame[i]) << 8 | frame[i + 1];
        sum = (sum & 0xFFFF) + (sum >> 16);
        sum = (sum & 0xFFFF) + (sum >> 16);
        frame[24] = uint8_t(~sum >> 8);
        frame[25] = uint8_t(~sum);
    }
    // XOFF with the longest pause, XON with none; an XOFF is repeated before it runs out.
    void pfc(unsigned board, Cycle now) {
        const uint64_t level = from_[board];
        const bool stop = paused_[board] ? level > options_.xon : level > options_.xoff;
        if (stop == paused_[board] && !(stop && now - refreshed_[board] > 100000)) return;
        paused_[board] = stop;
        refreshed_[board] = now;
        counts["pfc"]++;
        Bytes frame(64, 0);
        const uint8_t head[] = {1, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 0xFF, 0x88, 8, 1, 1, 0, 8};
        std::copy(std::begin(head), std::end(head), frame.begin());
        frame[18 + 6] = frame[18 + 7] = stop ? 0xFF : 0;
        auto& q = out_[board];  // before everything but what is being sent already
        q.push_front({std::move(frame), board, now, true});
    }

    const Options& options_;
    Rng rng_;
    std::vector<std::deque<Queued>> out_;
    std::vector<uint64_t> bytes_, from_;
    std::vector<bool> paused_;
    std::vector<Cycle> refreshed_;
    std::vector<std::pair<Queued, unsigned>> held_;
};
