// Boards with an LTL engine each, messages between them, every one checked.
#include <cstdio>
#include <memory>

#include "Vtop.h"
#include "ltl_ports.h"
#include "net.h"
#include "verilated.h"

namespace {

constexpr unsigned kLanes = LTL_WIDTH / 8;

uint64_t word(const uint8_t* bytes, size_t count) {
    uint64_t value = 0;
    for (size_t i = 0; i < count && i < kLanes; ++i) value |= uint64_t(bytes[i]) << 8 * i;
    return value;
}

// What message number `number` of a flow is.
Bytes message(const Flow& f, unsigned index, uint64_t number) {
    Rng rng(index * 0x10001ull + number * 977);
    Bytes bytes(f.low + rng.below(f.high - f.low + 1));
    for (size_t i = 0; i < bytes.size(); i += 8) {
        const uint64_t v = rng.next();
        memcpy(&bytes[i], &v, std::min<size_t>(8, bytes.size() - i));
    }
    return bytes;
}

// Bytes to a stream of beats, with gaps.
struct Source {
    Bytes bytes;
    size_t at = 0;
    bool offered = false;
    unsigned wait = 0;
    bool busy() const { return at < bytes.size(); }
};

struct Board {
    VerilatedContext context;
    std::unique_ptr<Vtop> top;
    Source rx;
    Source send[LTL_VCS];
    unsigned send_flow[LTL_VCS] = {};
    unsigned tx_wait = 0;
    Bytes tx, got[LTL_VCS];
    std::vector<unsigned> to_send[LTL_VCS];  // flows, in turn
    size_t turn[LTL_VCS] = {};
    std::map<unsigned, unsigned> by_connection;  // receive connection -> flow
    bool direct_drop = false;
};

class Net {
  public:
    explicit Net(const Options& o)
        : o_(o), rng_(o.seed), switch_(o), sent_(o.flows.size()), delivered_(o.flows.size()),
          octets_(o.flows.size()), finished_(o.flows.size()) {
        for (unsigned k = 0; k < o.boards; ++k) {
            boards_.push_back(std::make_unique<Board>());
            Board& b = *boards_.back();
            b.context.randReset(0);
            b.top.reset(new Vtop(&b.context));
            b.top->mac = mac(k);
            b.top->ip = 0x0A000000 + k;
#define RESET(name, value) b.top->csr_##name = value;
#define X RESET
            LTL_WRITE(X)
#undef X
            b.top->csr_enable = 1;
            for (auto& [name, value] : o.sets) set(b, name, value);
            b.top->rst = 1;
        }
        for (int i = 0; i < 3; ++i) edge();
        for (auto& b : boards_) b->top->rst = 0;
        edge();  // the design's reset is a register: it ends a cycle later
        for (int i = 0; i < int(LTL_CONNECTIONS) + 300; ++i) edge();
        open_all();
    }

    void run() {
        Cycle progress = 0;
        uint64_t last = 0;
        while (!finished()) {
            cycle();
            uint64_t total = failures_.size();
            for (auto d : delivered_) total += d;
            if (total != last) last = total, progress = now_;
            if (now_ - progress > o_.limit) throw std::runtime_error("no progress: " + state());
            if (o_.stop && now_ >= o_.stop) break;
        }
        if (o_.stop == 0)
            for (auto& b : boards_)
                if (o_.dead < 0 && b->top->csr_stored)
                    throw std::runtime_error("the store is not empty");
    }

