// The far end of the board's UART: standard output, a pseudo-terminal or a file.
#pragma once

#include <cstdio>
#include <string>

#include "common.h"

namespace sim {

class Uart {
  public:
    Uart() = default;
    Uart(const Uart&) = delete;
    ~Uart();
    // `where`: "none", "stdout", "stdio" (input too), "pty" or "file:PATH".
    void open(const std::string& where);
    void put(uint8_t byte);
    // Next byte for the board, if there is one; asks the operating system.
    bool get(uint8_t& byte);
    void flush();
    // Of the pseudo-terminal, else empty.
    const std::string& path() const { return path_; }
    // What bytes for the board are read from, or -1.
    int input() const { return in_; }
    uint64_t bytes_out() const { return bytes_out_; }

  private:
    void open_pty();

    FILE* file_ = nullptr;
    int in_ = -1;
    int pty_ = -1;
    bool dirty_ = false;
    uint64_t bytes_out_ = 0;
    std::string path_;
    std::string pending_;  // bytes the pty could not take yet
};

}  // namespace sim
