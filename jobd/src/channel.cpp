#include "channel.h"

#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <system_error>

#include "listen.h"

namespace jobd {

namespace {

constexpr size_t kBuffer = 1 << 16;
// Below this size two more system calls cost as much as the copy.
constexpr size_t kSpliceFrom = 1 << 15;
constexpr size_t kMostPieces = 64;  // messages sent in one system call

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

bool must_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// A peer that vanishes is noticed within a minute, though nothing is sent to it.
void keep_alive(int socket) {
    const int on = 1, idle = 30, interval = 10, probes = 3;  // seconds
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

std::string peer_of(const tcp::socket& socket) {
    asio::error_code error;
    const auto peer = socket.remote_endpoint(error);
    return error ? "?" : name_of(peer);
}

}  // namespace

size_t Stored::size() const {
    size_t sum = bytes.size() + rest.size();
    for (const auto& part : pipes) sum += part.bytes;
    return sum;
}

Channel::Channel(tcp::socket socket, asio::io_context& io, PipePool* pool, Counters& counters)
    : socket_(std::move(socket)),
      pool_(pool),
      counters_(counters),
      peer_(peer_of(socket_)),
      buffer_(kBuffer),
      read_ahead_(kBuffer),
      posted_(io) {
    asio::error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    keep_alive(socket_.native_handle());
    socket_.native_non_blocking(true, ignored);
}

asio::awaitable<void> Channel::wait(tcp::socket::wait_type what) {
    co_await socket_.async_wait(what, asio::use_awaitable);
}

asio::awaitable<bool> Channel::fill(size_t wanted) {
    for (;;) {
        // The last call took all that there was: another would find nothing, most of the time.
        if (std::exchange(drained_, false)) co_await wait(tcp::socket::wait_read);
        const auto room = buffer_.room(wanted);
        const ssize_t count = ::recv(socket_.native_handle(), room.data(), room.size(), 0);
        drained_ = count < ssize_t(room.size());
        if (count > 0) buffer_.filled(size_t(count));
        if (count >= 0) co_return count > 0;
        if (!must_wait()) fail("recv");
    }
}

asio::awaitable<bool> Channel::read(std::span<std::byte> into) {
    into = into.subspan(buffer_.take(into));
    while (!into.empty()) {
        const ssize_t count = ::recv(socket_.native_handle(), into.data(), into.size(), 0);
        if (count == 0) co_return false;
        if (count > 0)
            into = into.subspan(size_t(count));
        else if (must_wait())
            co_await wait(tcp::socket::wait_read);
        else
            fail("recv");
    }
    co_return true;
}

asio::awaitable<Received> Channel::receive(Stored& into, smp::Limits limits) {
    into = Stored{};
    incomplete_since_.reset();
    while (buffer_.size() < smp::kHeaderBytes) {
        if (!co_await fill(read_ahead_)) co_return Received{Received::kEnd};
        if (!incomplete_since_) incomplete_since_ = Clock::now();
    }
    const auto header = smp::load_header(buffer_.contents());
    const Status status = smp::judge(header, limits);
    if (status != Status::OK) co_return Received{Received::kRefused, status, header};

    const size_t total = smp::kHeaderBytes + header.size;
    const bool large = pool_ && header.is_job() && total >= kSpliceFrom;
    // After a large message another is likely: read no part of it that could be spliced.
    read_ahead_ = large ? smp::kDataHeaderBytes : kBuffer;
    into.bytes.resize(large ? std::min(total, std::max(smp::kDataHeaderBytes, buffer_.size()))
                            : total);
    if (!co_await read(into.bytes)) co_return Received{Received::kEnd};
    counters_.copied.add(int64_t(into.bytes.size()));
    if (large && !co_await store(into, total - into.bytes.size()))
        co_return Received{Received::kEnd};
    incomplete_since_.reset();
    co_return Received{Received::kMessage, Status::OK, header};
}

asio::awaitable<bool> Channel::store(Stored& into, size_t left) {
    while (left > 0) {
        auto pipe = pool_->take();
        if (!pipe) {
            counters_.without_pipe.add(1);
            counters_.copied.add(int64_t(left));
            into.rest.resize(left);
            co_return co_await read(into.rest);
        }
        const bool open = co_await splice_in(*pipe, left);
        counters_.spliced.add(int64_t(pipe->bytes));
        if (!open) co_return false;
        into.pipes.push_back(std::move(*pipe));
    }
    co_return true;
}

// Splice until the pipe is full or nothing is left of the message.
asio::awaitable<bool> Channel::splice_in(LentPipe& into, size_t& left) {
    constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    while (left > 0) {
        const int from = socket_.native_handle();
        const ssize_t count = ::splice(from, nullptr, into.pipe().in(), nullptr, left, flags);
        if (count == 0) co_return false;
        if (count > 0) {
            into.bytes += size_t(count);
            left -= size_t(count);
        } else if (!must_wait()) {
            fail("splice");
        } else if (into.pipe().is_full()) {
            break;
        } else {
            co_await wait(tcp::socket::wait_read);
        }
    }
    co_return true;
}

void Channel::post(Stored message) {
    queued_bytes_ += message.size();
    queue_.push_back(std::move(message));
    posted_.notify();
}

void Channel::post(smp::Bytes message) { post(Stored{std::move(message), {}, {}}); }

void Channel::finish() {
    finishing_ = true;
    posted_.notify();
}

asio::awaitable<void> Channel::write_loop() {
    for (;;) {
        while (queue_.empty()) {
            if (finishing_) co_return;
            if (!socket_.is_open()) throw std::system_error(ECANCELED, std::generic_category());
            co_await posted_.wait();
        }
        if (queue_.front().is_plain())
            co_await send_plain();
        else
            co_await send_stored();
        if (on_sent) on_sent();
    }
}

// Send the messages at the queue's head that are in memory, as many as go at once.
asio::awaitable<void> Channel::send_plain() {
    for (;;) {
        iovec pieces[kMostPieces];
        msghdr message{};
        message.msg_iov = pieces;
        size_t skip = sent_;
        for (auto& queued : queue_) {
            if (message.msg_iovlen == kMostPieces || !queued.is_plain()) break;
            pieces[message.msg_iovlen++] = {queued.bytes.data() + skip, queued.bytes.size() - skip};
            skip = 0;
        }
        const ssize_t count = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL);
        if (count >= 0) {
            remove_sent(size_t(count));
            co_return;
        }
        if (!must_wait()) fail("send");
        co_await wait(tcp::socket::wait_write);
    }
}

void Channel::remove_sent(size_t bytes) {
    queued_bytes_ -= bytes;
    sent_ += bytes;
    while (!queue_.empty() && queue_.front().is_plain() && sent_ >= queue_.front().bytes.size()) {
        sent_ -= queue_.front().bytes.size();
        queue_.pop_front();
    }
}

asio::awaitable<void> Channel::send_stored() {
    Stored message = std::move(queue_.front());
    queue_.pop_front();
    const size_t size = message.size();
    co_await write(message.bytes, true);
    for (auto& part : message.pipes)
        co_await splice_out(part, &part != &message.pipes.back() || !message.rest.empty());
    co_await write(message.rest, false);
    queued_bytes_ -= size;
}

asio::awaitable<void> Channel::write(std::span<const std::byte> bytes, bool more) {
    const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    while (!bytes.empty()) {
        const ssize_t count = ::send(socket_.native_handle(), bytes.data(), bytes.size(), flags);
        if (count >= 0)
            bytes = bytes.subspan(size_t(count));
        else if (must_wait())
            co_await wait(tcp::socket::wait_write);
        else
            fail("send");
    }
}

asio::awaitable<void> Channel::splice_out(LentPipe& from, bool more) {
    const unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0);
    while (from.bytes > 0) {
        const int to = socket_.native_handle();
        const ssize_t count = ::splice(from.pipe().out(), nullptr, to, nullptr, from.bytes, flags);
        if (count > 0)
            from.bytes -= size_t(count);
        else if (count < 0 && must_wait())
            co_await wait(tcp::socket::wait_write);
        else
            fail("splice");
    }
}

asio::awaitable<void> Channel::linger() {
    socket_.shutdown(tcp::socket::shutdown_send);
    smp::Bytes discarded(kBuffer);
    buffer_ = smp::ReadBuffer(kBuffer);
    incomplete_since_ = Clock::now();  // the caller's limit for messages holds for this, too
    while (co_await read(discarded)) {
    }
}

void Channel::stop_reading() {
    asio::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_receive, ignored);
}

void Channel::close() {
    asio::error_code ignored;
    socket_.close(ignored);
    posted_.notify();
}

int Channel::release() {
    asio::error_code ignored;
    const int descriptor = socket_.release(ignored);
    posted_.notify();
    return descriptor;
}

}  // namespace jobd
