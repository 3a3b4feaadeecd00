// The command line of the harness.
#pragma once

#include <string>

#include "common.h"
#include "impair.h"

namespace sim {

struct LoadOptions {
    std::string mode;  // "", http, echo, discard, messages, hostile
    uint16_t port = 0;  // 0: the mode's usual port
    uint32_t clients = 64;
    uint64_t transactions = 1000;
    uint64_t warmup = 0;            // transactions before the measured ones
    uint32_t ramp = 0;              // clients that start in one tick; 0: all
    uint32_t min_bytes = 1, max_bytes = 20000;  // of an echo or discard transfer
    uint32_t inflight = 16384;      // unacknowledged bytes a client sends at most
    uint32_t window = 32768;        // receive buffer of a client
    double pause = 0;               // chance that a client stops reading for a while
    uint32_t mss = 1460;
    uint32_t rto_ms = 50;           // first retransmission time-out, in ticks
    std::string request = "GET / HTTP/1.1\r\nHost: board\r\n\r\n";
    std::string expect;             // file with the exact answer, or empty: all must be equal
    std::string messages;           // file of messages and their answers
    double abort = 0;               // messages: chance that a client aborts in one
    uint32_t idle = 0;              // connections that are open all the time and do nothing
    uint16_t idle_port = 9;         // the port that they are connected to
    uint32_t drain_ms = 0;          // ticks to go on after the last transaction
    uint32_t attack_percent = 50;   // hostile: attack frames per 100 frames of honest clients
};

struct Options {
    uint64_t seed = 1;
    Cycle cycles = 0;     // 0: no limit
    double seconds = 0;   // wall clock; 0: no limit
    double clock_hz = 50e6;
    double max_rate = 0;  // cycles a second; 0: as fast as it goes
    bool idle_sleep = false;
    std::string progress;  // file for progress.h
    bool tick_wall = false;
    Cycle tick_cycles = 0;  // 0: no ticks from here
    double line_rate = 0;   // fabric: bytes a cycle on the wire, each way; 0: as the streams go
    double stall = 0;       // fabric: chance of a gap or of back-pressure in each cycle
    std::string uart = "none";
    std::string until;  // text on the UART that ends the simulation
    std::string tap;
    std::string address = "192.0.2.1/24";
    std::string board_ip = "192.0.2.2";
    std::string board_mac = "02:00:00:00:00:02";
    std::string pcap;
    std::string trace;
    Cycle trace_from = 0;
    std::string stats;
    std::string events;           // file that gets what the Verilog prints
    std::string flash;            // file with the contents of the flash; empty: blank at each start
    bool flash_protect = false;   // faults of the flash: see flash.h
    bool flash_stops = false;
    uint64_t flash_stop = 0;
    std::string drive;            // file with the sectors of the drive (drive.h); empty: no medium
    uint64_t drive_latency = 1000;
    double drive_rate = 1;        // bytes a cycle
    uint64_t drive_bad = 0, drive_bad_count = 0;  // fault: sectors that cannot be read
    std::string sd;               // file with the sectors of the card in its slot; empty: no card
    int control_fd = -1;
    ImpairRates to_board, from_board;
    LoadOptions load;
};

// Throws UserError. `--help` prints the list and exits.
Options parse_options(int argc, char** argv);

}  // namespace sim
