// Time outside of the simulation: the protocol's milliseconds, and rest while nothing happens.
#pragma once

#include "options.h"

namespace sim {

// A clock that only goes forward.
double wall_seconds();

// When the next tick is due: every N cycles, or every millisecond of the wall clock. On a machine that
// is too busy or too slow for the nominal rate (dut.h), a millisecond also takes its nominal cycles:
// else the time-outs of the design would end although it was not given the time to do anything.
class Ticker {
  public:
    explicit Ticker(const Options& options)
        : wall_(options.tick_wall), period_(options.tick_cycles), next_(options.tick_cycles) {}
    // The wall clock's milliseconds count from here on.
    void start(double now) { last_ = now; }
    // Looks at the wall clock, if ticks follow it; `nominal_hz` cycles make a second at least.
    void poll(Cycle cycle, double nominal_hz);
    // The simulation has slept of its own will: that time counts as if cycles had been simulated.
    void rested(double seconds) { rested_ += seconds; }
    // Is there a tick in this cycle? Call it once for each.
    bool step(Cycle cycle);

  private:
    bool wall_;
    Cycle period_, next_;
    uint64_t late_ = 0;
    Cycle counted_ = 0;   // the cycle of the last look
    double last_ = 0;     // and its wall clock
    double rested_ = 0;   // seconds since then
    double earned_ = 0;   // part of a millisecond
};

// Gives the processor back while nothing has happened for a while.
class Idler {
  public:
    explicit Idler(bool enabled) : enabled_(enabled) {}
    void start(double now) { last_activity_ = now; }
    // Sleeps for some milliseconds at most, and not once `fd` has something to read. Returns the
    // seconds slept.
    double nap(bool busy, double now, int fd);

  private:
    bool enabled_;
    double last_activity_ = 0;
};

}  // namespace sim
