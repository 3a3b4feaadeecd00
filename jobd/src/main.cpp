// trebuchet-jobd: spreads users' SMP messages over nodes. docs/jobs.md
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/use_awaitable.hpp>

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "job_log.h"
#include "options.h"
#include "registry.h"
#include "server.h"

namespace jobd {

void log(std::string_view who, std::string_view what) {
    std::fprintf(stderr, "jobd: %.*s: %.*s\n", int(who.size()), who.data(), int(what.size()),
                 what.data());
}

namespace {

struct Thread {
    Thread(const Options& options, Registry& registry, Metrics& metrics, JobLog* job_log)
        : worker(options, registry, metrics, job_log), server(worker) {}

    Worker worker;
    Server server;
};

// Bind all ports; print them, in one line that scripts can read.
void open_ports(const Options& options, std::vector<std::unique_ptr<Thread>>& threads) {
    std::vector<Server*> servers;
    for (const auto& thread : threads) servers.push_back(&thread->server);
    Server& first = *servers.front();
    uint16_t users = options.user_port;
    for (Server* server : servers) users = server->serve_users(users);
    const uint16_t nodes = first.serve_nodes(options.node_port, servers);
    std::string line = "users " + std::to_string(users) + " nodes " + std::to_string(nodes);
    if (options.metrics_port)
        line += " metrics " + std::to_string(first.serve_metrics(*options.metrics_port));
    std::printf("listening at %s: %s\n", options.address.c_str(), line.c_str());
    std::fflush(stdout);
}

using Threads = std::vector<std::unique_ptr<Thread>>;

std::vector<PassiveNode> listed_nodes(const Options& options) {
    auto nodes = options.nodes;
    if (options.node_list.empty()) return nodes;
    for (auto& node : read_node_list(options.node_list)) nodes.push_back(std::move(node));
    return nodes;
}

// Each thread connects to all nodes; to those that users have for themselves one alone, since a node
// that nobody has is every thread's.
size_t connecting(const Options& options, const Threads& threads) {
    return options.own ? 1 : threads.size();
}

// Read the list of nodes again. Names are looked up here, where no job waits for it.
void reload(const Options& options, const Threads& threads) {
    if (options.node_list.empty()) return log("SIGHUP", "there is no --nodes FILE to read again");
    try {
        const auto nodes = listed_nodes(options);
        log(options.node_list, "read again: " + std::to_string(nodes.size()) + " nodes");
        for (size_t i = 0; i < connecting(options, threads); ++i)
            asio::post(threads[i]->worker.io, [&options, &threads, nodes, i] {
                threads[i]->server.set_nodes(nodes);
                if (!options.own) return;
                for (const auto& other : threads)
                    asio::post(other->worker.io, [&other] { other->server.withdraw_nodes(); });
            });
    } catch (const UsageError& error) {
        log("--nodes", error.line + "; the nodes are as before");
    }
}

void stop(const Threads& threads) {
    for (const auto& thread : threads)
        asio::post(thread->worker.io, [&t = *thread] {
            t.server.stop();
            t.worker.io.stop();
        });
}

asio::awaitable<void> obey_signals(asio::signal_set& signals, const Options& options,
                                   const Threads& threads) {
    for (;;) {
        const int number = co_await signals.async_wait(asio::use_awaitable);
        if (number != SIGHUP) break;
        reload(options, threads);
    }
    stop(threads);
}

void run(const Options& options) {
    Metrics metrics;
    Registry registry;
    std::unique_ptr<JobLog> job_log;
    if (!options.job_log.empty()) job_log = std::make_unique<JobLog>(options.job_log);
    Threads threads;
    for (unsigned i = 0; i < options.threads; ++i)
        threads.push_back(std::make_unique<Thread>(options, registry, metrics, job_log.get()));
    const auto nodes = listed_nodes(options);
    asio::io_context control(1);
    asio::signal_set signals(control, SIGINT, SIGTERM, SIGHUP);
    open_ports(options, threads);
    for (const auto& thread : threads) thread->server.start();
    for (size_t i = 0; i < connecting(options, threads); ++i) threads[i]->server.set_nodes(nodes);
    asio::co_spawn(control, obey_signals(signals, options, threads), asio::detached);
    std::vector<std::jthread> running;
    running.emplace_back([&control] { control.run(); });
    for (size_t i = 1; i < threads.size(); ++i)
        running.emplace_back([&t = *threads[i]] { t.worker.io.run(); });
    threads.front()->worker.io.run();
    running.clear();
    // They refer to event loops, which end with the threads.
    for (const auto& node : registry.take(SIZE_MAX)) ::close(node.descriptor);
}

}  // namespace
}  // namespace jobd

int main(int count, char** words) {
    std::signal(SIGPIPE, SIG_IGN);  // splice() has no flag for it
    try {
        jobd::raise_descriptor_limit();
        jobd::run(jobd::parse_options(count, words));
    } catch (const jobd::UsageError& error) {
        std::fprintf(stderr, "jobd: %s\n", error.line.c_str());
        return 2;
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "jobd: %s\n", error.what());
        return 1;
    }
    return 0;
}
