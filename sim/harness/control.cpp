#include "control.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common.h"

namespace sim {

void Control::open(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0) throw UserError("--control " + std::to_string(fd) + ": " + strerror(errno));
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fd_ = fd;
}

std::string Control::read() {
    char chunk[256];
    const ssize_t n = ::read(fd_, chunk, sizeof chunk);
    if (n > 0) buffer_.append(chunk, size_t(n));
    const size_t end = buffer_.find('\n');
    if (end == std::string::npos) return n == 0 || (n < 0 && errno != EAGAIN) ? "quit" : "";
    const std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return line;
}

bool Control::serve(const std::function<std::string(const std::string&)>& answer) {
    while (active()) {
        const std::string command = read();
        if (command.empty()) break;
        if (command == "quit") return false;
        const std::string answered = answer(command);
        write(answered.empty() ? "{\"error\": \"unknown command\"}" : answered);
    }
    return true;
}

void Control::write(const std::string& line) {
    const std::string text = line + "\n";
    for (size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(fd_, text.data() + done, text.size() - done);
        if (n > 0) {
            done += size_t(n);
        } else if (errno == EAGAIN) {
            pollfd p{fd_, POLLOUT, 0};
            poll(&p, 1, 1000);
        } else {
            return;  // the reader is gone; read() will say so
        }
    }
}

}  // namespace sim
