// A file with a line for each job that a node had: which node, which user, when.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "message.h"

namespace jobd {

// Comma-separated values; the first line names the columns. Times are whole microseconds since the
// server's start. Lines are written as jobs end, each by one system call, so several threads may
// share the file and a reader finds whole lines. A file that takes no more (a full disk) is given
// up with a line in the server's log; jobs go on.
class JobLog {
  public:
    using Clock = std::chrono::steady_clock;

    struct Line {
        std::string_view node, user;
        uint32_t id;   // the user's
        size_t bytes;  // of the request
        // Its arrival here; its start on the node, which is the end of the job before it there;
        // its end.
        Clock::time_point arrived, started, ended;
        Status outcome;
    };

    // Throws std::system_error if the file cannot be written. An old one is replaced.
    explicit JobLog(const std::string& path);
    ~JobLog();
    JobLog(const JobLog&) = delete;
    JobLog& operator=(const JobLog&) = delete;

    // Any thread.
    void add(const Line& line);

  private:
    std::FILE* file_;
    const Clock::time_point start_ = Clock::now();
};

}  // namespace jobd
