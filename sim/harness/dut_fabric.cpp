// The fabric top: the Amaranth shell and a memory model. Frames are packet streams
// (cores/stream.py) as wide as the data path. `fabric_ports.h` is generated next to the Verilog
// (sim/fabric.py): TREBUCHET_WIDTH, TREBUCHET_OTHER, TREBUCHET_NOMINAL_HZ, TREBUCHET_COUNTERS(X).
#include "arp.h"
#include "fabric_ports.h"
#include "lanes.h"
#include "verilated_top.h"

namespace sim {

namespace {

constexpr size_t kLanes = TREBUCHET_WIDTH / 8;
constexpr size_t kMaxFrame = 65536;
constexpr size_t kWireOverhead = 24;  // preamble, FCS, gap between frames

// A frame on its way into a packet stream, beat by beat.
struct Source {
    Frame frame;
    size_t position = 0;
    bool busy = false;
    bool valid = false;  // the beat is on the port

    void start(Frame&& f) {
        frame = std::move(f);
        position = 0;
        busy = !frame.data.empty();
    }
    size_t size() const { return std::min(kLanes, frame.data.size() - position); }
    bool last() const { return position + kLanes >= frame.data.size(); }
    void advance() {
        valid = false;
        position += kLanes;
        busy = position < frame.data.size();
    }
};

// A frame coming out of a packet stream.
struct Sink {
    Bytes data;
    bool inside = false;
};

}  // namespace

#define PORT(prefix, name) top_->prefix##_##name

// Puts a beat of `source` on the port `prefix`; a valid beat stays until it was taken.
#define DRIVE(prefix, source)                                                                 \
    do {                                                                                      \
        if (source.busy && !source.valid && !stalls()) {                                      \
            uint8_t lanes[kLanes] = {};                                                       \
            memcpy(lanes, source.frame.data.data() + source.position, source.size());         \
            put_lanes(PORT(prefix, data), lanes);                                             \
            PORT(prefix, first) = source.position == 0;                                       \
            PORT(prefix, last) = source.last();                                               \
            PORT(prefix, empty) = uint8_t(kLanes - source.size());                            \
            PORT(prefix, error) = source.last() && source.frame.bad_fcs;                      \
            source.valid = true;                                                              \
        }                                                                                     \
        PORT(prefix, valid) = source.valid;                                                   \
    } while (0)

// Takes a beat from the port `prefix`; calls `done(Frame&&)` at the end of a frame.
#define TAKE(prefix, sink, done)                                                              \
    do {                                                                                      \
        if (PORT(prefix, valid) && PORT(prefix, ready)) {                                     \
            uint8_t lanes[kLanes];                                                            \
            get_lanes(PORT(prefix, data), lanes);                                             \
            if (bool(PORT(prefix, first)) == sink.inside) link_error(#prefix ": `first` is wrong"); \
            const bool last = PORT(prefix, last);                                             \
            if (!last && (PORT(prefix, empty) || PORT(prefix, error)))                        \
                link_error(#prefix ": `empty` or `error` without `last`");                    \
            sink.data.insert(sink.data.end(), lanes, lanes + kLanes - PORT(prefix, empty));   \
            sink.inside = !last;                                                              \
            if (sink.data.size() > kMaxFrame) {                                               \
                link_error(#prefix ": a frame does not end");                                 \
                sink.data.clear();                                                            \
            }                                                                                 \
            if (last) {                                                                       \
                done(Frame{std::move(sink.data), bool(PORT(prefix, error))});                 \
                sink.data = {};                                                               \
            }                                                                                 \
        }                                                                                     \
    } while (0)

// How long a wire of limited rate is busy with the frames so far.
class Wire {
  public:
    explicit Wire(double rate) : rate_(rate) {}
    bool free(Cycle now) const { return double(now) >= busy_until_; }
    void occupy(size_t bytes, Cycle now) {
        if (rate_ <= 0) return;
        busy_until_ = std::max(busy_until_, double(now)) + double(bytes + kWireOverhead) / rate_;
    }

  private:
    double rate_;
    double busy_until_ = 0;
};

class DutFabric : public VerilatedTop {
  public:
    explicit DutFabric(const Options& o)
        : VerilatedTop(o), rng_(o.seed, "stall"), stall_(o.stall), rx_wire_(o.line_rate),
          tx_wire_(o.line_rate),
          arp_(parse_mac(o.board_mac), parse_ip(o.board_ip)) {
        top_->rst = 1;
        for (int i = 0; i < 15; ++i) clock(false);
        top_->rst = 0;
        clock(false);  // the design's reset is a register: it ends a cycle later
    }

    bool can_send() const override { return !rx_.busy && rx_wire_.free(cycle_); }
    void send(Frame&& frame) override {
        rx_wire_.occupy(frame.data.size(), cycle_);
        rx_.start(std::move(frame));
    }
    void cycle(bool tick) override { clock(tick); }
    double nominal_hz() const override { return TREBUCHET_NOMINAL_HZ; }

    Json counters() const override {
        Json j;
#define ADD(label, port) j.add(label, uint64_t(top_->port));
        TREBUCHET_COUNTERS(ADD)
#undef ADD
        return j;
    }

  private:
    bool stalls() { return stall_ > 0 && rng_.chance(stall_); }

    void clock(bool tick) {
        top_->clk = 0;
        top_->tick = tick;
        DRIVE(rx, rx_);
        // The transmitter of a MAC holds few bytes: the next frame waits until the wire is free.
        top_->tx_ready = (tx_.inside || tx_wire_.free(cycle_)) && !stalls();
#if TREBUCHET_OTHER
        DRIVE(other_tx, other_tx_);
        top_->other_rx_ready = !stalls();
#endif
        settle();
        if (!top_->rst) transfer();
        // Ready was sampled: the inputs of the next cycle are set after this edge.
        top_->clk = 1;
        settle();
        if (rx_taken_) rx_.advance();
        if (other_tx_taken_) other_tx_.advance();
        rx_taken_ = other_tx_taken_ = false;
        ++cycle_;
    }

    void transfer() {
        rx_taken_ = rx_.valid && top_->rx_ready;
        TAKE(tx, tx_, frame_received);
#if TREBUCHET_OTHER
        other_tx_taken_ = other_tx_.valid && top_->other_tx_ready;
        TAKE(other_rx, other_rx_, other_received);
        if (!other_tx_.busy && !other_frames_.empty()) {
            other_tx_.start(std::move(other_frames_.front()));
            other_frames_.pop_front();
        }
#endif
    }

    void frame_received(Frame&& frame) {
        tx_wire_.occupy(frame.data.size(), cycle_);
        received.push_back(std::move(frame));
    }

    // What is not TCP for the board leaves the shell here; there is no LiteEth behind it in this top,
    // so the harness answers ARP and pings itself.
    void other_received(Frame&& frame) {
        Frame answer;
        if (!frame.bad_fcs && other_frames_.size() < 16 && arp_.answer(frame, answer))
            other_frames_.push_back(std::move(answer));
    }

    Rng rng_;
    double stall_;
    Wire rx_wire_, tx_wire_;
    Cycle cycle_ = 0;
    ArpResponder arp_;
    Source rx_, other_tx_;
    Sink tx_, other_rx_;
    std::deque<Frame> other_frames_;
    bool rx_taken_ = false, other_tx_taken_ = false;
};

std::unique_ptr<Dut> make_dut(const Options& options) { return std::make_unique<DutFabric>(options); }

}  // namespace sim
