// A drive at the board's drive port (cores/drive/port.py): sectors of a file, after a latency and at a
// rate that the options say. A file that cannot be written to is a protected medium. Sectors that
// `--drive-bad` names cannot be read. The medium goes and comes with the file (medium.h); one without
// whole sectors cannot be used.
#pragma once

#include <cstdint>
#include <string>

#include "common.h"
#include "medium.h"
#include "options.h"

namespace sim {

// What goes over the port in a cycle, as the drive sees it.
struct DrivePort {
    // From the board.
    bool cmd_valid = false, write = false;
    uint64_t lba = 0;
    uint32_t count = 0;
    bool wdata_valid = false, wdata_last = false;
    uint64_t wdata = 0;
    bool rdata_ready = false, done_ready = false, wide = false;
    // To the board.
    bool cmd_ready = false, wdata_ready = false;
    bool rdata_valid = false, rdata_last = false, rdata_error = false;
    uint64_t rdata = 0;
    bool done_valid = false;
    uint8_t status = 0;
    uint64_t sectors = 0;
    bool ready = false, present = false;
};

class Drive {
  public:
    static constexpr size_t kSector = Medium::kSector;

    explicit Drive(const Options& options);

    void outputs(DrivePort& port) const;   // before the edge: what it says
    void clocked(const DrivePort& port);   // at the edge: what goes over
    void reset();                          // the board is in reset: the command is given up
    bool busy() const { return state_ != kIdle; }
    // What the board did wrong since the last call, or "".
    std::string fault();

  private:
    enum State { kIdle, kWaits, kReads, kWrites, kDone };
    enum Status : uint8_t { kOk = 0, kRange = 1, kData = 2, kAbsent = 4, kProtected = 5 };

    void start(const DrivePort& port);
    void begin();
    void fetch();
    void read(const DrivePort& port);
    void written(const DrivePort& port);
    void end(Status status) { state_ = kDone, status_ = status; }
    bool bad(uint64_t lba) const { return lba - bad_ < bad_count_; }

    Medium medium_;
    uint64_t latency_, bad_, bad_count_;
    double rate_, credit_ = 0;

    State state_ = kIdle;
    Status status_ = kOk, ending_ = kOk;
    bool write_ = false;
    uint64_t lba_ = 0, waits_ = 0;
    uint64_t left_ = 0;      // sectors of the command, that being moved included
    size_t beat_ = 4, at_ = 0;  // bytes of a beat; bytes of the sector that were moved
    bool broken_ = false;    // the beat on offer ends the packet with an error
    uint8_t buffer_[kSector] = {};
    std::string fault_;
};

}  // namespace sim
