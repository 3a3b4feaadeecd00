// A minimal TCP client, one connection at a time: active open, go-back-N retransmission with back-off,
// fast retransmit, in-order receive with a real (and sometimes closed) window, orderly close.
//
// Time is counted in ticks (milliseconds of protocol time), so that it runs at the board's pace.
#pragma once

#include <deque>

#include "options.h"
#include "tcp_frame.h"

namespace sim {

enum class Job { Http, Echo, Discard, Messages };
enum class Outcome { Running, Ok, Reset, Timeout, Mismatch, Aborted };

struct ClientCounters {
    uint64_t retransmissions = 0, fast_retransmissions = 0, out_of_order = 0, probes = 0;
    uint64_t pauses = 0;
    // Payload bytes that the peer has acknowledged, and that have come in order.
    uint64_t acknowledged = 0, delivered = 0;
    // What a correct peer never does, whatever the link does.
    uint64_t bad_ack = 0, beyond_window = 0, beyond_fin = 0;
};

class TcpClient {
  public:
    TcpClient(const LoadOptions& options, Mac mac, uint32_t ip, Mac board_mac, uint32_t board_ip,
              uint64_t seed, std::deque<Bytes>& output);

    // Opens the next connection and runs `job` with `out` on it; http compares with `expected` unless
    // that is empty.
    void start(Job job, Bytes&& out, const std::string* expected, Cycle now, uint64_t tick);
    void receive(const Segment& segment, uint64_t tick);
    void timer(uint64_t tick);
    // Messages: the answer to the last one is there; the caller says at once what comes next, so that
    // the acknowledgement rides on it: another message, or the end of the connection.
    bool answered() const { return answered_; }
    void next(Bytes&& out, std::string&& answer, Cycle now, uint64_t tick);
    void close(uint64_t tick);
    // Messages: the connection ends with a RST behind the first `bytes` of what is being sent.
    void abort_after(size_t bytes) { abort_after_ = bytes; }
    // From the `segments`-th segment of this connection on the client is dead and silent.
    void vanish_after(uint32_t segments) { lives_ = segments; }

    Outcome outcome() const { return outcome_; }
    bool vanished() const { return lives_ == 0; }
    const std::string& answer() const { return answer_; }
    Cycle started() const { return started_; }
    size_t sent_bytes() const { return out_.size(); }
    size_t received_bytes() const { return received_; }
    ClientCounters counters;
    std::string describe() const;

  private:
    struct Past {  // a connection that is over: its peer may still repeat its FIN
        uint16_t port;
        uint32_t seq, ack;
        bool aborted;
    };
    enum class State { Idle, SynSent, Open };

    void emit(uint8_t flags, uint32_t seq, const uint8_t* payload = nullptr, size_t size = 0,
              uint16_t mss = 0);
    void receive_past(const Segment& segment);
    void receive_syn_ack(const Segment& segment, uint64_t tick);
    void receive_ack(const Segment& segment, uint64_t tick);
    bool receive_data(const Segment& segment, uint64_t tick);
    bool consume(const uint8_t* data, size_t size);
    void send_more(uint64_t tick);
    void send_segment(uint32_t seq, size_t most);
    void arm(uint64_t tick);
    void finish(Outcome outcome);

    bool complete() const;
    bool wants_close() const;
    uint32_t fin_seq() const { return first_ + uint32_t(out_.size()); }
    uint16_t window() const { return uint16_t(options_.window - unread_); }

    const LoadOptions& options_;
    Mac mac_, board_mac_;
    uint32_t ip_, board_ip_;
    Rng rng_;
    std::deque<Bytes>& output_;
    std::deque<Past> past_;

    State state_ = State::Idle;
    Outcome outcome_ = Outcome::Ok;
    Job job_ = Job::Http;
    uint16_t port_;
    Bytes out_;
    const std::string* expected_ = nullptr;
    std::string answer_, due_;  // what came; messages: what must come
    bool answered_ = false, closing_ = false;
    size_t abort_after_ = ~size_t(0);
    Cycle started_ = 0;
    uint32_t lives_ = ~0u;

    uint32_t first_ = 0;  // sequence number of out_[0]
    uint32_t iss_ = 0, snd_una_ = 0, snd_nxt_ = 0, snd_max_ = 0;
    uint32_t peer_window_ = 0, peer_mss_ = 536, duplicates_ = 0;
    uint32_t rcv_nxt_ = 0, unread_ = 0, advertised_ = 0;
    size_t received_ = 0;
    bool peer_fin_ = false;
    uint64_t deadline_ = 0, resume_ = 0, rto_ = 0;
    uint32_t retries_ = 0;
};

}  // namespace sim
