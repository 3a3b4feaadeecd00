#include "job_log.h"

#include <cerrno>
#include <system_error>

#include "worker.h"

namespace jobd {

JobLog::JobLog(const std::string& path) : file_(std::fopen(path.c_str(), "we")) {
    const char* columns = "node,user,id,bytes,arrived_us,started_us,ended_us,outcome\n";
    if (file_) std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
    if (!file_ || std::fputs(columns, file_) < 0)
        throw std::system_error(errno, std::generic_category(), "cannot write " + path);
}

JobLog::~JobLog() { std::fclose(file_); }

void JobLog::add(const Line& line) {
    const auto since_start = [this](Clock::time_point time) {
        using Microseconds = std::chrono::microseconds;
        return (long long)std::chrono::duration_cast<Microseconds>(time - start_).count();
    };
    if (std::ferror(file_)) return;
    const int written = std::fprintf(
        file_, "%.*s,%.*s,%u,%zu,%lld,%lld,%lld,%s\n", int(line.node.size()), line.node.data(),
        int(line.user.size()), line.user.data(), unsigned(line.id), line.bytes,
        since_start(line.arrived), since_start(line.started), since_start(line.ended),
        status_name(line.outcome));
    if (written < 0) log("job log", "cannot be written any more");
}

}  // namespace jobd
