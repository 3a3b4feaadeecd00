// A TAP device: the kernel's end of the simulated Ethernet.
#pragma once

#include <string>

#include "common.h"

namespace sim {

// Instead of an address: somebody else has configured the device.
inline const char* const kAsItIs = "none";

class Tap {
  public:
    Tap() = default;
    Tap(const Tap&) = delete;
    ~Tap();
    // Creates (or attaches to) device `name`, gives it `address` ("192.0.2.1/24") and, if asked, a MAC
    // address, and brings it up; with kAsItIs it does none of these.
    void open(const std::string& name, const std::string& address, const Mac* mac = nullptr);
    bool read(Frame& frame);
    void write(const Frame& frame);
    int fd() const { return fd_; }

  private:
    int fd_ = -1;
};

}  // namespace sim
