// Commands from the program that started the harness, one a line on an inherited socket:
// `stats`, `ticks N` (Ticker::hurry) and `quit`; each but the last is answered with one line of JSON.
// The end of the socket means `quit`, so that a simulation never outlives its owner.
#pragma once

#include <functional>
#include <string>

namespace sim {

class Control {
  public:
    void open(int fd);
    bool active() const { return fd_ >= 0; }
    int fd() const { return fd_; }
    // Answers the commands that have come with what that function says, "" for one that it does not
    // have; false: `quit`.
    bool serve(const std::function<std::string(const std::string&)>& answer);
    void write(const std::string& line);

  private:
    // The next whole command, or empty if there is none.
    std::string read();

    int fd_ = -1;
    std::string buffer_;
};

}  // namespace sim
