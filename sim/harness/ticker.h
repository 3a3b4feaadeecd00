// Time outside of the simulation: the protocol's milliseconds, and rest while nothing happens.
#pragma once

#include "options.h"

namespace sim {

// A clock that only goes forward.
double wall_seconds();

// When the next tick is due: every N cycles, or every millisecond of the wall clock.
class Ticker {
  public:
    explicit Ticker(const Options& options)
        : wall_(options.tick_wall), period_(options.tick_cycles), next_(options.tick_cycles) {}
    // The wall clock's milliseconds count from here on.
    void start(double now) { last_ms_ = now; }
    // Looks at the wall clock, if ticks follow it.
    void poll();
    // Is there a tick in this cycle? Call it once for each.
    bool step(Cycle cycle);

  private:
    bool wall_;
    Cycle period_, next_;
    uint64_t late_ = 0;
    double last_ms_ = 0;
};

// Gives the processor back while nothing has happened for a while.
class Idler {
  public:
    explicit Idler(bool enabled) : enabled_(enabled) {}
    void start(double now) { last_activity_ = now; }
    // Sleeps for some milliseconds at most, and not once `fd` has something to read.
    void nap(bool busy, double now, int fd);

  private:
    bool enabled_;
    double last_activity_ = 0;
};

}  // namespace sim
