#include "crowd.h"

#include <algorithm>

namespace sim {

namespace {

constexpr size_t kAtOnce = 32;      // openings or closings under way
constexpr size_t kBytes = 24;       // of data before the end
constexpr uint8_t kData[kBytes] = {};

}  // namespace

Crowd::Crowd(const LoadOptions& options, Mac mac, uint32_t first_ip, Mac board_mac, uint32_t board_ip,
             uint64_t seed, std::deque<Bytes>& output)
    : options_(options), mac_(mac), board_mac_(board_mac), first_ip_(first_ip), board_ip_(board_ip),
      rng_(seed, "crowd"), output_(output), members_(options.idle) {
    for (uint32_t i = 0; i < options.idle; ++i) order_.push_back(i);
}

void Crowd::emit(size_t i, uint8_t flags, uint32_t seq, size_t size) {
    Segment s;
    s.source_mac = mac_;
    s.target_mac = board_mac_;
    s.source_ip = first_ip_ + uint32_t(i / kPorts);
    s.target_ip = board_ip_;
    s.source_port = uint16_t(kFirstPort + i % kPorts);
    s.target_port = options_.idle_port;
    s.seq = seq;
    s.ack = flags & kAck ? members_[i].rcv_nxt : 0;
    s.flags = flags;
    s.window = uint16_t(options_.window);
    s.mss = flags & kSyn ? uint16_t(options_.mss) : 0;
    s.payload = size ? kData : nullptr;
    s.size = size;
    output_.push_back(build_frame(s));
}

// What the member waits for an answer to.
void Crowd::repeat(size_t i) {
    const Member& m = members_[i];
    if (m.state == State::SynSent) emit(i, kSyn, m.seq);
    if (m.state == State::Data) emit(i, kAck | kPsh, m.seq, kBytes);
    if (m.state == State::Fin) emit(i, kAck | kFin, m.seq);
}

void Crowd::begin(size_t i, State state, uint64_t tick) {
    members_[i].state = state;
    members_[i].deadline = uint32_t(tick + options_.rto_ms);
    repeat(i);
}

// Some more begin to open, or to close.
void Crowd::next(uint64_t tick) {
    while (busy_.size() < kAtOnce && next_ < order_.size()) {
        const uint32_t i = order_[next_++];
        if (members_[i].state == State::Over) continue;
        busy_.push_back(i);
        if (!leaving_) members_[i].seq = uint32_t(rng_.next());
        begin(i, leaving_ ? State::Data : State::SynSent, tick);
    }
}

void Crowd::leave(uint64_t tick) {
    if (leaving_) return;
    leaving_ = true;
    for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng_.below(i)]);
    next_ = 0;
    next(tick);
}

void Crowd::timer(uint64_t tick) {
    for (uint32_t i : busy_) {
        if (uint32_t(tick) < members_[i].deadline) continue;
        members_[i].deadline = uint32_t(tick + options_.rto_ms);
        ++repeats_;
        repeat(i);
    }
    if (!leaving_ || next_) next(tick);
}

void Crowd::over(size_t i, uint64_t tick) {
    Member& m = members_[i];
    if (m.state == State::Open || m.state == State::Data || m.state == State::Fin) --open_;
    m.state = State::Over;
    ++over_;
    busy_.erase(std::remove(busy_.begin(), busy_.end(), uint32_t(i)), busy_.end());
    next(tick);
}

void Crowd::receive(const Segment& s, uint64_t tick) {
    const size_t i = size_t(s.target_ip - first_ip_) * kPorts + uint16_t(s.target_port - kFirstPort);
    if (i >= members_.size() || s.source_port != options_.idle_port) return;
    Member& m = members_[i];
    if (s.flags & kRst) {
        if (m.state == State::Over || m.state == State::Idle) return;
        ++resets_;
        return over(i, tick);
    }
    if (m.state == State::SynSent) {
        if (!(s.flags & kSyn) || s.ack != m.seq + 1) return;
        m.seq = s.ack;
        m.rcv_nxt = s.seq + 1;
        m.state = State::Open;
        ++open_;
        emit(i, kAck, m.seq);
        busy_.erase(std::remove(busy_.begin(), busy_.end(), uint32_t(i)), busy_.end());
        return next(tick);
    }
    if (m.state == State::Idle) return;
    if (s.flags & kFin && s.seq + uint32_t(s.size) == m.rcv_nxt) {
        ++m.rcv_nxt;
        m.peer_fin = true;
    }
    // Its FIN, once more, too; its probe; its SYN, if our ACK was lost.
    if (s.flags & (kFin | kSyn) || s.seq + 1 == m.rcv_nxt) emit(i, kAck, m.seq + (m.state == State::Fin));
    if (m.state == State::Data && s.ack == m.seq + kBytes) {
        m.seq = s.ack;
        begin(i, State::Fin, tick);
    } else if (m.state == State::Fin && s.ack == m.seq + 1 && m.peer_fin) {
        m.seq = s.ack;
        over(i, tick);
    }
}

Json Crowd::json() const {
    Json j;
    j.add("members", uint64_t(members_.size()));
    j.add("open", uint64_t(open_));
    j.add("over", uint64_t(over_));
    j.add("resets", resets_);
    j.add("repeats", repeats_);
    return j;
}

}  // namespace sim
