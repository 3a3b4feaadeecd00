// The ports of one thread, and what looks after its connections.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>

#include <memory>
#include <vector>

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
    // Connect to a node, and again when the connection has ended.
    void connect_to(const PassiveNode& node);
    void start();
    // End all connections; called by the thread itself.
    void stop();

  private:
    tcp::acceptor listen_at(uint16_t port, bool shared);
    asio::awaitable<void> accept_users(tcp::acceptor acceptor);
    asio::awaitable<void> accept_nodes(tcp::acceptor acceptor, std::vector<Server*> servers);
    asio::awaitable<void> accept_readers(tcp::acceptor acceptor);
    asio::awaitable<void> answer_reader(tcp::socket socket);
    asio::awaitable<void> keep_connected(PassiveNode node);
    asio::awaitable<void> look_after();
    asio::awaitable<void> serve(tcp::socket socket);
    void add_node(tcp::socket socket, std::shared_ptr<Origin> origin);

    Worker& worker_;
    std::shared_ptr<Group> shared_;  // null if users have own nodes
    std::vector<std::weak_ptr<Group>> own_;
};

}  // namespace jobd
