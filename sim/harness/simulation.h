// The main loop: clock, time, the link between the device and its peer, limits, statistics.
#pragma once

#include <memory>

#include "control.h"
#include "dut.h"
#include "impair.h"
#include "loadgen.h"
#include "pcap.h"
#include "progress.h"
#include "tap.h"
#include "ticker.h"
#include "uart.h"

namespace sim {

// Exit codes: 0 ended as asked (limit, signal, quit, load complete); 1 the device misbehaved (broken
// link protocol, load errors, $finish); 2 wrong use; 3 a limit came before the load was complete.
enum ExitCode { kOk = 0, kFault = 1, kUsage = 2, kIncomplete = 3 };

class Simulation {
  public:
    explicit Simulation(const Options& options);
    ExitCode run();

  private:
    void setup();
    void move_frames();
    void poll_often();
    void poll_seldom();
    void read_tap();
    void look_at_uart();
    std::string answer(const std::string& command);
    void keep_rate(double now);
    void nap();
    void stop(const char* reason);
    ExitCode exit_code() const;
    Json json() const;
    void write_stats() const;

    Options options_;
    std::unique_ptr<Dut> dut_;
    Impairer to_board_, from_board_;
    Tap tap_;
    bool has_tap_ = false;
    std::unique_ptr<LoadGenerator> load_;
    Uart uart_;
    Pcap pcap_;
    Control control_;
    Progress progress_;
    Ticker ticker_;
    Idler idler_;
    Json initial_counters_;

    Cycle cycle_ = 0;
    uint64_t tick_ = 0;
    double start_ = 0;
    uint64_t last_traffic_ = 0;
    uint64_t dropped_fcs_ = 0;
    bool tracing_ = false, healed_ = false;
    std::string printed_;   // the end of what the UART has printed, for --until
    size_t looked_at_ = 0;  // bytes of `uart_out` that are in it
    const char* reason_ = nullptr;
};

// Ask every running simulation to end; safe in a signal handler.
void request_stop(int signal);

}  // namespace sim
