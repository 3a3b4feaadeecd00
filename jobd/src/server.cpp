#include "server.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "listen.h"
#include "user.h"

namespace jobd {

namespace {

using namespace std::chrono_literals;

constexpr auto kFirstRetry = 250ms;
constexpr auto kLastRetry = 64s;
// A connection that lasted so long is not one of a node that flaps; if it did not end by a fault,
// not one of a node that is none, either.
constexpr auto kSettled = 10s;
constexpr auto kRest = 100ms;   // after accept() has failed, for want of descriptors mostly
constexpr size_t kMostRequestBytes = 4096;

}  // namespace

Server::Server(Worker& worker) : worker_(worker) {
    if (!worker.options.own) shared_ = std::make_shared<Group>(worker);
}

tcp::acceptor Server::listen_at(uint16_t port, bool shared) {
    return listen(worker_.io, worker_.options.address, port, shared,
                  worker_.options.congestion);
}

uint16_t Server::serve_users(uint16_t port) {
    auto acceptor = listen_at(port, worker_.options.threads > 1);
    port = acceptor.local_endpoint().port();
    asio::co_spawn(worker_.io, accept_users(std::move(acceptor)), asio::detached);
    return port;
}

uint16_t Server::serve_nodes(uint16_t port, std::vector<Server*> servers) {
    auto acceptor = listen_at(port, false);
    port = acceptor.local_endpoint().port();
    asio::co_spawn(worker_.io, accept_nodes(std::move(acceptor), std::move(servers)),
                   asio::detached);
    return port;
}

uint16_t Server::serve_metrics(uint16_t port) {
    auto acceptor = listen_at(port, false);
    port = acceptor.local_endpoint().port();
    asio::co_spawn(worker_.io, accept_readers(std::move(acceptor)), asio::detached);
    return port;
}

Server::Link::Link(asio::io_context& io, const PassiveNode& of)
    : node(of),
      origin(std::make_shared<Origin>(of.name, of.management, of.epoch)),
      rest(io),
      ended(io) {}

void Server::Link::withdraw() {
    origin->withdrawn = true;
    rest.cancel();
}

void Server::set_nodes(const std::vector<PassiveNode>& nodes) {
    auto before = std::exchange(links_, {});
    for (const auto& node : nodes) {
        const auto same = std::ranges::find_if(
            before, [&](const auto& link) { return link->node.text == node.text; });
        if (same != before.end()) {
            links_.push_back(*same);
            before.erase(same);
        } else {
            links_.push_back(std::make_shared<Link>(worker_.io, node));
            asio::co_spawn(worker_.io, keep_connected(links_.back()), asio::detached);
        }
    }
    for (const auto& link : before) link->withdraw();
    withdraw_nodes();
}

void Server::withdraw_nodes() {
    worker_.registry.remove_withdrawn();
    if (shared_) shared_->withdraw_nodes();
    for (const auto& own : std::vector(own_))
        if (const auto group = own.lock()) group->withdraw_nodes();
}

void Server::start() { asio::co_spawn(worker_.io, look_after(), asio::detached); }

void Server::stop() {
    if (shared_) shared_->abandon();
    for (const auto& own : own_)
        if (const auto group = own.lock()) group->abandon();
}

asio::awaitable<void> Server::accept_users(tcp::acceptor acceptor) {
    for (;;) {
        asio::error_code error;
        auto socket = co_await acceptor.async_accept(
            asio::redirect_error(asio::use_awaitable, error));
        if (!error) {
            asio::co_spawn(worker_.io, serve(std::move(socket)), asio::detached);
            continue;
        }
        log("user port", error.message());
        co_await pause(worker_.io, kRest);
    }
}

asio::awaitable<void> Server::serve(tcp::socket socket) {
    auto group = shared_;
    if (!group) {
        group = std::make_shared<Group>(worker_);
        own_.push_back(group);
        group->add_idle_nodes();
    }
    co_await User::run(std::make_shared<User>(worker_, std::move(socket), group));
    if (group != shared_) co_await Group::dissolve(group);
}

asio::awaitable<void> Server::accept_nodes(tcp::acceptor acceptor, std::vector<Server*> servers) {
    for (size_t next = 0;;) {
        asio::error_code error;
        auto socket = co_await acceptor.async_accept(
            asio::redirect_error(asio::use_awaitable, error));
        if (error) {
            log("node port", error.message());
            co_await pause(worker_.io, kRest);
            continue;
        }
        asio::error_code gone;
        const auto peer = socket.remote_endpoint(gone);
        if (gone) continue;
        auto origin = std::make_shared<Origin>(name_of(peer));
        // The socket moves to the event loop of the server that it is dealt to.
        Server* server = servers[next++ % servers.size()];
        const int descriptor = socket.release();
        asio::post(server->worker_.io, [server, descriptor, origin] {
            server->add_node(tcp::socket(server->worker_.io, tcp::v4(), descriptor), origin);
        });
    }
}

void Server::add_node(tcp::socket socket, std::shared_ptr<Origin> origin) {
    if (shared_)
        shared_->add_node(std::move(socket), std::move(origin));
    else
        worker_.registry.put({socket.release(), std::move(origin)});
}

asio::awaitable<void> Server::keep_connected(std::shared_ptr<Link> link) {
    const auto& node = link->node;
    const auto& origin = link->origin;
    // Weak: the origin is the link's.
    origin->ended = [&io = worker_.io, weak = std::weak_ptr(link)] {
        asio::post(io, [weak] {
            const auto ended = weak.lock();
            if (!ended) return;
            ended->connected = false;
            ended->ended.notify();
        });
    };
    std::chrono::milliseconds retry = kFirstRetry;
    while (!origin->withdrawn) {
        const auto begin = Clock::now();
        tcp::socket socket(worker_.io, node.data.protocol());
        set_congestion(socket, worker_.options.congestion);
        asio::error_code error;
        co_await socket.async_connect(node.data,
                                      asio::redirect_error(asio::use_awaitable, error));
        if (origin->withdrawn) co_return;
        if (!error) {
            link->connected = true;
            add_node(std::move(socket), origin);
            while (link->connected) co_await link->ended.wait();
            if (origin->stale || origin->withdrawn) co_return;
        } else {
            if (retry == kFirstRetry) log(node.name, "cannot connect: " + error.message());
            socket.close(error);  // not after the pause
        }
        const bool faulty = std::exchange(origin->faulty, false);
        if (!faulty && Clock::now() - begin > kSettled) retry = kFirstRetry;
        link->rest.expires_after(retry);
        co_await link->rest.async_wait(asio::redirect_error(asio::use_awaitable, error));
        retry = std::min<std::chrono::milliseconds>(2 * retry, kLastRetry);
    }
}

asio::awaitable<void> Server::look_after() {
    const auto& options = worker_.options;
    const auto limit = std::min(options.patience, options.message_timeout);
    const auto period = std::clamp<std::chrono::milliseconds>(limit / 4, 10ms, 1s);
    for (;;) {
        co_await pause(worker_.io, period);
        const auto now = Clock::now();
        if (shared_) shared_->check_patience(now);
        std::erase_if(own_, [](const auto& group) { return group.expired(); });
        for (const auto& own : std::vector(own_))
            if (const auto group = own.lock()) group->check_patience(now);
    }
}

asio::awaitable<void> Server::accept_readers(tcp::acceptor acceptor) {
    for (;;) {
        asio::error_code error;
        auto socket = co_await acceptor.async_accept(
            asio::redirect_error(asio::use_awaitable, error));
        if (!error)
            asio::co_spawn(worker_.io, answer_reader(std::move(socket)), asio::detached);
        else
            co_await pause(worker_.io, kRest);
    }
}

// Whatever is asked for, the answer is the metrics.
asio::awaitable<void> Server::answer_reader(tcp::socket socket) {
    asio::error_code error;
    std::string request;
    auto buffer = asio::dynamic_buffer(request, kMostRequestBytes);
    co_await asio::async_read_until(socket, buffer, "\r\n\r\n",
                                    asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    const std::string body = worker_.metrics.text();
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    co_await asio::async_write(socket, asio::buffer(answer),
                               asio::redirect_error(asio::use_awaitable, error));
}

}  // namespace jobd
