// The pins of a top's drive port, where it has one (boards/sim.py).
#pragma once

#include <type_traits>

#include "drive.h"

namespace sim {

template <class Top, class = void>
struct HasDrive : std::false_type {};
template <class Top>
struct HasDrive<Top, std::void_t<decltype(std::declval<Top&>().drive_cmd_valid)>> : std::true_type {};

// The drive at the pins of `Top`, nothing if it has none.
template <class Top>
class DrivePins {
  public:
    explicit DrivePins(const Options& options) : drive_(options) {
        if (!HasDrive<Top>::value && !options.drive.empty())
            throw UserError("--drive: this top has no drive");
    }

    void outputs(Top& top) {
        if constexpr (HasDrive<Top>::value) {
            drive_.outputs(port_);
            top.drive_cmd_ready = port_.cmd_ready;
            top.drive_wdata_ready = port_.wdata_ready;
            top.drive_rdata_valid = port_.rdata_valid;
            top.drive_rdata_data = port_.rdata;
            top.drive_rdata_last = port_.rdata_last;
            top.drive_rdata_error = port_.rdata_error;
            top.drive_done_valid = port_.done_valid;
            top.drive_done_status = port_.status;
            top.drive_sectors = port_.sectors;
            top.drive_ready = port_.ready;
            top.drive_present = port_.present;
        }
    }

    // After the outputs have settled, before the edge.
    void inputs(const Top& top) {
        if constexpr (HasDrive<Top>::value) {
            port_.cmd_valid = top.drive_cmd_valid;
            port_.write = top.drive_cmd_write;
            port_.lba = top.drive_cmd_lba;
            port_.count = top.drive_cmd_count;
            port_.wdata_valid = top.drive_wdata_valid;
            port_.wdata_last = top.drive_wdata_last;
            port_.wdata = top.drive_wdata_data;
            port_.rdata_ready = top.drive_rdata_ready;
            port_.done_ready = top.drive_done_ready;
            port_.wide = top.drive_wide;
        }
    }

    void clocked(bool in_reset) {
        if constexpr (HasDrive<Top>::value) {
            if (in_reset) drive_.reset();
            else drive_.clocked(port_);
        }
    }

    Drive& drive() { return drive_; }

  private:
    Drive drive_;
    DrivePort port_;
};

}  // namespace sim