    void report() {
        printf("{\"cycles\": %llu, ", (unsigned long long)now_);
        list("delivered", delivered_);
        list("octets", octets_);
        list("finished", finished_);
        list("rtts", rtts_);
        printf("\"failures\": [");
        for (size_t i = 0; i < failures_.size(); ++i)
            printf("%s[%llu, %llu, %llu]", i ? ", " : "", (unsigned long long)failures_[i][0],
                   (unsigned long long)failures_[i][1], (unsigned long long)failures_[i][2]);
        printf("], \"switch\": {");
        const char* comma = "";
        for (auto& [name, value] : switch_.counts) {
            printf("%s\"%s\": %llu", comma, name.c_str(), (unsigned long long)value);
            comma = ", ";
        }
        printf("}, \"counters\": [");
        for (size_t k = 0; k < boards_.size(); ++k) {
            printf("%s{", k ? ", " : "");
            comma = "";
#define X(name) \
    printf("%s\"%s\": %llu", comma, #name, (unsigned long long)boards_[k]->top->csr_##name), \
        comma = ", ";
            LTL_READ(X)
#undef X
            printf("}");
        }
        printf("]}\n");
    }

  private:
    static uint64_t mac(unsigned k) { return uint64_t(k) << 40 | 0x02; }

    static void list(const char* name, const std::vector<uint64_t>& values) {
        printf("\"%s\": [", name);
        for (size_t i = 0; i < values.size(); ++i)
            printf("%s%llu", i ? ", " : "", (unsigned long long)values[i]);
        printf("], ");
    }

    std::string state() {
        std::string text = "cycle " + std::to_string(now_);
        for (size_t i = 0; i < o_.flows.size() && i < 8; ++i)
            text += " flow " + std::to_string(i) + ": sent " + std::to_string(sent_[i]) +
                    " delivered " + std::to_string(delivered_[i]);
        for (auto& b : boards_)
            text += " stored " + std::to_string(b->top->csr_stored) + " timeouts " +
                    std::to_string(b->top->csr_timeouts);
        return text;
    }

    void set(Board& b, const std::string& name, uint64_t value) {
        bool found = false;
#define X(reg, reset) \
    if (name == #reg) b.top->csr_##reg = value, found = true;
        LTL_WRITE(X)
#undef X
        if (!found) throw std::runtime_error("no register " + name);
    }

    void edge() {
        for (auto& b : boards_) b->top->clk = 0, b->top->eval();
        for (auto& b : boards_) b->top->clk = 1, b->top->eval();
    }

    void command(Board& b, unsigned index, bool receive, unsigned peer, unsigned remote,
                 unsigned vc, unsigned flow) {
        auto& t = *b.top;
        t.csr_peer_mac = mac(peer);
        t.csr_peer_ip = 0x0A000000 + peer;
        t.csr_peer_connection = remote;
        t.csr_incarnation = 0x100 + flow;
        t.csr_vc = vc;
        t.csr_credit = o_.credit;
        t.csr_command = 3 | receive << 2 | index << 16;
        edge();
        t.csr_command = 0;
        do edge(); while (t.csr_busy);
    }

    // Flow i has number i at both ends, turned round at the receiver so that they differ.
    void open_all() {
        for (unsigned i = 0; i < o_.flows.size(); ++i) {
            const Flow& f = o_.flows[i];
            Board &a = *boards_[f.source], &b = *boards_[f.sink];
            const unsigned other = LTL_CONNECTIONS - 1 - i;
            command(b, other, true, f.source, i, f.vc, i);
            command(a, i, false, f.sink, other, f.vc, i);
            b.by_connection[other] = i;
            a.to_send[f.vc].push_back(i);
        }
    }

    bool alive(unsigned k) const { return int(k) != o_.dead || now_ < o_.dead_at; }

    bool finished() {
        for (unsigned i = 0; i < o_.flows.size(); ++i)
            if (delivered_[i] < o_.flows[i].messages && !failed(i)) return quiet_ = 0, false;
        for (auto& b : boards_)
            if (b->top->csr_stored && o_.dead < 0) return quiet_ = 0, false;
        if (switch_.holding()) return false;
        return ++quiet_ > 500;
    }

    bool failed(unsigned flow) const {
        for (auto& f : failures_)
            if (f[0] == o_.flows[flow].source && f[1] == flow) return true;
        return false;
    }

    void cycle() {
        for (unsigned k = 0; k < boards_.size(); ++k) drive(k);
        for (auto& b : boards_) b->top->clk = 0, b->top->eval();
        for (unsigned k = 0; k < boards_.size(); ++k) transfer(k);
        for (auto& b : boards_) b->top->clk = 1, b->top->eval();
        switch_.release(now_);
        ++now_;
    }

    // --- inputs ---

    void drive(unsigned k) {
        Board& b = *boards_[k];
        auto& t = *b.top;
        t.tx_ready = b.tx_wait == 0;
        if (b.tx_wait) --b.tx_wait;
        if (!o_.direct) {
            if (!b.rx.busy() && b.rx.wait) --b.rx.wait;
            if (!b.rx.busy() && !b.rx.wait) {
                Bytes frame;
                if (switch_.get(k, now_, frame) && alive(k)) b.rx = {frame, 0, false, 0};
            }
            b.rx.offered = b.rx.busy();
            t.rx_valid = b.rx.offered;
            if (b.rx.offered) {
                const size_t left = b.rx.bytes.size() - b.rx.at;
                t.rx_data = word(&b.rx.bytes[b.rx.at], left);
                t.rx_first = b.rx.at == 0;
                t.rx_last = left <= kLanes;
                t.rx_empty = left < kLanes ? kLanes - left : 0;
                t.rx_error = 0;
            }
        } else {
            Delayed& d = delayed_[k];
            t.rx_valid = 0;
            if (!d.queue.empty() && d.queue.front().at <= now_) {
                const Beat& beat = d.queue.front();
                t.rx_valid = 1;
                t.rx_data = beat.data, t.rx_first = beat.first, t.rx_last = beat.last;
                t.rx_empty = 0, t.rx_error = 0;
            }
        }
        t.csr_failure_next = (t.csr_failure >> 16) & 1;
        if (t.csr_failure_next) failures_.push_back({k, t.csr_failure & 0xFFFF, now_});
#define X(v) drive_send(b, v, t.send##v##_valid, t.send##v##_data, t.send##v##_first, \
                        t.send##v##_last, t.send##v##_empty, t.send##v##_connection);  \
    t.deliver##v##_ready = !rng_.chance(o_.stall);
        LTL_CHANNELS(X)
#undef X
    }

    template <class V, class D, class F, class L, class E, class C>
    void drive_send(Board& b, unsigned v, V& valid, D& data, F& first, L& last, E& empty, C& conn) {
        Source& s = b.send[v];
        if (!s.busy()) next_message(b, v);
        if (s.busy() && !s.offered) s.offered = !rng_.chance(o_.stall);
        valid = s.offered && s.busy();
        if (!valid) return;
        const size_t left = s.bytes.size() - s.at;
        data = word(&s.bytes[s.at], left);
        first = s.at == 0;
        last = left <= kLanes;
        empty = left < kLanes ? kLanes - left : 0;
        conn = b.send_flow[v];
    }

    void next_message(Board& b, unsigned v) {
        auto& flows = b.to_send[v];
        if (o_.serial && outstanding_) return;
        for (size_t n = 0; n < flows.size(); ++n) {
            const unsigned i = flows[b.turn[v]++ % flows.size()];
            if (sent_[i] >= o_.flows[i].messages || failed(i)) continue;
            b.send[v] = {message(o_.flows[i], i, sent_[i]), 0, false, 0};
            b.send_flow[v] = i;
            ++sent_[i];
            if (o_.serial) ++outstanding_;
            return;
        }
    }

    // --- outputs ---

    void transfer(unsigned k) {
        Board& b = *boards_[k];
        auto& t = *b.top;
        if (t.rx_valid && !t.rx_ready) throw std::runtime_error("rx is not ready");
        if (o_.direct) {
            if (t.rx_valid) delayed_[k].queue.pop_front();
        } else if (b.rx.offered) {
            b.rx.at += kLanes;
            if (!b.rx.busy()) b.rx.wait = o_.gap + 1;
        }
        if (t.tx_valid && t.tx_ready) take_tx(k);
#define X(v)                                                                     \
    if (t.send##v##_valid && t.send##v##_ready) b.send[v].at += kLanes, b.send[v].offered = false; \
    if (t.deliver##v##_valid && t.deliver##v##_ready)                            \
        take(b, v, t.deliver##v##_data, t.deliver##v##_first, t.deliver##v##_last, \
             t.deliver##v##_empty, t.deliver##v##_error, t.deliver##v##_connection);
        LTL_CHANNELS(X)
#undef X
        if (k == 0 && t.started) started_ = now_;
        if (k == 0 && t.acked) {
            if (o_.serial && outstanding_) rtts_.push_back(now_ - started_);
            outstanding_ = 0;
        }
    }

    void take_tx(unsigned k) {
        Board& b = *boards_[k];
        auto& t = *b.top;
        if (t.tx_last) b.tx_wait = o_.gap;
        if (o_.direct) {
            if (t.tx_first) b.direct_drop = rng_.chance(o_.loss) || !alive(k) || !alive(1 - k);
            if (t.tx_first && b.direct_drop) switch_.counts["lost"]++;
            if (!b.direct_drop)
                delayed_[1 - k].queue.push_back(
                    {t.tx_data, bool(t.tx_first), bool(t.tx_last), now_ + 1 + o_.latency});
            return;
        }
        if (bool(t.tx_first) != b.tx.empty()) throw std::runtime_error("tx.first is wrong");
        for (unsigned i = 0; i < kLanes - (t.tx_last ? t.tx_empty : 0); ++i)
            b.tx.push_back(uint8_t(t.tx_data >> 8 * i));
        if (t.tx_last) {
            if (alive(k)) switch_.put(k, std::move(b.tx), now_);
            b.tx.clear();
        }
    }

    void take(Board& b, unsigned v, uint64_t data, bool first, bool last, unsigned empty, bool error,
              unsigned connection) {
        Bytes& got = b.got[v];
        if (first != got.empty() || error) throw std::runtime_error("deliver: wrong first or error");
        for (unsigned i = 0; i < kLanes - (last ? empty : 0); ++i) got.push_back(uint8_t(data >> 8 * i));
        if (!last) return;
        auto found = b.by_connection.find(connection);
        if (found == b.by_connection.end()) throw std::runtime_error("message of no connection");
        const unsigned i = found->second;
        if (o_.flows[i].vc != v) throw std::runtime_error("message at the wrong output");
        if (got != message(o_.flows[i], i, delivered_[i]))
            throw std::runtime_error("flow " + std::to_string(i) + " message " +
                                     std::to_string(delivered_[i]) + " is wrong, cycle " +
                                     std::to_string(now_));
        ++delivered_[i];
        if (now_ >= o_.warm) octets_[i] += got.size();
        finished_[i] = now_;
        got.clear();
    }

    struct Beat {
        uint64_t data;
        bool first, last;
        Cycle at;
    };
    struct Delayed {
        std::deque<Beat> queue;
    };

    const Options& o_;
    Rng rng_;
    Switch switch_;
    std::vector<std::unique_ptr<Board>> boards_;
    std::vector<uint64_t> sent_, delivered_, octets_, finished_, rtts_;
    std::vector<std::vector<uint64_t>> failures_;
    Delayed delayed_[2];
    Cycle now_ = 0, started_ = 0;
    unsigned quiet_ = 0, outstanding_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    try {
        Options options(argc, argv);
        Net net(options);
        net.run();
        net.report();
        return 0;
    } catch (const std::exception& e) {
        fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
