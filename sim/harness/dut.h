// The device under test as the harness sees it: a clock, a link for whole frames, perhaps a UART.
// dut_board.cpp and dut_fabric.cpp wrap a Verilated top, dut_wire.cpp a TAP device.
#pragma once

#include <deque>
#include <memory>

#include "common.h"
#include "options.h"

namespace sim {

class Dut {
  public:
    virtual ~Dut() = default;
    // One clock cycle; `tick` is high in it if asked.
    virtual void cycle(bool tick) = 0;
    // May another frame be handed over? (At most one waits, so that order is decided outside.)
    virtual bool can_send() const = 0;
    virtual void send(Frame&& frame) = 0;
    // Whole frames that came out.
    std::deque<Frame> received;
    // Bytes from the UART, and for it.
    std::deque<uint8_t> uart_out, uart_in;
    // Named event counters, read now; empty if the top exports none.
    virtual Json counters() const { return {}; }
    // Faults of the link protocol seen at the outputs (bad FCS, no preamble, broken stream rules).
    uint64_t link_errors = 0;
    std::string last_link_error;
    virtual void start_trace(const std::string&) {
        throw UserError("this build of the simulator has no waves; build it with tracing");
    }
    // Something happens at other ports than the link and the UART. Whoever looks clears it.
    bool active = false;
    // For how many cycles it may compute with nothing to be seen at any port.
    virtual Cycle silence() const { return 0; }
    // A descriptor from which such a port is served, or -1: it does not sleep beside one.
    virtual int wakes() const { return -1; }
    // The Verilog called $finish.
    virtual bool finished() const { return false; }
    // Cycles that an idle reference machine, a cloud server of 2024, simulates in about a second: the
    // unit of limits in simulated time (progress.h).
    virtual double nominal_hz() const { return 1e6; }

  protected:
    void link_error(const std::string& what) {
        ++link_errors;
        last_link_error = what;
    }
};

std::unique_ptr<Dut> make_dut(const Options& options);

}  // namespace sim
