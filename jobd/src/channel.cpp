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
constexpr size_t kMostAwaited = 1 << 18;  // bytes that come before we are woken up

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

// In the middle of a large message there is nothing to do before the rest is there, or a good part.
asio::awaitable<void> Channel::input() {
    if (!incomplete_since_ && (header_ || buffer_.size() > 0)) incomplete_since_ = Clock::now();
    wake_at(std::clamp<size_t>(missing_ + behind_, 1, kMostAwaited));
    return socket_.async_wait(tcp::socket::wait_read, asio::use_awaitable);
}

void Channel::wake_at(size_t bytes) {
    if (bytes < kSpliceFrom) bytes = 1;
    if (bytes == wakes_at_) return;
    const int value = int(wakes_at_ = bytes);
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
}

asio::awaitable<Received> Channel::receive(Stored& into, smp::Limits limits) {
    Received received;
    while (!try_receive(into, limits, received)) co_await input();
    co_return received;
}

bool Channel::try_receive(Stored& into, const smp::Limits& limits, Received& received) {
    Step step = header_ ? Step::kDone : take_header(into, limits, received);
    if (step == Step::kDone && received.kind == Received::kRefused) return true;
    if (step == Step::kDone) step = take_rest(into);
    if (step == Step::kNothing) return false;
    if (step == Step::kDone)
        received = {Received::kMessage, Status::OK, *header_};
    else
        received = {Received::kEnd};
    header_.reset();
    missing_ = behind_ = 0;
    if (step == Step::kDone) incomplete_since_.reset();
    return true;
}

Channel::Step Channel::take_header(Stored& into, const smp::Limits& limits, Received& received) {
    into = Stored{};
    received = {Received::kMessage};
    while (buffer_.size() < smp::kHeaderBytes)
        if (const Step step = fill(); step != Step::kDone) return step;
    const auto header = smp::load_header(buffer_.contents());
    const Status status = smp::judge(header, limits);
    if (status != Status::OK) {
        received = {Received::kRefused, status, header};
        return Step::kDone;
    }
    const size_t total = smp::kHeaderBytes + header.size;
    const bool large = pool_ && header.is_job() && total >= kSpliceFrom;
    // After a large message another is likely: read no part of it that could be spliced.
    read_ahead_ = large ? smp::kDataHeaderBytes : kBuffer;
    const size_t copied =
        large ? std::min(total, std::max(smp::kDataHeaderBytes, buffer_.size())) : total;
    into.bytes.resize(copied);
    counters_.copied.add(int64_t(copied));
    header_ = header;
    missing_ = copied;
    behind_ = total - copied;
    return Step::kDone;
}

Channel::Step Channel::take_rest(Stored& into) {
    if (into.rest.empty() && missing_ > 0)
        if (const Step step = read(into.bytes); step != Step::kDone) return step;
    if (const Step step = splice_in(into); step != Step::kDone) return step;
    return missing_ > 0 ? read(into.rest) : Step::kDone;
}

// Read ahead.
Channel::Step Channel::fill() {
    const auto room = buffer_.room(read_ahead_);
    size_t count = 0;
    const Step step = recv(room, count);
    buffer_.filled(count);
    return step;
}

// Read the last `missing_` bytes.
Channel::Step Channel::read(smp::Bytes& into) {
    missing_ -= buffer_.take(std::span(into).last(missing_));
    while (missing_ > 0) {
        size_t count = 0;
        const Step step = recv(std::span(into).last(missing_), count);
        missing_ -= count;
        if (step != Step::kDone) return step;
    }
    return Step::kDone;
}

Channel::Step Channel::recv(std::span<std::byte> room, size_t& found) {
    // The last call took all that there was: another would find nothing, most of the time.
    if (std::exchange(drained_, false)) return Step::kNothing;
    const ssize_t count = ::recv(socket_.native_handle(), room.data(), room.size(), 0);
    if (count == 0) return Step::kEnd;
    if (count < 0 && !must_wait()) fail("recv");
    if (count < 0) return Step::kNothing;
    found = size_t(count);
    drained_ = found < room.size();
    return Step::kDone;
}

