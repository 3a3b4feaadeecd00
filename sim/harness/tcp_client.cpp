#include "tcp_client.h"

#include <algorithm>
#include <cstring>

namespace sim {

namespace {

constexpr uint32_t kMaxRetries = 12;
constexpr uint32_t kMaxProbes = 60;
constexpr uint64_t kMaxRto = 1000;  // ticks
constexpr uint64_t kMaxPause = 300; // ticks
constexpr size_t kPastConnections = 32;
constexpr uint16_t kFirstPort = 1024;

// a < b modulo 2**32.
bool before(uint32_t a, uint32_t b) { return int32_t(a - b) < 0; }

}  // namespace

TcpClient::TcpClient(const LoadOptions& options, Mac mac, uint32_t ip, Mac board_mac,
                     uint32_t board_ip, uint64_t seed, std::deque<Bytes>& output)
    : options_(options), mac_(mac), board_mac_(board_mac), ip_(ip), board_ip_(board_ip),
      rng_(seed, "client"), output_(output),
      port_(uint16_t(rng_.between(kFirstPort, 65535))) {}

void TcpClient::start(Job job, Bytes&& out, const std::string* expected, Cycle now, uint64_t tick) {
    job_ = job;
    out_ = std::move(out);
    expected_ = expected;
    answer_.clear();
    answered_ = closing_ = false;
    abort_after_ = ~size_t(0);
    port_ = port_ == 65535 ? kFirstPort : uint16_t(port_ + 1);
    iss_ = uint32_t(rng_.next());
    snd_una_ = iss_;
    first_ = snd_nxt_ = snd_max_ = iss_ + 1;
    peer_window_ = unread_ = duplicates_ = retries_ = 0;
    received_ = 0;
    rcv_nxt_ = advertised_ = 0;
    peer_fin_ = false;
    resume_ = 0;
    lives_ = ~0u;
    started_ = now;
    state_ = State::SynSent;
    outcome_ = Outcome::Running;
    rto_ = options_.rto_ms;
    arm(tick);
    emit(kSyn, iss_, nullptr, 0, uint16_t(options_.mss));
}

void TcpClient::next(Bytes&& out, std::string&& answer, Cycle now, uint64_t tick) {
    first_ = snd_nxt_;
    out_ = std::move(out);
    due_ = std::move(answer);
    answer_.clear();
    received_ = 0;
    answered_ = false;
    started_ = now;
    if (state_ != State::Open) return;
    // The answer acknowledges the request: all of it had to be there.
    if (snd_una_ != snd_nxt_) finish(Outcome::Mismatch);
    else send_more(tick);
}

void TcpClient::close(uint64_t tick) {
    answered_ = false;
    closing_ = true;
    send_more(tick);
}

void TcpClient::emit(uint8_t flags, uint32_t seq, const uint8_t* payload, size_t size, uint16_t mss) {
    Segment s;
    s.source_mac = mac_;
    s.target_mac = board_mac_;
    s.source_ip = ip_;
    s.target_ip = board_ip_;
    s.source_port = port_;
    s.target_port = options_.port;
    s.seq = seq;
    s.ack = flags & kAck ? rcv_nxt_ : 0;
    s.flags = flags;
    s.window = window();
    s.mss = mss;
    s.payload = payload;
    s.size = size;
    // The right edge of the window never moves back.
    if (flags & kAck && before(advertised_, rcv_nxt_ + window())) advertised_ = rcv_nxt_ + window();
    output_.push_back(build_frame(s));
}

void TcpClient::arm(uint64_t tick) { deadline_ = tick + rto_; }

void TcpClient::finish(Outcome outcome) {
    const bool aborted = outcome == Outcome::Aborted;
    if (aborted || outcome == Outcome::Mismatch || outcome == Outcome::Timeout)
        emit(kRst | kAck, snd_max_);
    if (past_.size() == kPastConnections) past_.pop_front();
    past_.push_back({port_, snd_max_, rcv_nxt_, aborted});
    state_ = State::Idle;
    outcome_ = outcome;
}

// TIME-WAIT, as far as a client needs it: a repeated FIN is acknowledged again. What was aborted does
// not exist: whoever still acknowledges it has not got the RST.
void TcpClient::receive_past(const Segment& s) {
    if (s.flags & kRst) return;
    for (const Past& p : past_) {
        if (p.port != s.target_port || !(p.aborted || s.flags & (kFin | kSyn))) continue;
        const uint16_t port = port_;
        const uint32_t ack = rcv_nxt_;
        const uint32_t edge = advertised_;
        port_ = p.port;
        rcv_nxt_ = p.ack;
        if (p.aborted) emit(kRst, s.ack);
        else emit(kAck, p.seq);
        port_ = port;
        rcv_nxt_ = ack;
        advertised_ = edge;
        return;
    }
}

void TcpClient::receive(const Segment& s, uint64_t tick) {
    if (s.source_port != options_.port) return;
    if (s.target_port != port_ || state_ == State::Idle) {
        receive_past(s);
        return;
    }
    if (lives_ != ~0u && (lives_ == 0 || --lives_ == 0)) return;
    if (state_ == State::SynSent) {
        receive_syn_ack(s, tick);
        return;
    }
    if (s.flags & kRst) {
        if (s.seq == rcv_nxt_) finish(Outcome::Reset);
        return;
    }
    if (s.flags & kSyn) {  // our ACK was lost: SYN+ACK again
        emit(kAck, snd_nxt_);
        return;
    }
    if (!(s.flags & kAck)) return;
    receive_ack(s, tick);
    const bool answer_now = receive_data(s, tick);
    if (state_ == State::Idle) return;
    const size_t queued = output_.size();
    send_more(tick);
    // The peer has acknowledged our FIN and we its: over.
    const bool closed = peer_fin_ && snd_una_ == fin_seq() + 1;
    const bool carried = answered_ || (output_.size() != queued && !closed);
    if (answer_now && !carried) emit(kAck, snd_nxt_);
    if (closed) finish(Outcome::Ok);
}

void TcpClient::receive_syn_ack(const Segment& s, uint64_t tick) {
    const bool acceptable = s.flags & kAck && s.ack == iss_ + 1;
    if (s.flags & kRst) {
        if (acceptable) finish(Outcome::Reset);
        return;
    }
    if (!acceptable || !(s.flags & kSyn)) return;
    rcv_nxt_ = s.seq + 1;
    advertised_ = rcv_nxt_;
    snd_una_ = s.ack;
    peer_window_ = s.window;
    peer_mss_ = s.mss ? s.mss : 536;
    state_ = State::Open;
    retries_ = 0;
    rto_ = options_.rto_ms;
    arm(tick);
    emit(kAck, snd_nxt_);
    send_more(tick);
}

void TcpClient::receive_ack(const Segment& s, uint64_t tick) {
    if (before(snd_max_, s.ack)) {
        ++counters.bad_ack;
        return;
    }
    if (before(s.ack, snd_una_)) return;
    if (s.ack == snd_una_) {
        const bool duplicate = !s.size && s.window == peer_window_ && snd_max_ != snd_una_;
        peer_window_ = s.window;
        if (duplicate && ++duplicates_ == 3) {
            ++counters.fast_retransmissions;
            send_segment(snd_una_, options_.mss);
        }
        return;
    }
    peer_window_ = s.window;
    counters.acknowledged += s.ack - snd_una_ - (s.ack == fin_seq() + 1);
    snd_una_ = s.ack;
    if (before(snd_nxt_, snd_una_)) snd_nxt_ = snd_una_;
    duplicates_ = retries_ = 0;
    rto_ = options_.rto_ms;
    arm(tick);
}

// Returns whether the segment must be answered with an ACK at once.
bool TcpClient::receive_data(const Segment& s, uint64_t tick) {
    const bool fin = s.flags & kFin;
    if (!s.size && !fin) return s.seq + 1 == rcv_nxt_;  // keep-alive probe
    const uint32_t end = s.seq + uint32_t(s.size);
    // One byte past the window is a legal probe of a closed one.
    if (before(advertised_ + 1, end)) ++counters.beyond_window;
    if (before(rcv_nxt_, s.seq)) {
        ++counters.out_of_order;
        return true;
    }
    if (before(end + fin, rcv_nxt_) || (end + fin == rcv_nxt_)) return true;  // old
    if (peer_fin_) {
        ++counters.beyond_fin;
        return true;
    }
    const uint32_t skip = rcv_nxt_ - s.seq;
    const uint32_t size = uint32_t(s.size);
    const uint32_t fresh = std::min(size - std::min(skip, size), uint32_t(window()));
    if (fresh) {
        rcv_nxt_ += fresh;
        counters.delivered += fresh;
        if (!consume(s.payload + skip, fresh)) {
            finish(Outcome::Mismatch);
            return false;
        }
        if (!resume_ && rng_.chance(options_.pause)) {
            ++counters.pauses;
            resume_ = tick + rng_.between(1, kMaxPause);
        }
        if (resume_) unread_ += fresh;
        if (snd_una_ == snd_max_) retries_ = 0, arm(tick);
    }
    if (fin && rcv_nxt_ == end) {
        ++rcv_nxt_;
        peer_fin_ = true;
        if (!complete()) finish(Outcome::Mismatch);
    }
    return true;
}

// Whether all that was due has come when the peer closes.
bool TcpClient::complete() const {
    switch (job_) {
        case Job::Http: return !expected_ || answer_ == *expected_;
        case Job::Echo: return received_ == out_.size();
        case Job::Messages: return closing_;
        default: return received_ == 0;
    }
}

// Checks bytes in the order of the stream.
bool TcpClient::consume(const uint8_t* data, size_t size) {
    const size_t at = received_;
    received_ += size;
    if (job_ == Job::Echo)
        return received_ <= out_.size() && !memcmp(data, out_.data() + at, size);
    if (job_ == Job::Discard) return false;
    if (job_ == Job::Messages) {
        answered_ = received_ == due_.size();
        return received_ <= due_.size() && !memcmp(data, due_.data() + at, size);
    }
    answer_.append(reinterpret_cast<const char*>(data), size);
    if (!expected_) return true;
    return received_ <= expected_->size() && !memcmp(data, expected_->data() + at, size);
}

bool TcpClient::wants_close() const {
    if (job_ == Job::Http) return peer_fin_;
    if (job_ == Job::Echo) return received_ == out_.size() || peer_fin_;
    if (job_ == Job::Messages) return closing_ || peer_fin_;
    return true;
}

void TcpClient::send_segment(uint32_t seq, size_t most) {
    const size_t offset = seq - first_;
    most = std::min({most, size_t(peer_mss_), size_t(options_.mss)});
    const size_t size = offset < out_.size() ? std::min(most, out_.size() - offset) : 0;
    const bool ends = offset + size == out_.size();
    const bool fin = ends && wants_close() && size < std::max<size_t>(most, 1);
    if (!size && !fin) return;
    const uint8_t flags = uint8_t(kAck | (ends && size ? kPsh : 0) | (fin ? kFin : 0));
    emit(flags, seq, size ? &out_[offset] : nullptr, size);
    const uint32_t next = seq + uint32_t(size) + fin;
    if (before(snd_nxt_, next)) snd_nxt_ = next;
    if (before(snd_max_, next)) snd_max_ = next;
}

void TcpClient::send_more(uint64_t tick) {
    const bool idle = snd_nxt_ == snd_una_;
    for (;;) {
        const uint32_t flight = snd_nxt_ - snd_una_;
        const uint32_t allowed = std::min(peer_window_, options_.inflight);
        const uint32_t before_send = snd_nxt_;
        const uint32_t sent = snd_nxt_ - first_;
        if (sent < out_.size()) {
            if (flight >= allowed || sent >= abort_after_) break;
            send_segment(snd_nxt_, std::min<size_t>(allowed - flight, abort_after_ - sent));
        } else if (snd_nxt_ == fin_seq() && wants_close()) {
            send_segment(snd_nxt_, 0);
        }
        if (snd_nxt_ == before_send) break;
    }
    if (idle && snd_nxt_ != snd_una_) arm(tick);
    if (state_ == State::Open && snd_nxt_ - first_ >= abort_after_) finish(Outcome::Aborted);
}

void TcpClient::timer(uint64_t tick) {
    if (state_ == State::Idle || lives_ == 0) return;
    if (resume_ && tick >= resume_) {
        resume_ = unread_ = 0;
        emit(kAck, snd_nxt_);  // window update
    }
    if (tick < deadline_) return;
    if (state_ == State::Open && snd_una_ == snd_max_ && snd_nxt_ == fin_seq() && !wants_close()) {
        // Nothing of ours is under way. A peer that owes us an answer gets its time, too.
        rto_ = kMaxRto;
        if (resume_ || ++retries_ <= 2 * kMaxRetries) arm(tick);
        else finish(Outcome::Timeout);
        return;
    }
    if (++retries_ > (peer_window_ ? kMaxRetries : kMaxProbes)) {
        finish(Outcome::Timeout);
        return;
    }
    rto_ = std::min(rto_ * 2, kMaxRto);
    arm(tick);
    if (state_ == State::SynSent) {
        ++counters.retransmissions;
        emit(kSyn, iss_, nullptr, 0, uint16_t(options_.mss));
        return;
    }
    ++(snd_una_ == snd_max_ ? counters.probes : counters.retransmissions);
    duplicates_ = 0;
    snd_nxt_ = snd_una_;
    send_segment(snd_una_, peer_window_ ? options_.mss : 1);
}

std::string TcpClient::describe() const {
    return format_ip(ip_) + ":" + std::to_string(port_) + " sent " + std::to_string(out_.size()) +
           " (acknowledged " + std::to_string(snd_una_ - iss_) + "), received " + std::to_string(received_) +
           (peer_fin_ ? ", FIN seen" : "");
}

}  // namespace sim
