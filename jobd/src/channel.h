// A TCP connection that carries SMP messages, each stored whole before it is passed on.
//
// So a slow receiver holds up no sender, and a sender that ends in the middle of a message leaves
// no part of it in another stream. The payload of a large message is spliced into pipes; it is
// copied if it is small, if the server runs with --copy, or if there is no pipe (counted:
// without_pipe).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "event.h"
#include "message.h"
#include "metrics.h"
#include "pipes.h"
#include "read_buffer.h"

namespace jobd {

using Clock = std::chrono::steady_clock;
using asio::ip::tcp;

// A whole message: `bytes` with the header, and for a data or stream message the ID, then the contents of the
// pipes, then `rest`.
struct Stored {
    smp::Bytes bytes;
    std::vector<LentPipe> pipes;
    smp::Bytes rest;

    size_t size() const;
    bool is_plain() const { return pipes.empty() && rest.empty(); }
    smp::Header header() const { return smp::load_header(bytes); }
    // Of a data or stream message with an ID.
    uint32_t id() const { return smp::load_u32(std::span(bytes).subspan(smp::kHeaderBytes)); }
    void set_id(uint32_t id) { smp::store_u32(std::span(bytes).subspan(smp::kHeaderBytes), id); }
};

// What receive() found: a message; the end of the stream, perhaps in the middle of a message; or a
// header that it refuses for the reason given.
struct Received {
    enum Kind { kMessage, kEnd, kRefused } kind;
    Status status = Status::OK;
    smp::Header header = {};
};

// Reading and writing are two coroutines of the same thread. Both throw std::system_error if the
// connection breaks or is closed.
class Channel {
  public:
    // `pool`: null to copy everything.
    Channel(tcp::socket socket, asio::io_context& io, PipePool* pool, Counters& counters);

    // The next message, in place of what `into` was.
    asio::awaitable<Received> receive(Stored& into, smp::Limits limits);
    // The same without waiting, and without a coroutine: false if input() must be awaited first.
    // `into` is to be the same object until it is true.
    bool try_receive(Stored& into, const smp::Limits& limits, Received& received);
    asio::awaitable<void> input();
    // Since when the first bytes of a message have been there without its end.
    std::optional<Clock::time_point> incomplete_since() const { return incomplete_since_; }
    bool has_unread() const { return buffer_.size() > 0; }

    // Queue a message for write_loop().
    void post(Stored message);
    void post(smp::Bytes message);
    // Send what is queued; return after finish() when all of it is sent.
    asio::awaitable<void> write_loop();
    void finish();
    size_t queued() const { return queue_.size(); }
    size_t queued_bytes() const { return queued_bytes_; }
    // Called after some of the queue was sent.
    std::function<void()> on_sent;

    // Say that no more is sent, and discard what comes until the peer ends: closing a socket with
    // unread bytes would reset the connection and could take the last answer with it.
    asio::awaitable<void> linger();
    // What was not received yet is not waited for: receive() finds the end.
    void stop_reading();
    // Both loops end with an exception.
    void close();
    bool is_open() const { return socket_.is_open(); }
    // Let go of the socket, whose loops end as after close(); its descriptor stays open.
    int release();
    std::string peer() const { return peer_; }

  private:
    // What a step of reading came to: done; nothing is there now; the stream has ended.
    enum class Step { kDone, kNothing, kEnd };

    asio::awaitable<void> wait(tcp::socket::wait_type what);
    Step take_header(Stored& into, const smp::Limits& limits, Received& received);
    Step take_rest(Stored& into);
    Step fill();
    Step read(smp::Bytes& into);
    Step recv(std::span<std::byte> room, size_t& found);
    Step splice_in(Stored& into);
    bool add_pipe(Stored& into);
    void wake_at(size_t bytes);
    // Whether all that is queued was sent; false: what is next has no room in the socket.
    bool flush();
    bool send_plain();
    bool send_stored();
    bool write(std::span<const std::byte> bytes, bool more);
    bool splice_out(LentPipe& from, bool more);

    tcp::socket socket_;
    PipePool* pool_;
    Counters& counters_;
    std::string peer_;
    smp::ReadBuffer buffer_;
    size_t read_ahead_;
    bool drained_ = false;
    size_t wakes_at_ = 1;  // bytes that make the socket readable
    // Of the message that comes: whether its header is known; bytes that are not there yet of
    // Stored::bytes or Stored::rest, and after it.
    std::optional<smp::Header> header_;
    size_t missing_ = 0, behind_ = 0;
    std::optional<Clock::time_point> incomplete_since_;
    std::deque<Stored> queue_;
    size_t sent_ = 0;  // bytes of the first of the queue that are in memory
    size_t queued_bytes_ = 0;
    Event posted_;
    bool finishing_ = false;
};

}  // namespace jobd
