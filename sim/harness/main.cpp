// Runs a Verilated top with a UART, an Ethernet link, a clock of its own and a peer. See --help.
#include <csignal>
#include <cstdio>

#include "options.h"
#include "simulation.h"

int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, sim::request_stop);
    signal(SIGTERM, sim::request_stop);
    try {
        const sim::Options options = sim::parse_options(argc, argv);
        if (!options.events.empty()) sim::divert_prints(options.events);
        return sim::Simulation(options).run();
    } catch (const sim::UserError& error) {
        fprintf(stderr, "sim: %s\n", error.what());
        return sim::kUsage;
    }
}
