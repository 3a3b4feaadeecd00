#include "scheduler.h"

#include <algorithm>

namespace jobd {

namespace {

constexpr int64_t kMostAverages = 4;
constexpr int64_t kMemory = 16;  // jobs over which an average is formed

}  // namespace

Demultiplexer::Demultiplexer(Policy policy, unsigned window)
    : policy_(policy), window_(window), lists_(policy == Policy::kLeast ? window : 1) {}

void Demultiplexer::enlist(Seat& seat) {
    seat.list = &lists_[policy_ == Policy::kLeast ? seat.outstanding : 0];
    const auto where = policy_ == Policy::kStack ? seat.list->begin() : seat.list->end();
    seat.place = seat.list->insert(where, &seat);
}

void Demultiplexer::delist(Seat& seat) {
    if (seat.list) seat.list->erase(seat.place);
    seat.list = nullptr;
}

void Demultiplexer::add(Seat& seat) {
    seat.added = true;
    enlist(seat);
}

void Demultiplexer::remove(Seat& seat) {
    seat.added = false;
    delist(seat);
}

bool Demultiplexer::has_room() const {
    return std::ranges::any_of(lists_, [](const auto& list) { return !list.empty(); });
}

Seat* Demultiplexer::choose() {
    const auto list = std::ranges::find_if(lists_, [](const auto& l) { return !l.empty(); });
    return list == lists_.end() ? nullptr : give(list->front());
}

Seat* Demultiplexer::choose_for_record() {
    for (const auto& list : lists_)
        for (Seat* seat : list)
            if (!seat->has_record) return give(seat);
    return nullptr;
}

Seat* Demultiplexer::choose(Seat& seat) { return seat.list ? give(&seat) : nullptr; }

Seat* Demultiplexer::give(Seat* seat) {
    delist(*seat);
    if (++seat->outstanding < window_) enlist(*seat);
    return seat;
}

void Demultiplexer::done(Seat& seat) {
    --seat.outstanding;
    if (!seat.added) return;
    delist(seat);
    enlist(seat);
}

void FairQueue::wake(Share& share) {
    if (share.waiting) return;
    share.used = std::max(share.used, virtual_time_);
    share.turn = ++turns_;
    share.waiting = true;
    waiting_.insert(&share);
}

void FairQueue::sleep(Share& share) {
    if (!share.waiting) return;
    waiting_.erase(&share);
    share.waiting = false;
}

Share* FairQueue::next() {
    if (waiting_.empty()) return nullptr;
    Share* share = *waiting_.begin();
    virtual_time_ = std::max(virtual_time_, share->used);
    return share;
}

int64_t FairQueue::reserve(Share& share) {
    if (share.average == 0) share.average = average_;
    const int64_t reserved = share.average;
    charge(share, reserved);
    return reserved;
}

void FairQueue::settle(Share& share, int64_t reserved, int64_t nanoseconds) {
    if (share.average == 0) share.average = average_ ? average_ : nanoseconds;
    const int64_t counted = std::min(nanoseconds, kMostAverages * share.average);
    share.average += (counted - share.average) / kMemory;
    average_ += average_ ? (counted - average_) / kMemory : counted;
    charge(share, counted - reserved);
}

void FairQueue::charge(Share& share, int64_t nanoseconds) {
    if (share.waiting) waiting_.erase(&share);
    share.used += nanoseconds;
    share.turn = ++turns_;
    if (share.waiting) waiting_.insert(&share);
}

}  // namespace jobd
