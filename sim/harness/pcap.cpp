#include "pcap.h"

#include <cerrno>
#include <cmath>
#include <cstring>

namespace sim {

void Pcap::open(const std::string& path, double clock_hz) {
    file_ = fopen(path.c_str(), "wb");
    if (!file_) throw UserError("cannot write capture '" + path + "': " + strerror(errno));
    seconds_per_cycle_ = 1 / clock_hz;
    // draft-ietf-opsawg-pcap: magic with nanoseconds, version 2.4, snap length, LINKTYPE_ETHERNET.
    const uint32_t header[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    fwrite(header, sizeof header, 1, file_);
}

void Pcap::write(const Frame& frame, Cycle now) {
    if (!file_) return;
    const double t = double(now) * seconds_per_cycle_;
    const double seconds = std::floor(t);
    const uint32_t size = uint32_t(frame.data.size());
    const uint32_t header[4] = {uint32_t(seconds), uint32_t((t - seconds) * 1e9), size, size};
    fwrite(header, sizeof header, 1, file_);
    fwrite(frame.data.data(), size, 1, file_);
}

void Pcap::flush() {
    if (file_) fflush(file_);
}

void Pcap::close() {
    if (file_) fclose(file_);
    file_ = nullptr;
}

}  // namespace sim
