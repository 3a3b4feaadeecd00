// What the objects of one thread share. No object is used by two threads, so there are no locks but
// those of Registry and Metrics.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics.h"
#include "pipes.h"
#include "scheduler.h"

namespace jobd {

class JobLog;
class Registry;

// A node that the server connects to.
struct PassiveNode {
    std::string name;
    asio::ip::tcp::endpoint data;
    // Where it takes configuration messages; none: on its data connection.
    std::optional<asio::ip::tcp::endpoint> management;
    uint16_t epoch = 0;  // of our lease of it; 0: none
    std::string text;    // as the user wrote it
};

struct Options {
    std::string address = "127.0.0.1";
    uint16_t user_port = 4002, node_port = 4003;
    std::optional<uint16_t> metrics_port;
    std::vector<PassiveNode> nodes;
    std::string node_list;  // file with more of them, which is read again at SIGHUP; empty: none
    Policy policy = Policy::kLeast;
    unsigned window = 2;
    unsigned threads = 1;
    bool own = false;         // each user has nodes of its own
    size_t own_most = SIZE_MAX;
    bool configured = false;  // nodes need no configuration: users begin in Data Routing
    bool streams = false;     // nodes take stream messages
    bool copy = false;
    size_t largest = 16 << 20;  // bytes of a message with its header
    std::string congestion;     // control of the TCP connections; empty: the system's
    size_t pipes = 1024;        // at a time, of a thread
    std::string job_log;        // file with a line for each job; empty: none
    std::chrono::milliseconds patience{30'000};         // for a node's answer
    std::chrono::milliseconds message_timeout{30'000};  // for the rest of a user's message
};

struct Worker {
    // `jobs`: may be null.
    Worker(const Options& settings, Registry& shared, Metrics& numbers, JobLog* jobs)
        : options(settings),
          registry(shared),
          job_log(jobs),
          metrics(numbers),
          counters(numbers.add_thread()),
          pipes(settings.pipes, *counters) {}

    PipePool* pool() { return options.copy ? nullptr : &pipes; }

    const Options& options;
    Registry& registry;
    JobLog* job_log;
    Metrics& metrics;
    std::shared_ptr<Counters> counters;
    PipePool pipes;  // outlives what waits in `io` with pipes
    asio::io_context io{1};
};

// A line on the standard error output: "jobd: WHO: WHAT".
void log(std::string_view who, std::string_view what);

}  // namespace jobd
