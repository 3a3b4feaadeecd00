#include "impair.h"

namespace sim {

namespace {

constexpr size_t kEthernetHeader = 14;

// May a flipped bit go in before the FCS? Only where a checksum further up must find it: in TCP, UDP
// and ICMP over IPv4. ARP has none: a damaged address would be believed.
bool has_checksum(const Bytes& data) {
    return data.size() > kEthernetHeader + 20 && get16(&data[12]) == 0x0800;
}

}  // namespace

Json ImpairStats::json() const {
    Json j;
    j.add("frames", frames);
    j.add("bytes", bytes);
    j.add("lost", lost);
    j.add("duplicated", duplicated);
    j.add("reordered", reordered);
    j.add("corrupted_fcs", corrupted_fcs);
    j.add("corrupted_payload", corrupted_payload);
    return j;
}

// One bit only: two flips in the same column of a ones' complement sum can cancel out, and then no
// receiver could tell.
void Impairer::damage(Frame& frame, uint64_t random) {
    const bool after_fcs = random & 1 || !has_checksum(frame.data);
    const size_t from = after_fcs ? 0 : kEthernetHeader;
    // Padding behind the IP packet is nobody's: a flip there is harmless and proves nothing.
    size_t to = frame.data.size();
    if (!after_fcs) to = std::min(to, kEthernetHeader + get16(&frame.data[16]));
    if (to <= from) return;
    const uint64_t bit = (random >> 1) % ((to - from) * 8);
    frame.data[from + bit / 8] ^= uint8_t(1 << bit % 8);
    frame.bad_fcs |= after_fcs;
    ++(after_fcs ? stats_.corrupted_fcs : stats_.corrupted_payload);
}

void Impairer::push(Frame&& frame, Cycle now) {
    ++stats_.frames;
    stats_.bytes += frame.data.size();
    const bool lose = rng_.chance(rates_.loss);
    const bool copy = rng_.chance(rates_.duplicate);
    const bool hold = rng_.chance(rates_.reorder);
    const bool corrupt = rng_.chance(rates_.corrupt);
    const uint64_t where = rng_.next();
    const uint64_t depth = 1 + rng_.below(rates_.reorder_depth);
    const Cycle due = now + rates_.delay;
    if (lose) {
        ++stats_.lost;
        return;
    }
    if (copy) {
        ++stats_.duplicated;
        enqueue(Frame(frame), due);
    }
    if (corrupt) damage(frame, where);
    if (hold) {
        ++stats_.reordered;
        held_.push_back({std::move(frame), depth, due + rates_.reorder_limit});
    } else {
        enqueue(std::move(frame), due);
    }
}

void Impairer::enqueue(Frame&& frame, Cycle due) {
    queue_.push_back({std::move(frame), due});
    for (size_t i = 0; i < held_.size();) {
        if (--held_[i].pass) {
            ++i;
            continue;
        }
        queue_.push_back({std::move(held_[i].frame), due});
        held_.erase(held_.begin() + long(i));
    }
}

bool Impairer::pop(Frame& out, Cycle now) {
    if (!queue_.empty()) {
        if (queue_.front().due > now) return false;
        out = std::move(queue_.front().frame);
        queue_.pop_front();
        return true;
    }
    if (held_.empty() || held_.front().limit > now) return false;
    out = std::move(held_.front().frame);
    held_.erase(held_.begin());
    return true;
}

}  // namespace sim
