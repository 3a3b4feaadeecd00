// The bus of the processor that is not in the Verilog: one access at a time, from any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cosim {

struct Access {
    bool write;
    uint32_t address;
    uint32_t data;
    uint8_t select;
};

class Port {
  public:
    // Carry out an access; returns what was read. Blocks until the gateware has answered. Throws
    // std::runtime_error when it answers with an error or the simulation is over.
    uint32_t carry_out(const Access& access);
    // The processor's interrupt lines in the last cycle.
    uint32_t interrupts() const { return interrupts_.load(std::memory_order_acquire); }

    // For the simulation, once a cycle.
    struct Pins {
        bool active, write;
        uint32_t address, data;
        uint8_t select;
    };
    void cycle(bool ended, bool failed, uint32_t got, uint32_t interrupts, Pins& pins);

  private:
    enum State { kIdle, kAsked, kActive, kDone, kFailed };
    std::atomic<int> state_{kIdle};
    std::atomic<uint32_t> interrupts_{0};
    Access access_{};
    uint32_t got_ = 0;
};

// The one port of this process.
Port& port();

// Serves the port when the simulation has begun; `serve.cpp` and `renode.cpp` each have one.
void start();

}  // namespace cosim
