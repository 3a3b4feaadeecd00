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

// What a user sends in stream messages. All parts of a record go to one node, in order: it keeps
// what it needs of the parts before. A record ends with a part without bytes, or when a node answers
// one with an error; then the next part begins another.
struct Record {
    Node* node = nullptr;    // that has it; null: none is open
    unsigned in_flight = 0;  // its parts at the node
    bool open = false;       // what the node has: a record that has begun and not ended
    bool end_sent = false;   // of the parts sent to the node the last one was the end
    std::byte role{};        // of the header
    // How the parts up to the end are answered, since the node was lost or there was none; OK: they
    // go to a node.
    Status broken = Status::OK;
};

class User : public Share, public std::enable_shared_from_this<User> {
  public:
    User(Worker& worker, tcp::socket socket, std::shared_ptr<Group> group);

    // Serve it until it has ended and all its jobs have.
    static asio::awaitable<void> run(std::shared_ptr<User> self);

    // Whether there is a request, and room for its answer.
    bool can_send() const;
    // With a request: whether the next one is a part of a record.
    bool part_is_next() const { return requests_.front().message.header().is(smp::Type::kStream); }
    // Answer the parts of a broken record that are next.
    void refuse_parts();
    Request pop_request();
    // One of its jobs has ended; without an answer, if the server began it.
    void deliver(Stored answer);
    // Answer all requests that no node has.
    void refuse_requests(Status status);
    // End what has kept us waiting for longer than the options say.
    void check_patience(Clock::time_point now);

    bool is_gone() const { return gone_; }
    const std::string& name() const { return name_; }

    unsigned in_flight = 0;  // jobs assigned to a node
    Record record;

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
    bool is_full() const;
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
