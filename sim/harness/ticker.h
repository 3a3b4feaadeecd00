// Time outside of the simulation: the protocol's milliseconds, and rest while nothing happens.
#pragma once

#include <initializer_list>

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
    // So many ticks more, as soon as may be: whoever asks wants time-outs to end. They come in addition
    // to those of the wall clock, and not if ticks are counted in cycles.
    void hurry(uint64_t ticks) { hurried_ += wall_ ? ticks : 0; }
    bool hurries() const { return hurried_; }
    // The simulation has slept of its own will: that time counts as if cycles had been simulated.
    void rested(double seconds) { rested_ += seconds; }
    // Is there a tick in this cycle? Call it once for each.
    bool step(Cycle cycle);

  private:
    bool wall_;
    Cycle period_, next_;
    uint64_t late_ = 0, hurried_ = 0;
    Cycle counted_ = 0;   // the cycle of the last look
    double last_ = 0;     // and its wall clock
    double rested_ = 0;   // seconds since then
    double earned_ = 0;   // part of a millisecond
};

// Gives the processor back while nothing has happened for a while, in wall time and in cycles: firmware
// may compute an answer for long, which is not idle. Between two naps some cycles are simulated all the
// same, so that time-outs are met.
class Idler {
  public:
    // Ticks that are counted in cycles would be late: it never sleeps then.
    explicit Idler(const Options& options)
        : enabled_(options.idle_sleep && (options.tick_wall || !options.tick_cycles)) {}
    void start(double now) { last_activity_ = now; }
    // In this cycle something happens.
    void busy(Cycle cycle, double now) { last_cycle_ = cycle, last_activity_ = now; }
    // If nothing has happened for more than `silence` cycles: sleeps for some milliseconds, the longer
    // that lasts the longer, and not once one of `wake` has something to read; negative descriptors do
    // not count. Returns the seconds slept.
    double nap(Cycle cycle, Cycle silence, double now, std::initializer_list<int> wake);
    // All of them so far, in cycles that would have been simulated.
    Cycle cycles(double nominal_hz) const { return Cycle(slept_ * nominal_hz); }

  private:
    bool enabled_;
    double last_activity_ = 0;
    Cycle last_cycle_ = 0;
    double slept_ = 0;
};

}  // namespace sim
