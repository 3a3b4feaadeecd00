// A connection to a node: its jobs, the result receiving loop, its configuration.
#pragma once

#include <asio/awaitable.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel.h"
#include "registry.h"
#include "scheduler.h"
#include "worker.h"

namespace jobd {

class Node;
class User;

struct Job {
    std::shared_ptr<User> user;
    uint32_t id = 0;   // the user's
    size_t bytes = 0;  // of the message
    Clock::time_point arrived, sent;
    int64_t reserved = 0;  // nanoseconds that the user was charged
    bool is_part = false;    // of a record: a stream message
    bool is_end = false;     // the part without bytes
    bool is_ours = false;    // ends the record of a user who did not; nobody waits for the answer
};

// What a node tells its group.
class NodeListener {
  public:
    // A job has ended with this message, whose ID is the job's again.
    virtual void on_answer(Node& node, Job job, Stored answer, int64_t service_ns) = 0;
    // The connection has ended; these jobs will not be answered.
    virtual void on_lost(Node& node, std::vector<Job> jobs) = 0;

  protected:
    ~NodeListener() = default;
};

// A job has the number of its slot for an ID on the wire, and in the upper 24 bits the number of
// times that the slot was used: an answer that comes late or twice finds no job.
class Node : public Seat, public std::enable_shared_from_this<Node> {
  public:
    Node(Worker& worker, tcp::socket socket, std::shared_ptr<Origin> origin);

    // Start both loops. `listener` is called until it is set to null or the node is lost.
    void start(NodeListener& listener);
    void send(Job job, Stored request);
    // Whose record it has; null: nobody's.
    void set_record(User* user);
    User* record_user() const { return record_user_; }
    bool has_jobs() const;
    bool is_withdrawn() const { return origin_->withdrawn; }
    // With no jobs outstanding: OK if the node took it.
    asio::awaitable<Status> configure(ConfigurationBytes configuration);
    // End it if it has kept us waiting for longer than `patience`.
    void check_patience(Clock::time_point now);
    // End the connection; jobs that it has are given up.
    void lose(const std::string& reason);
    // The same for what a board does not do: it is not soon connected to again.
    void reject(const std::string& reason);
    // The connection's descriptor, for another user; lost if bytes of it were read already.
    std::optional<IdleNode> release();
    // Call the listener no more.
    void forget_listener() { listener_ = nullptr; }

    const std::string& name() const { return origin_->name; }
    bool is_lost() const { return lost_; }

  private:
    struct Slot {
        std::optional<Job> job;
        uint32_t generation = 0;
    };

    static asio::awaitable<void> read_loop(std::shared_ptr<Node> self);
    static asio::awaitable<void> write_loop(std::shared_ptr<Node> self);
    static asio::awaitable<void> connect_to_configure(std::shared_ptr<Node> self,
                                                      ConfigurationBytes configuration);
    void take(Stored answer);
    void take_response(Stored answer);
    void lose_lease();
    ConfigurationBytes stamped(ConfigurationBytes configuration) const;
    void finish(Slot& slot, Stored answer);
    Slot* find(uint32_t wire_id);
    Slot* oldest();
    void set_configured(Status status);

    Worker& worker_;
    std::shared_ptr<Origin> origin_;
    std::shared_ptr<NodeCounters> numbers_;
    Channel channel_;
    NodeListener* listener_ = nullptr;
    std::vector<Slot> slots_;
    Clock::time_point last_answer_{};
    std::optional<Clock::time_point> configuring_since_;
    std::optional<Status> configured_;
    std::shared_ptr<Channel> management_;  // while it carries a configuration
    Event configured_event_;
    User* record_user_ = nullptr;
    bool lost_ = false;
};

}  // namespace jobd
