// Commands from the program that started the harness, one a line on an inherited socket:
// `stats` (answered with one line of JSON), `quit`. The end of the socket means `quit`, so that
// a simulation never outlives its owner.
#pragma once

#include <string>

namespace sim {

class Control {
  public:
    void open(int fd);
    bool active() const { return fd_ >= 0; }
    // The next whole command, or empty if there is none.
    std::string read();
    void write(const std::string& line);

  private:
    int fd_ = -1;
    std::string buffer_;
};

}  // namespace sim
