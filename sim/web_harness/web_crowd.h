// Many clients that each begin a request and never end it: all connect, then a byte at a time, in turn.
#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "options.h"
#include "tcp_frame.h"

namespace sim {

struct SlowOptions {
    uint32_t members = 0;
    uint32_t gap = 1000;     // cycles from one byte to the next, of whichever member
    uint32_t connect = 0;    // the same while they connect, send bytes `before`, and close; 0: `gap`
    uint32_t before = ~0u;   // bytes that are sent before others begin; ~0: one of each member
};

class SlowCrowd {
  public:
    // Connections from `first_ip` on to TCP port `options.port`.
    SlowCrowd(const LoadOptions& options, const SlowOptions& slow, Mac mac, uint32_t first_ip,
              Mac board_mac, uint32_t board_ip, uint64_t seed, std::deque<Bytes>& output)
        : options_(options), slow_(slow), mac_(mac), board_mac_(board_mac), first_ip_(first_ip),
          board_ip_(board_ip), rng_(seed, "slow"), output_(output), members_(slow.members) {}

    bool owns(uint32_t ip) const { return ip - first_ip_ < (members_.size() + kPorts - 1) / kPorts; }
    // All are connected, and have sent as many bytes as they should before others begin.
    bool begun() const {
        const uint64_t before = slow_.before == ~0u ? members_.size() : slow_.before;
        return gone() || (connected() && bytes_ >= before);
    }
    // Cycles to the next turn.
    uint32_t gap() const { return slow_.connect && (leaving_ || !begun()) ? slow_.connect : slow_.gap; }
    bool gone() const { return over_ == members_.size(); }
    uint64_t resets() const { return resets_; }

    // The next one has its turn: it connects, sends one byte more, or repeats what was lost.
    void turn() {
        for (size_t tries = 0; tries < members_.size(); ++tries) {
            const size_t i = next_;
            next_ = (next_ + 1) % members_.size();
            if (members_[i].state == State::Over) continue;
            if (members_[i].state != State::Open || connected()) return act(i);
        }
    }

    // From now on all close, as quickly as they have turns.
    void leave() { leaving_ = true; }

    void receive(const Segment& s) {
        const size_t i = size_t(s.target_ip - first_ip_) * kPorts + uint16_t(s.target_port - kFirstPort);
        if (i >= members_.size()) return;
        Member& m = members_[i];
        if (m.state == State::Over || m.state == State::Idle) {
            if (s.flags & kFin) emit(i, kAck, m.next);
            return;
        }
        if (s.flags & kRst) {
            ++resets_;
            return over(m);
        }
        if (s.flags & kSyn) {
            if (m.state == State::SynSent) {
                m.una = m.next = m.first = s.ack;
                m.rcv_nxt = s.seq + 1;
                m.state = State::Open;
                ++connected_;
            }
            return emit(i, kAck, m.next);
        }
        if (int32_t(s.ack - m.una) > 0 && int32_t(m.next - s.ack) >= 0) m.una = s.ack;
        if (s.seq == m.rcv_nxt && (s.size || s.flags & kFin)) take(m, s);
        if (s.size || s.flags & kFin) {
            if (m.peer_fin && !m.fin) close(i);
            else emit(i, kAck, m.next);
        }
        if (m.peer_fin && m.fin && m.una == m.next) over(m);
    }

    Json json() const {
        Json j;
        j.add("members", uint64_t(members_.size()));
        j.add("over", uint64_t(over_));
        j.add("late", late_);
        j.add("resets", resets_);
        j.add("wrong", wrong_);
        j.add("bytes", bytes_);
        return j;
    }
    uint64_t wrong() const { return wrong_; }

  private:
    static constexpr uint32_t kPorts = 32768, kFirstPort = 16384;
    enum class State : uint8_t { Idle, SynSent, Open, Over };
    struct Member {
        uint32_t first = 0, una = 0, next = 0, rcv_nxt = 0;
        State state = State::Idle;
        bool fin = false, peer_fin = false;
    };

    bool connected() const { return connected_ >= members_.size(); }

    void act(size_t i) {
        Member& m = members_[i];
        if (m.state == State::Idle || m.state == State::SynSent) {
            if (m.state == State::Idle) m.next = uint32_t(rng_.next());
            m.state = State::SynSent;
            return emit(i, kSyn, m.next);
        }
        if (leaving_ || m.fin) return close(i);
        ++m.next;
        ++bytes_;
        send(i, 0);
    }

    // All that is not acknowledged, with FIN if so.
    void send(size_t i, uint8_t fin) {
        const Member& m = members_[i];
        Bytes data;
        for (uint32_t at = m.una; at != m.next - (fin ? 1 : 0); ++at) data.push_back(byte(at - m.first));
        emit(i, uint8_t(kAck | (data.empty() ? 0 : kPsh) | fin), m.una, data.data(), data.size());
    }

    void close(size_t i) {
        Member& m = members_[i];
        if (!m.fin) m.fin = true, ++m.next;
        send(i, m.una == m.next ? 0 : kFin);
    }

    static uint8_t byte(uint32_t at) {
        static const char kBegin[] = "GET /64/0000.bin HTTP/1.1\r\nX-Slow: ";
        return at < sizeof kBegin - 1 ? uint8_t(kBegin[at]) : 'x';
    }

    // The board says nothing but that the request is late, and closes.
    void take(Member& m, const Segment& s) {
        static const char kLate[] = "HTTP/1.1 408 ";
        m.rcv_nxt += uint32_t(s.size);
        if (s.size) {
            const bool right = s.size >= sizeof kLate - 1 && !memcmp(s.payload, kLate, sizeof kLate - 1);
            right ? ++late_ : ++wrong_;
        }
        if (s.flags & kFin) ++m.rcv_nxt, m.peer_fin = true;
    }

    void over(Member& m) {
        if (m.state == State::SynSent) ++connected_;  // it was refused
        m.state = State::Over;
        ++over_;
    }

    void emit(size_t i, uint8_t flags, uint32_t seq, const uint8_t* payload = nullptr, size_t size = 0) {
        Segment s;
        s.source_mac = mac_;
        s.target_mac = board_mac_;
        s.source_ip = first_ip_ + uint32_t(i / kPorts);
        s.target_ip = board_ip_;
        s.source_port = uint16_t(kFirstPort + i % kPorts);
        s.target_port = options_.port;
        s.seq = seq;
        s.ack = flags & kAck ? members_[i].rcv_nxt : 0;
        s.flags = flags;
        s.window = uint16_t(options_.window);
        s.mss = flags & kSyn ? uint16_t(options_.mss) : 0;
        s.payload = payload;
        s.size = size;
        output_.push_back(build_frame(s));
    }

    const LoadOptions& options_;
    SlowOptions slow_;
    Mac mac_, board_mac_;
    uint32_t first_ip_, board_ip_;
    Rng rng_;
    std::deque<Bytes>& output_;
    std::vector<Member> members_;
    size_t next_ = 0, connected_ = 0, over_ = 0;
    uint64_t late_ = 0, resets_ = 0, wrong_ = 0, bytes_ = 0;
    bool leaving_ = false;
};

}  // namespace sim
