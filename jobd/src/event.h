// What a coroutine waits for until another one of the same thread notifies it.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

namespace jobd {

// Not latched: test the condition, then wait, then test it again. All waiters are resumed.
class Event {
  public:
    explicit Event(asio::io_context& io)
        : timer_(io, asio::steady_timer::time_point::max()) {}

    void notify() { timer_.cancel(); }
    asio::awaitable<void> wait() {
        asio::error_code cancelled;
        co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, cancelled));
    }

  private:
    asio::steady_timer timer_;
};

// Wait for a time. Ends early only with its coroutine.
inline asio::awaitable<void> pause(asio::io_context& io, asio::steady_timer::duration length) {
    asio::steady_timer timer(io, length);
    co_await timer.async_wait(asio::use_awaitable);
}

}  // namespace jobd
