// Nodes and the users whose jobs they do: all users of a thread, or one user with nodes of its own.
#pragma once

#include <asio/awaitable.hpp>

#include <memory>
#include <set>
#include <vector>

#include "node.h"
#include "registry.h"
#include "scheduler.h"
#include "worker.h"

namespace jobd {

class User;

class Group : public NodeListener, public std::enable_shared_from_this<Group> {
  public:
    explicit Group(Worker& worker);

    // A node joins; if the others are configured it is, too, before it has its first job.
    void add_node(tcp::socket socket, std::shared_ptr<Origin> origin);
    // With own nodes: those that no user has.
    void add_idle_nodes();
    size_t nodes() const { return nodes_.size(); }
    bool has_nodes() const { return !admitted_.empty(); }
    // Since when there have been none, if so.
    Clock::time_point without_nodes_since() const { return without_nodes_since_; }
    // Bytes of the largest message that the nodes take, as far as it is known.
    size_t largest() const { return largest_; }

    void join(User& user) { users_.insert(&user); }
    void leave(User& user);
    // Whether stream messages may come: no node has refused their type.
    bool takes_streams() const { return takes_streams_; }
    // The user goes, or wants another configuration: its record, if one is open, ends at its node.
    void end_record(User& user);
    // What is still to come of the user's record is answered so.
    void break_record(User& user, Status status);
    // Nodes that are no longer on the list have no more jobs, and go when they have done theirs.
    void withdraw_nodes();
    // A user can, or can no longer, send.
    void update(User& user);

    struct Outcome {
        Status status;
        uint32_t nodes;  // that are configured
    };
    // Wait until no job is in flight, then configure all nodes in parallel. OK if one node took it;
    // those that did not are lost.
    asio::awaitable<Outcome> configure(const User& user, ConfigurationBytes configuration);

    void check_patience(Clock::time_point now);
    // The server stops.
    void abandon();
    // No user has it any more: wait for the last answers and give the nodes back.
    static asio::awaitable<void> dissolve(std::shared_ptr<Group> self);

    void on_answer(Node& node, Job job, Stored answer, int64_t service_ns) override;
    void on_lost(Node& node, std::vector<Job> jobs) override;

  private:
    void dispatch();
    void send(User& user, Node& node);
    Node* choose_node(const User& user);
    void wake_blocked();
    void take_part_answer(Node& node, const Job& job, Status outcome);
    void withdraw(Node& node);
    void end_job(Job& job, Stored answer);
    void log_job(const Node& node, const Job& job, Clock::time_point started, Status outcome);
    void admit(Node& node);
    asio::awaitable<Outcome> configure_nodes(ConfigurationBytes configuration);
    static asio::awaitable<void> configure_node(std::shared_ptr<Group> self,
                                                std::shared_ptr<Node> node,
                                                ConfigurationBytes configuration);

    Worker& worker_;
    std::vector<std::shared_ptr<Node>> nodes_;
    std::set<Node*> admitted_;  // nodes that have jobs
    Clock::time_point without_nodes_since_ = Clock::now();
    Demultiplexer demultiplexer_;
    std::set<User*> users_;
    FairQueue fair_;
    std::set<User*> blocked_;  // users whose next part of a record no node can have now
    bool takes_streams_ = true;
    ConfigurationBytes configuration_;
    bool configuring_ = false;
    unsigned being_configured_ = 0;
    Status refusal_ = Status::NO_ANSWER;
    size_t in_flight_ = 0;
    size_t largest_;
    Event changed_;
};

}  // namespace jobd
