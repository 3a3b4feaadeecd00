// Commands from the program that started the harness, one a line on an inherited socket:
// `stats` (answered with one line of JSON), `quit`. The end of the socket means `quit`, so that
// a simulation never outlives its owner.
#pragma once

#include <functional>
#include <string>

namespace sim {

class Control {
  public:
    void open(int fd);
    bool active() const { return fd_ >= 0; }
    // Answers the commands that have come, `stats` with what that function says; false: `quit`.
    bool serve(const std::function<std::string()>& stats);
    void write(const std::string& line);

  private:
    // The next whole command, or empty if there is none.
    std::string read();

    int fd_ = -1;
    std::string buffer_;
};

}  // namespace sim
