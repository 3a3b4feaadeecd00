#include "ticker.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

namespace sim {

namespace {

constexpr Cycle kTickDistance = 16;  // cycles between ticks that are late
constexpr uint64_t kMaxLateTicks = 100;
constexpr double kIdleAfter = 0.1;   // seconds
constexpr double kNapPerIdle = 0.1;  // length of a nap by how long nothing has happened
constexpr int kLongestNapMs = 20;
constexpr size_t kMostWakers = 4;

}  // namespace

double wall_seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

void Ticker::poll(Cycle cycle, double nominal_hz) {
    if (!wall_) return;
    const double now = wall_seconds(), elapsed = now - last_;
    if (elapsed < 1e-3) return;
    earned_ += 1e3 * std::min(elapsed, double(cycle - counted_) / nominal_hz + rested_);
    last_ = now;
    counted_ = cycle;
    rested_ = 0;
    const uint64_t whole = uint64_t(earned_);
    earned_ -= double(whole);
    // After a suspension the board does not have to live through all of it.
    late_ = std::min(late_ + whole, kMaxLateTicks);
}

bool Ticker::step(Cycle cycle) {
    if (period_ && cycle >= next_) {
        next_ += period_;
        return true;
    }
    if (!(late_ || hurried_) || cycle < next_) return false;
    --(late_ ? late_ : hurried_);
    next_ = cycle + kTickDistance;
    return true;
}

double Idler::nap(Cycle cycle, Cycle silence, double now, std::initializer_list<int> wake) {
    const double idle = now - last_activity_;
    if (!enabled_ || idle < kIdleAfter || cycle - last_cycle_ <= silence) return 0;
    pollfd fds[kMostWakers];
    nfds_t count = 0;
    for (int fd : wake)
        if (count < kMostWakers) fds[count++] = {fd, POLLIN, 0};
    ::poll(fds, count, std::min(int(1e3 * kNapPerIdle * idle), kLongestNapMs));
    const double slept = wall_seconds() - now;
    slept_ += slept;
    return slept;
}

}  // namespace sim
