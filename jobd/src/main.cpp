// trebuchet-jobd: spreads users' SMP messages over nodes. docs/jobs.md
#include <asio/post.hpp>
#include <asio/signal_set.hpp>

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

void connect_to_nodes(const Options& options, std::vector<std::unique_ptr<Thread>>& threads) {
    for (const auto& thread : threads) {
        thread->server.start();
        for (const auto& node : options.nodes) thread->server.connect_to(node);
        if (options.own) break;  // a node that nobody has is every thread's
    }
    if (options.own)
        for (size_t i = 1; i < threads.size(); ++i) threads[i]->server.start();
}

void run(const Options& options) {
    Metrics metrics;
    Registry registry;
    std::unique_ptr<JobLog> job_log;
    if (!options.job_log.empty()) job_log = std::make_unique<JobLog>(options.job_log);
    std::vector<std::unique_ptr<Thread>> threads;
    for (unsigned i = 0; i < options.threads; ++i)
        threads.push_back(std::make_unique<Thread>(options, registry, metrics, job_log.get()));
    open_ports(options, threads);
    connect_to_nodes(options, threads);

    asio::signal_set signals(threads.front()->worker.io, SIGINT, SIGTERM);
    signals.async_wait([&](const asio::error_code&, int) {
        for (const auto& thread : threads)
            asio::post(thread->worker.io, [&t = *thread] {
                t.server.stop();
                t.worker.io.stop();
            });
    });
    std::vector<std::jthread> running;
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
