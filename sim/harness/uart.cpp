#include "uart.h"

#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace sim {

void Uart::open(const std::string& where) {
    if (where == "none") return;
    if (where == "stdout" || where == "stdio") {
        file_ = console();
        if (where == "stdio") in_ = STDIN_FILENO;
    } else if (where == "pty") {
        open_pty();
    } else if (where.rfind("file:", 0) == 0) {
        file_ = fopen(where.c_str() + 5, "wb");
        if (!file_) cannot_write("UART file '" + where.substr(5) + "'");
    } else {
        throw UserError("UART must be none, stdout, stdio, pty or file:PATH, not '" + where + "'");
    }
}

void Uart::open_pty() {
    pty_ = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (pty_ < 0 || grantpt(pty_) || unlockpt(pty_))
        throw UserError(std::string("cannot open a pseudo-terminal: ") + strerror(errno));
    path_ = ptsname(pty_);
    // Our own handle on the far end: raw mode stays, and reads don't fail while nobody is connected.
    const int far = ::open(path_.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios mode;
    if (far >= 0 && tcgetattr(far, &mode) == 0) {
        cfmakeraw(&mode);
        tcsetattr(far, TCSANOW, &mode);
    }
    in_ = pty_;
}

Uart::~Uart() {
    if (file_ && file_ != console()) fclose(file_);
    if (pty_ >= 0) ::close(pty_);
}

void Uart::put(uint8_t byte) {
    ++bytes_out_;
    dirty_ = true;
    if (file_) fputc(byte, file_);
    // Nobody listening: keep the first 64 KiB only.
    if (pty_ >= 0 && pending_.size() < 65536) pending_ += char(byte);
}

bool Uart::get(uint8_t& byte) {
    if (in_ < 0) return false;
    pollfd p{in_, POLLIN, 0};
    if (poll(&p, 1, 0) <= 0) return false;
    const ssize_t n = ::read(in_, &byte, 1);
    if (n == 0) in_ = -1;
    return n == 1;
}

void Uart::flush() {
    if (!dirty_) return;
    if (file_ && (fflush(file_) || ferror(file_))) {
        if (errno != EPIPE || file_ != console()) cannot_write("the UART's output");
        file_ = nullptr;  // nobody reads standard output any more
    }
    if (pty_ >= 0 && !pending_.empty()) {
        const ssize_t n = ::write(pty_, pending_.data(), pending_.size());
        if (n > 0) pending_.erase(0, size_t(n));
    }
    dirty_ = !pending_.empty();
}

}  // namespace sim
