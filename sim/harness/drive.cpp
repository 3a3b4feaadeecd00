#include "drive.h"

#include <algorithm>
#include <cstring>

namespace sim {

Drive::Drive(const Options& o)
    : medium_("drive file", o.drive), latency_(o.drive_latency), bad_(o.drive_bad),
      bad_count_(o.drive_bad_count), rate_(o.drive_rate) {}

std::string Drive::fault() {
    std::string found;
    found.swap(fault_);
    return found;
}

void Drive::reset() {
    state_ = kIdle;
    broken_ = false;
}

void Drive::outputs(DrivePort& port) const {
    port.present = port.ready = medium_.in();
    port.sectors = medium_.sectors();
    port.cmd_ready = state_ == kIdle;
    port.wdata_ready = state_ == kWrites && credit_ >= 1;
    port.rdata_valid = state_ == kReads && (credit_ >= 1 || broken_);
    port.rdata = 0;
    memcpy(&port.rdata, buffer_ + (broken_ ? 0 : at_), beat_);
    port.rdata_error = broken_;
    port.rdata_last = broken_ || (left_ == 1 && at_ + beat_ == kSector);
    port.done_valid = state_ == kDone;
    port.status = status_;
}

void Drive::clocked(const DrivePort& port) {
    medium_.clocked();
    credit_ = std::min(credit_ + rate_ / double(beat_), 2.0);
    switch (state_) {
        case kIdle:
            if (port.cmd_valid) start(port);
            break;
        case kWaits:
            if (waits_-- == 0) begin();
            break;
        case kReads:
            if (port.rdata_valid && port.rdata_ready) read(port);
            break;
        case kWrites:
            if (port.wdata_valid && port.wdata_ready) written(port);
            break;
        case kDone:
            if (port.done_ready) state_ = kIdle;
    }
}

void Drive::start(const DrivePort& port) {
    state_ = kWaits;
    waits_ = latency_;
    beat_ = port.wide ? 8 : 4;
    write_ = port.write, lba_ = port.lba, left_ = port.count;
    at_ = 0, credit_ = 0, broken_ = false, ending_ = kOk;
    const uint64_t sectors = medium_.sectors();
    if (!medium_.in()) ending_ = kAbsent;
    else if (left_ == 0 || lba_ >= sectors || sectors - lba_ < left_) ending_ = kRange;
    else if (write_ && medium_.is_protected()) ending_ = kProtected;
}

void Drive::begin() {
    if (write_) {
        state_ = left_ ? kWrites : kDone;
        status_ = ending_;
        return;
    }
    state_ = kReads;
    fetch();
}

// The sector that is next to be sent, or the end of the packet.
void Drive::fetch() {
    if (ending_ == kOk && !medium_.in()) ending_ = kAbsent;
    if (ending_ == kOk && bad(lba_)) ending_ = kData;
    if (ending_ == kOk && !medium_.read(lba_, buffer_)) ending_ = kData;
    broken_ = ending_ != kOk;
}

void Drive::read(const DrivePort& port) {
    credit_ -= 1;
    at_ += beat_;
    if (port.rdata_last) {
        broken_ = false;
        end(ending_);
    } else if (at_ == kSector) {
        at_ = 0;
        ++lba_, --left_;
        fetch();
    } else if (!medium_.in()) {  // it was taken out
        fetch();
    }
}

void Drive::written(const DrivePort& port) {
    credit_ -= 1;
    memcpy(buffer_ + at_, &port.wdata, beat_);
    at_ += beat_;
    const bool last = at_ == kSector && left_ == 1;
    if (port.wdata_last != last) {
        fault_ = "the packet of a write has another length than its command";
        end(kData);
        return;
    }
    if (at_ < kSector) return;
    at_ = 0;
    if (ending_ == kOk && !medium_.in()) ending_ = kAbsent;
    if (ending_ == kOk && !medium_.write(lba_, buffer_)) ending_ = kData;
    ++lba_, --left_;
    if (last) end(ending_);
}

}  // namespace sim
