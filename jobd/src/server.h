// The ports of one thread, and what looks after its connections.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <memory>
#include <vector>

#include "event.h"
#include "group.h"
#include "worker.h"

namespace jobd {

class Server {
  public:
    explicit Server(Worker& worker);

    // Listen for users, at a port that several threads may have; returns its number.
    uint16_t serve_users(uint16_t port);
    // Listen for nodes, and deal them to `servers`.
    uint16_t serve_nodes(uint16_t port, std::vector<Server*> servers);
    uint16_t serve_metrics(uint16_t port);
    // Connect to these nodes, and again when a connection has ended. Those that are not among them
    // any more do their jobs, and go. Called by the thread itself, but for the first time.
    void set_nodes(const std::vector<PassiveNode>& nodes);
    // Nodes of users of this thread are among those that another has let go.
    void withdraw_nodes();
    void start();
    // End all connections; called by the thread itself.
    void stop();

  private:
    // A node that is connected to, and again.
    struct Link {
        Link(asio::io_context& io, const PassiveNode& of);
        void withdraw();

        const PassiveNode node;
        const std::shared_ptr<Origin> origin;
        asio::steady_timer rest;  // until the next attempt
        Event ended;
        bool connected = false;
    };

    tcp::acceptor listen_at(uint16_t port, bool shared);
    asio::awaitable<void> accept_users(tcp::acceptor acceptor);
    asio::awaitable<void> accept_nodes(tcp::acceptor acceptor, std::vector<Server*> servers);
    asio::awaitable<void> accept_readers(tcp::acceptor acceptor);
    asio::awaitable<void> answer_reader(tcp::socket socket);
    asio::awaitable<void> keep_connected(std::shared_ptr<Link> link);
    asio::awaitable<void> look_after();
    asio::awaitable<void> serve(tcp::socket socket);
    void add_node(tcp::socket socket, std::shared_ptr<Origin> origin);

    Worker& worker_;
    std::vector<std::shared_ptr<Link>> links_;
    std::shared_ptr<Group> shared_;  // null if users have own nodes
    std::vector<std::weak_ptr<Group>> own_;
};

}  // namespace jobd
