#include "ticker.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

namespace sim {

namespace {

constexpr Cycle kTickDistance = 16;  // cycles between ticks that are late
constexpr uint64_t kMaxLateTicks = 100;
constexpr double kIdleAfter = 0.5;  // seconds
constexpr int kNapMs = 20;

}  // namespace

double wall_seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

void Ticker::poll() {
    if (!wall_) return;
    const double elapsed = (wall_seconds() - last_ms_) * 1e3;
    if (elapsed < 1) return;
    const uint64_t whole = uint64_t(elapsed);
    last_ms_ += double(whole) * 1e-3;
    // After a suspension the board does not have to live through all of it.
    late_ = std::min(late_ + whole, kMaxLateTicks);
}

bool Ticker::step(Cycle cycle) {
    if (period_ && cycle >= next_) {
        next_ += period_;
        return true;
    }
    if (!late_ || cycle < next_) return false;
    --late_;
    next_ = cycle + kTickDistance;
    return true;
}

void Idler::nap(bool busy, double now, int fd) {
    if (busy) last_activity_ = now;
    if (!enabled_ || now - last_activity_ < kIdleAfter) return;
    pollfd wake{fd, POLLIN, 0};
    ::poll(&wake, 1, kNapMs);
}

}  // namespace sim
