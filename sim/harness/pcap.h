// Writes a capture file of Ethernet frames with nanosecond time stamps of virtual time.
#pragma once

#include <cstdio>
#include <string>

#include "common.h"

namespace sim {

class Pcap {
  public:
    Pcap() = default;
    Pcap(const Pcap&) = delete;
    ~Pcap() { close(); }
    void open(const std::string& path, double clock_hz);
    void write(const Frame& frame, Cycle now);
    void flush();
    void close();

  private:
    FILE* file_ = nullptr;
    double seconds_per_cycle_ = 0;
};

}  // namespace sim
