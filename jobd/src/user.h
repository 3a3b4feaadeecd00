// A user: the handler of distributed-fpga-framework, 3.3.1, for one connection.
#pragma once

#include <asio/awaitable.hpp>

#include <deque>
#include <memory>
#include <string>

#include "channel.h"
#include "group.h"
#include "scheduler.h"
#include "worker.h"

namespace jobd {

struct Request {
    Stored message;
    Clock::time_point arrived;
};

class User : public Share, public std::enable_shared_from_this<User> {
  public:
    User(Worker& worker, tcp::socket socket, std::shared_ptr<Group> group);

    // Serve it until it has ended and all its jobs have.
    static asio::awaitable<void> run(std::shared_ptr<User> self);

    // Whether there is a request, and room for its answer.
    bool can_send() const;
    Request pop_request();
    // One of its jobs has ended.
    void deliver(Stored answer);
    // Answer all requests that no node has.
    void refuse_requests(Status status);
    // End what has kept us waiting for longer than the options say.
    void check_patience(Clock::time_point now);

    bool is_gone() const { return gone_; }
    const std::string& name() const { return name_; }

    unsigned in_flight = 0;  // jobs assigned to a node

  private:
    enum class State { kInitial, kNodesConfiguration, kDataRouting };
    // Why no more messages are taken, and the ID of the message in question.
    struct Ending {
        Status status = Status::OK;
        uint32_t id = 0;
    };

    asio::awaitable<Ending> read_messages();
    std::optional<Ending> take_data(Stored message);
    asio::awaitable<std::optional<Ending>> configure(Stored message);
    asio::awaitable<void> finish(Ending ending);
    asio::awaitable<void> drained();
    asio::awaitable<void> wait_for_room();
    static asio::awaitable<void> write_loop(std::shared_ptr<User> self);
    void refuse(Status status, uint32_t id);
    void leave(const std::string& reason);

    Worker& worker_;
    Channel channel_;
    std::string name_;
    std::shared_ptr<Group> group_;
    State state_ = State::kInitial;
    std::deque<Request> requests_;
    size_t request_bytes_ = 0;
    Event changed_;
    bool gone_ = false, written_ = false, timed_out_ = false, refused_ = false;
};

}  // namespace jobd