// Splice until nothing is left; what has no pipe is copied.
Channel::Step Channel::splice_in(Stored& into) {
    constexpr unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
    for (bool is_full = into.pipes.empty(); behind_ > 0;) {
        if (is_full && !add_pipe(into)) break;
        LentPipe& last = into.pipes.back();
        const int from = socket_.native_handle();
        const ssize_t count = ::splice(from, nullptr, last.pipe().in(), nullptr, behind_, flags);
        if (count == 0) return Step::kEnd;
        if (count < 0 && !must_wait()) fail("splice");
        is_full = count < 0 && last.pipe().is_full();
        if (count < 0 && !is_full) return Step::kNothing;
        if (is_full) continue;
        last.bytes += size_t(count);
        behind_ -= size_t(count);
        counters_.spliced.add(int64_t(count));
    }
    return Step::kDone;
}

// Without one, what is left is for memory.
bool Channel::add_pipe(Stored& into) {
    if (auto pipe = pool_->take()) {
        into.pipes.push_back(std::move(*pipe));
        return true;
    }
    counters_.without_pipe.add(1);
    counters_.copied.add(int64_t(behind_));
    into.rest.resize(behind_);
    missing_ = std::exchange(behind_, 0);
    return false;
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
        while (!flush()) co_await wait(tcp::socket::wait_write);
        if (finishing_) co_return;
        if (!socket_.is_open()) throw std::system_error(ECANCELED, std::generic_category());
        co_await posted_.wait();
    }
}

bool Channel::flush() {
    while (!queue_.empty()) {
        if (!(queue_.front().is_plain() ? send_plain() : send_stored())) return false;
        if (on_sent) on_sent();
    }
    return true;
}

// Send the messages at the queue's head that are in memory, as many as go at once.
bool Channel::send_plain() {
    iovec pieces[kMostPieces];
    msghdr message{};
    message.msg_iov = pieces;
    size_t skip = sent_;
    for (auto& queued : queue_) {
        if (message.msg_iovlen == kMostPieces || !queued.is_plain()) break;
        pieces[message.msg_iovlen++] = {queued.bytes.data() + skip, queued.bytes.size() - skip};
        skip = 0;
    }
    const int flags = MSG_NOSIGNAL | (message.msg_iovlen < queue_.size() ? MSG_MORE : 0);
    const ssize_t count = ::sendmsg(socket_.native_handle(), &message, flags);
    if (count < 0 && !must_wait()) fail("send");
    if (count < 0) return false;
    queued_bytes_ -= size_t(count);
    sent_ += size_t(count);
    while (!queue_.empty() && queue_.front().is_plain() && sent_ >= queue_.front().bytes.size()) {
        sent_ -= queue_.front().bytes.size();
        queue_.pop_front();
    }
    return true;
}

// Send the message at the queue's head. What follows soon fills the last segment of what precedes
// it: a small one costs as much as a full one.
bool Channel::send_stored() {
    Stored& message = queue_.front();
    const size_t head = message.bytes.size();
    if (sent_ < head && !write(std::span(message.bytes).subspan(sent_), true)) return false;
    const bool more = queue_.size() > 1;
    for (auto& part : message.pipes) {
        const bool is_last = &part == &message.pipes.back() && message.rest.empty();
        if (!splice_out(part, more || !is_last)) return false;
    }
    if (!write(std::span(message.rest).subspan(sent_ - head), more)) return false;
    sent_ = 0;
    queue_.pop_front();
    return true;
}

bool Channel::write(std::span<const std::byte> bytes, bool more) {
    const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
    while (!bytes.empty()) {
        const ssize_t count = ::send(socket_.native_handle(), bytes.data(), bytes.size(), flags);
        if (count < 0 && !must_wait()) fail("send");
        if (count < 0) return false;
        bytes = bytes.subspan(size_t(count));
        sent_ += size_t(count);
        queued_bytes_ -= size_t(count);
    }
    return true;
}

bool Channel::splice_out(LentPipe& from, bool more) {
    const unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | (more ? SPLICE_F_MORE : 0);
    while (from.bytes > 0) {
        const int to = socket_.native_handle();
        const ssize_t count = ::splice(from.pipe().out(), nullptr, to, nullptr, from.bytes, flags);
        if (count == 0 || (count < 0 && !must_wait())) fail("splice");
        if (count < 0) return false;
        from.bytes -= size_t(count);
        queued_bytes_ -= size_t(count);
    }
    return true;
}

asio::awaitable<void> Channel::linger() {
    socket_.shutdown(tcp::socket::shutdown_send);
    smp::Bytes discarded(kBuffer);
    incomplete_since_ = Clock::now();  // the caller's limit for messages holds for this, too
    wake_at(1);
    for (Step step = Step::kDone; step != Step::kEnd;) {
        size_t count = 0;
        step = recv(discarded, count);
        if (step == Step::kNothing) co_await wait(tcp::socket::wait_read);
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
