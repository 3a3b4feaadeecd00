// Many connections that exist and do nothing: opened before a load begins, and closed after it.
//
// Of each only what a peer must know is kept: a hundred thousand of them cost a few megabytes.
#pragma once

#include <deque>
#include <vector>

#include "options.h"
#include "tcp_frame.h"

namespace sim {

class Crowd {
  public:
    // Addresses from `first_ip` on, `kPorts` connections each, to TCP port `options.idle_port`.
    Crowd(const LoadOptions& options, Mac mac, uint32_t first_ip, Mac board_mac, uint32_t board_ip,
          uint64_t seed, std::deque<Bytes>& output);

    // Addresses that so many take.
    static uint32_t hosts(size_t members) { return uint32_t((members + kPorts - 1) / kPorts); }
    bool owns(uint32_t ip) const { return ip - first_ip_ < hosts(members_.size()); }
    void receive(const Segment& segment, uint64_t tick);
    void timer(uint64_t tick);
    // All are open.
    bool open() const { return open_ + over_ == members_.size(); }
    // From now on, in random order: a few bytes of data, then the end.
    void leave(uint64_t tick);
    bool gone() const { return over_ == members_.size(); }
    uint64_t resets() const { return resets_; }
    Json json() const;

  private:
    static constexpr uint32_t kPorts = 32768, kFirstPort = 16384;
    enum class State : uint8_t { Idle, SynSent, Open, Data, Fin, Over };
    struct Member {
        uint32_t seq = 0, rcv_nxt = 0, deadline = 0;
        State state = State::Idle;
        bool peer_fin = false;
    };

    void emit(size_t i, uint8_t flags, uint32_t seq, size_t size = 0);
    void repeat(size_t i);
    void next(uint64_t tick);
    void begin(size_t i, State state, uint64_t tick);
    void data(size_t i, const Segment& segment);
    void over(size_t i, uint64_t tick);

    const LoadOptions& options_;
    Mac mac_, board_mac_;
    uint32_t first_ip_, board_ip_;
    Rng rng_;
    std::deque<Bytes>& output_;
    std::vector<Member> members_;
    std::vector<uint32_t> order_;
    std::vector<uint32_t> busy_;  // what waits for an answer
    size_t next_ = 0, open_ = 0, over_ = 0;
    uint64_t resets_ = 0, repeats_ = 0;
    bool leaving_ = false;
};

}  // namespace sim
