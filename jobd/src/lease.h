// The lease of a board, as its framer and its firmware have it (docs/smp.md, Epochs): registers,
// what the guard refuses, and the command `lease`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "status.h"

namespace model {

// models/epoch.py: serial numbers of 16 bits; 0 is none, and any is newer than it.
bool is_newer(uint16_t epoch, uint16_t other);

struct Lease {
    uint16_t epoch = 0;
    bool guard = false;
    uint64_t stale = 0;  // messages that were refused

    bool refuses(uint16_t of_message) const;
    // Carry out `lease`, `lease EPOCH`, `lease on` or `lease off`: a status, and what it says. Any
    // other line is an UNKNOWN_COMMAND.
    std::pair<Status, std::string> command(std::string_view line);

  private:
    std::pair<Status, std::string> raise(std::string_view word);
};

}  // namespace model
