// Measures what the job server adds: a raw echo server, and a user that keeps jobs outstanding.
//
//   trebuchet-jobd-load --echo 1                print a port, echo the messages of each connection
//   trebuchet-jobd-load --server HOST:PORT ...  print a line of JSON; --wait 1: begin at a line
//
// Blocking threads and plain buffers, so that echo server and clients cost the least that is
// possible.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "message.h"

namespace {

using Clock = std::chrono::steady_clock;
using smp::Bytes;

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

void set_up(int socket, const std::string& congestion) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!congestion.empty() && ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                                            socklen_t(congestion.size())) < 0)
        fail("congestion control");
}

// False at the end of the stream.
bool read_all(int socket, std::span<std::byte> into) {
    while (!into.empty()) {
        const ssize_t count = ::recv(socket, into.data(), into.size(), 0);
        if (count <= 0) return false;
        into = into.subspan(size_t(count));
    }
    return true;
}

bool write_all(int socket, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count <= 0) return false;
        bytes = bytes.subspan(size_t(count));
    }
    return true;
}

sockaddr_in loopback(uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return where;
}

// A whole message at a time, as the source's echo server (4.2.1) does.
void echo(int socket) {
    Bytes message;
    for (;;) {
        message.resize(smp::kHeaderBytes);
        if (!read_all(socket, message)) break;
        message.resize(smp::kHeaderBytes + smp::load_header(message).size);
        if (!read_all(socket, std::span(message).subspan(smp::kHeaderBytes))) break;
        if (!write_all(socket, message)) break;
    }
    ::close(socket);
}

[[noreturn]] void serve_echo(const std::string& congestion) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    set_up(listener, congestion);  // for its connections
    sockaddr_in where = loopback(0);
    socklen_t size = sizeof where;
    if (::bind(listener, reinterpret_cast<sockaddr*>(&where), size) < 0) fail("bind");
    if (::listen(listener, 64) < 0) fail("listen");
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size);
    std::printf("listening at 127.0.0.1: %u\n", ntohs(where.sin_port));
    std::fflush(stdout);
    for (;;)
        if (const int socket = ::accept(listener, nullptr, nullptr); socket >= 0)
            std::thread(echo, socket).detach();
}

// One connection with up to `outstanding` messages of `bytes` bytes of data under way.
class Load {
  public:
    Load(int socket, size_t bytes, unsigned outstanding)
        : socket_(socket), bytes_(bytes), room_(outstanding), sent_(outstanding) {}

    void run(double seconds) {
        std::thread receiver([this] { receive(); });
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        Bytes message(smp::kDataHeaderBytes + bytes_, std::byte{0});
        message[0] = static_cast<std::byte>(smp::Type::kData);
        smp::store_u32(std::span(message).subspan(4), uint32_t(bytes_ + smp::kIdBytes));
        begin_ = Clock::now();
        for (uint32_t id = 0; Clock::now() < end; ++id) {
            room_.acquire();
            const uint32_t slot = id % uint32_t(sent_.size());
            smp::store_u32(std::span(message).subspan(smp::kHeaderBytes), slot);
            sent_[slot] = Clock::now();
            if (!write_all(socket_, message)) break;
        }
        ::shutdown(socket_, SHUT_WR);
        receiver.join();
    }

    void print() {
        std::ranges::sort(latencies_);
        const auto at = [&](double share) {
            const double last = double(latencies_.size()) - 1;
            return last < 0 ? 0.0 : latencies_[size_t(share * last)];
        };
        const std::chrono::duration<double> length = last_ - begin_;
        std::printf("{\"answers\":%zu,\"errors\":%zu,\"seconds\":%.6f,\"p50_us\":%.1f,"
                    "\"p99_us\":%.1f}\n",
                    latencies_.size(), errors_, length.count(), at(0.5), at(0.99));
    }

  private:
    // The IDs of messages under way differ, though an answer may overtake another: a slot is free
    // again only when all before it are, which is near enough for latencies.
    void receive() {
        Bytes answer(smp::kHeaderBytes);
        for (;;) {
            answer.resize(smp::kHeaderBytes);
            if (!read_all(socket_, answer)) return;
            const auto header = smp::load_header(answer);
            answer.resize(smp::kHeaderBytes + header.size);
            if (!read_all(socket_, std::span(answer).subspan(smp::kHeaderBytes))) return;
            last_ = Clock::now();
            errors_ += !header.is(smp::Type::kData);
            const uint32_t slot = smp::load_u32(std::span(answer).subspan(smp::kHeaderBytes));
            if (header.is(smp::Type::kData) && slot < sent_.size())
                latencies_.push_back(
                    std::chrono::duration<double, std::micro>(last_ - sent_[slot]).count());
            room_.release();
        }
    }

    int socket_;
    size_t bytes_;
    std::counting_semaphore<> room_;
    std::vector<Clock::time_point> sent_;
    std::vector<double> latencies_;
    size_t errors_ = 0;
    Clock::time_point begin_, last_;
};

void measure(std::map<std::string, std::string>& options) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    const auto& port = options["--server"];
    const sockaddr_in where = loopback(uint16_t(std::stoul(port.substr(port.rfind(':') + 1))));
    set_up(socket, options["--congestion"]);
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&where), sizeof where) < 0)
        fail("connect");
    if (options.contains("--wait")) std::getchar();
    Load load(socket, std::stoul(options["--bytes"]),
              unsigned(std::stoul(options["--outstanding"])));
    load.run(std::stod(options["--seconds"]));
    load.print();
}

}  // namespace

int main(int count, char** words) {
    std::signal(SIGPIPE, SIG_IGN);
    std::map<std::string, std::string> options{
        {"--bytes", "16"}, {"--outstanding", "16"}, {"--seconds", "1"}};
    for (int i = 1; i + 1 < count; i += 2) options[words[i]] = words[i + 1];
    try {
        if (options.contains("--echo")) serve_echo(options["--congestion"]);
        measure(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "load: %s\n", error.what());
        return 1;
    }
    return 0;
}
