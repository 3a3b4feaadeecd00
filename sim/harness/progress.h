// How far a simulation has come, in a file that other processes map into memory (sim/progress.py makes
// the name known, models/deadline.py reads it): three numbers of 64 bits in the machine's byte order.
//
//   0   clock cycles simulated, and those of the time that was slept (ticker.h)
//   8   millisecond ticks that the design was given (0 where it divides its own clock)
//   16  clock cycles in a nominal second: what an idle reference machine simulates in about a second
//
// The simulator holds an exclusive flock() on the file as long as it lives, however it ends.
#pragma once

#include <atomic>
#include <string>

#include "common.h"

namespace sim {

class Progress {
  public:
    Progress() = default;
    Progress(const Progress&) = delete;
    ~Progress();
    // Makes the file; throws UserError.
    void open(const std::string& path, double nominal_hz);
    void publish(Cycle cycles, uint64_t ticks) {
        if (!numbers_) return;
        numbers_[0].store(cycles, std::memory_order_relaxed);
        numbers_[1].store(ticks, std::memory_order_relaxed);
    }

  private:
    int fd_ = -1;
    std::atomic<uint64_t>* numbers_ = nullptr;
};

}  // namespace sim
