// What to simulate: a text that Python writes from a topology file, one item a line.
//
//   seed N | time MODE | tap NAME ADDRESS | control FD | idle_sleep | cycles N
//   progress FILE                publish the cycles simulated so far there (progress.h)
//   port NAME KEY=VALUE …        a port of the switch; the first one is the host's
//   board FOLDER UART IP MAC     a board on the port of the same number: 1 for the first board
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "switch.h"

namespace sim {

struct BoardPlan {
    std::string folder;  // memory images are read from there
    std::string uart;
    std::string ip, mac;  // which the harness answers for, where the top has no CPU
};

struct Plan {
    Options options;
    std::vector<LinkOptions> ports;
    std::vector<BoardPlan> boards;
};

// Reads the text of `path`; throws UserError.
Plan read_plan(const std::string& path);
// `NAME KEY=VALUE …`; throws UserError.
LinkOptions parse_port(const std::string& text);

}  // namespace sim
