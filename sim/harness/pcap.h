// Writes a capture file of Ethernet frames with nanosecond time stamps of virtual time. What cannot
// be written, because the disk is full for example, is a UserError at the latest in close().
#pragma once

#include <cstdio>
#include <string>

#include "common.h"

namespace sim {

class Pcap {
  public:
    Pcap() = default;
    Pcap(const Pcap&) = delete;
    ~Pcap() {
        if (file_) fclose(file_);
    }
    void open(const std::string& path, double clock_hz);
    void write(const Frame& frame, Cycle now);
    void flush();
    void close();

  private:
    [[noreturn]] void fail() const;
    void put(const void* data, size_t size);
    std::string path_;
    FILE* file_ = nullptr;
    double seconds_per_cycle_ = 0;
};

}  // namespace sim
