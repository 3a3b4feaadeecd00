#include "switch.h"

#include <algorithm>

namespace sim {

namespace {

constexpr double kOverhead = 24;        // preamble, FCS and gap, in bytes
constexpr double kQuantumBytes = 64;    // 512 bit times
constexpr uint16_t kLongest = 0xffff;   // quanta
constexpr size_t kPfcBytes = 60;
const uint8_t kPfcAddress[6] = {0x01, 0x80, 0xc2, 0, 0, 0x01};

uint64_t address(const uint8_t* p) { return uint64_t(get16(p)) << 32 | get32(p + 2); }

// Addresses that a bridge does not forward (IEEE 802.1Q, table 8-1).
bool link_local(const Bytes& d) { return (address(&d[0]) & ~uint64_t(15)) == 0x0180c2000000; }

bool is_pfc(const Bytes& d) {
    return d.size() >= 34 && std::equal(kPfcAddress, kPfcAddress + 6, d.begin()) &&
           get16(&d[12]) == 0x8808 && get16(&d[14]) == 0x0101;
}

// Where the IPv4 header begins; 0 if there is none.
size_t ipv4_at(const Bytes& d) {
    const size_t at = d.size() > 18 && get16(&d[12]) == 0x8100 ? 18 : 14;
    return d.size() >= at + 20 && get16(&d[at - 2]) == 0x0800 && d[at] >> 4 == 4 ? at : 0;
}

double wire_bytes(const Frame& f) { return double(std::max(f.data.size(), kPfcBytes)) + kOverhead; }

}  // namespace

int priority_of(const Bytes& d) {
    if (d.size() > 18 && get16(&d[12]) == 0x8100) return d[14] >> 5;
    const size_t ip = ipv4_at(d);
    return ip ? d[ip + 1] >> 5 : 0;
}

bool mark_ecn(Bytes& d) {
    const size_t ip = ipv4_at(d);
    const int ecn = ip ? d[ip + 1] & 3 : 0;
    const size_t size = ip ? size_t(d[ip] & 15) * 4 : 0;
    if (ecn != 1 && ecn != 2) return false;
    if (size < 20 || d.size() < ip + size) return false;
    d[ip + 1] |= 3;
    // Incrementally (RFC 1624), so that a header that was damaged stays so.
    const uint32_t grown = uint32_t(3 - ecn);
    uint32_t sum = uint32_t(uint16_t(~get16(&d[ip + 10]))) + grown;
    sum = (sum & 0xffff) + (sum >> 16);
    put16(&d[ip + 10], uint16_t(~sum));
    return true;
}

Frame pause_frame(uint8_t enable, uint16_t quanta) {
    Frame frame;
    Bytes& d = frame.data;
    d.assign(kPfcBytes, 0);
    std::copy_n(kPfcAddress, 6, &d[0]);
    d[6] = 0x02;  // from a switch that nobody talks to
    put16(&d[12], 0x8808);
    put16(&d[14], 0x0101);
    put16(&d[16], enable);
    for (int k = 0; k < kClasses; ++k)
        if (enable >> k & 1) put16(&d[size_t(18 + 2 * k)], quanta);
    return frame;
}

size_t Switch::add_port(const LinkOptions& options) {
    ports_.push_back(std::make_unique<Port>(options, seed_));
    return ports_.size() - 1;
}

void Switch::put(size_t port, Frame&& frame, Cycle now) {
    (void)now;
    ports_[port]->sending.push_back(std::move(frame));
    ++inside_;
}

bool Switch::get(size_t port, Frame& frame, Cycle now) { return ports_[port]->down.pop(frame, now); }

void Switch::step(Cycle now) {
    inside_ = 0;
    for (size_t k = 0; k < ports_.size(); ++k) {
        Port& p = *ports_[k];
        while (!p.sending.empty() && double(now) >= p.up_free) {
            // The device takes a cycle for each byte itself; only a slower wire adds to that.
            const double extra = wire_bytes(p.sending.front()) * std::max(0.0, 1 / p.options.rate - 1);
            p.up_free = std::max(p.up_free, double(now)) + extra;
            p.up.push(std::move(p.sending.front()), now + Cycle(extra));
            p.sending.pop_front();
        }
        Frame frame;
        while (!p.up.empty() && p.up.pop(frame, now)) forward(k, std::move(frame), now);
    }
    for (auto& p : ports_) {
        if (p->options.lossless) pause_senders(*p, now);
        transmit(*p, now);
        inside_ += p->sending.size() + p->up.size() + p->down.size() + p->control.size() + p->queued;
        inside_ += std::count(p->pausing.begin(), p->pausing.end(), true);
    }
}

void Switch::forward(size_t from, Frame&& frame, Cycle now) {
    Port& port = *ports_[from];
    Bytes& d = frame.data;
    ++port.stats.in;
    if (frame.bad_fcs || d.size() < 14) {
        ++port.stats.bad_fcs;
        return;
    }
    if (is_pfc(d)) return pause_received(port, d, now);
    if (link_local(d)) return;
    if (!(d[6] & 1)) learned_[address(&d[6])] = from;
    const int priority = priority_of(d);
    const auto known = d[0] & 1 ? learned_.end() : learned_.find(address(&d[0]));
    if (known != learned_.end()) {
        if (known->second != from) enqueue(from, known->second, frame, priority);
        return;
    }
    ++port.stats.flooded;
    for (size_t to = 0; to < ports_.size(); ++to)
        if (to != from) enqueue(from, to, frame, priority);
}

void Switch::enqueue(size_t from, size_t to, const Frame& frame, int priority) {
    Port& p = *ports_[to];
    const LinkOptions& o = p.options;
    const uint64_t size = frame.data.size();
    const bool lossless = ports_[from]->options.lossless >> priority & 1;
    if (p.queued + size > o.queue * (lossless ? 2 : 1)) {
        ++(lossless ? p.stats.lossless_drops : p.stats.queue_drops);
        return;
    }
    p.queues[size_t(priority)].push_back({frame, from, priority});
    // A random number for each frame, whatever becomes of it, so that runs stay comparable.
    const double draw = double(rng_.next() >> 11) * 0x1p-53;
    if (o.ecn_max) {
        const double span = double(std::max<uint64_t>(1, o.ecn_max - o.ecn_min));
        double chance = o.ecn_chance * (double(p.queued) - double(o.ecn_min)) / span;
        if (p.queued >= o.ecn_max) chance = 1;
        if (draw < chance && mark_ecn(p.queues[size_t(priority)].back().frame.data)) ++p.stats.marked;
    }
    p.queued += size;
    p.stats.queue_max = std::max(p.stats.queue_max, p.queued);
    ports_[from]->held[size_t(priority)] += size;
}

bool Switch::next(Port& p, Frame& frame, Cycle now) {
    if (!p.control.empty()) {
        frame = std::move(p.control.front());
        p.control.pop_front();
        return true;
    }
    for (int k = 1; k <= kClasses; ++k) {
        const int c = (p.turn + k) % kClasses;
        auto& queue = p.queues[size_t(c)];
        if (queue.empty() || p.paused_until[size_t(c)] > now) continue;
        const uint64_t size = queue.front().frame.data.size();
        ports_[queue.front().from]->held[size_t(c)] -= size;
        p.queued -= size;
        frame = std::move(queue.front().frame);
        queue.pop_front();
        p.turn = c;
        return true;
    }
    return false;
}

void Switch::transmit(Port& p, Cycle now) {
    Frame frame;
    while (double(now) >= p.down_free && next(p, frame, now)) {
        p.down_free = std::max(p.down_free, double(now)) + wire_bytes(frame) / p.options.rate;
        ++p.stats.out;
        p.down.push(std::move(frame), now);
    }
}

void Switch::pause_received(Port& p, const Bytes& d, Cycle now) {
    ++p.stats.pauses_received;
    const uint16_t enable = get16(&d[16]);
    for (size_t c = 0; c < kClasses; ++c) {
        if (!(enable >> c & 1)) continue;
        const double bytes = get16(&d[18 + 2 * c]) * kQuantumBytes;
        p.paused_until[c] = now + Cycle(bytes / p.options.rate);
    }
}

void Switch::pause_senders(Port& p, Cycle now) {
    uint8_t stop = 0, go = 0;
    const Cycle lasts = Cycle(kLongest * kQuantumBytes / p.options.rate);
    const bool refresh = now >= p.refreshed + lasts / 2;
    for (size_t c = 0; c < kClasses; ++c) {
        if (!(p.options.lossless >> c & 1)) continue;
        const bool more = p.pausing[c] ? p.held[c] >= p.options.xon : p.held[c] > p.options.xoff;
        if (more && (!p.pausing[c] || refresh)) stop |= uint8_t(1 << c);
        if (!more && p.pausing[c]) go |= uint8_t(1 << c);
        p.pausing[c] = more;
    }
    if (stop) {
        p.control.push_back(pause_frame(stop, kLongest));
        p.refreshed = now;
    }
    if (go) p.control.push_back(pause_frame(go, 0));
    p.stats.pauses_sent += (stop != 0) + (go != 0);
}

Json Switch::json() const {
    Json all;
    for (const auto& p : ports_) {
        Json j;
        j.add("in", p->stats.in);
        j.add("out", p->stats.out);
        j.add("flooded", p->stats.flooded);
        j.add("bad_fcs", p->stats.bad_fcs);
        j.add("queue_drops", p->stats.queue_drops);
        j.add("lossless_drops", p->stats.lossless_drops);
        j.add("marked", p->stats.marked);
        j.add("pauses_sent", p->stats.pauses_sent);
        j.add("pauses_received", p->stats.pauses_received);
        j.add("queue_max", p->stats.queue_max);
        j.add("up", p->up.stats().json());
        j.add("down", p->down.stats().json());
        all.add(p->options.name, j);
    }
    return all;
}

}  // namespace sim
