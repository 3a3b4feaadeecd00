#include "pcap.h"

#include <cerrno>
#include <cmath>

namespace sim {

void Pcap::open(const std::string& path, double clock_hz) {
    path_ = path;
    file_ = fopen(path.c_str(), "wb");
    if (!file_) fail();
    seconds_per_cycle_ = 1 / clock_hz;
    // draft-ietf-opsawg-pcap: magic with nanoseconds, version 2.4, snap length, LINKTYPE_ETHERNET.
    const uint32_t header[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, 65535, 1};
    put(header, sizeof header);
}

void Pcap::fail() const { cannot_write("capture '" + path_ + "'"); }

void Pcap::put(const void* data, size_t size) {
    if (size && fwrite(data, size, 1, file_) != 1) fail();
}

void Pcap::write(const Frame& frame, Cycle now) {
    if (!file_) return;
    const double t = double(now) * seconds_per_cycle_;
    const double seconds = std::floor(t);
    const uint32_t size = uint32_t(frame.data.size());
    const uint32_t header[4] = {uint32_t(seconds), uint32_t((t - seconds) * 1e9), size, size};
    put(header, sizeof header);
    put(frame.data.data(), size);
}

void Pcap::flush() {
    if (file_ && fflush(file_)) fail();
}

void Pcap::close() {
    FILE* file = file_;
    file_ = nullptr;
    if (file && fclose(file)) fail();
}

}  // namespace sim
