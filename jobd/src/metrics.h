// Counters of the job server, and their text format (Prometheus, exposition format 0.0.4).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace jobd {

// A number that one thread changes and any may read.
class Number {
  public:
    void add(int64_t change) {
        value_.store(value_.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
    }
    int64_t value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<int64_t> value_{0};
};

// Durations in classes whose limits are powers of four, from 16 us to 17 s.
class Histogram {
  public:
    static constexpr size_t kClasses = 11;

    void add(int64_t nanoseconds);
    // Append the lines of `name`; `label` is empty or `name="value"`.
    void print(std::string& into, const std::string& name, const std::string& label) const;

  private:
    std::array<Number, kClasses + 1> counts_;
    Number sum_;
};

// Of one thread. "jobs" are data messages of users; each ends in exactly one of answered, aborted,
// refused and abandoned.
struct Counters {
    Number users, users_total;
    Number received, answered, aborted, refused, abandoned;
    Number in_flight;
    Number late;                     // answers to no job that is in flight: dropped
    Number records, records_broken;  // open at nodes; lost with their node, or without one
    Number configurations, configurations_refused;
    Number nodes_lost, node_faults;  // connections that ended; nodes that broke the protocol
    Number nodes_stale;              // nodes given up since their lease has another epoch
    Number nodes_withdrawn;          // connections ended since the list of nodes has changed
    Number bytes_from_users, bytes_to_users;
    Number pipes, spliced, copied;   // pipes open; bytes stored in pipes and in memory
    Number without_pipe;             // large messages that were copied because there was no pipe
    Histogram wait, service;
};

// Of one connection to a node.
struct NodeCounters {
    std::string name;
    Number connected, outstanding, sent, answered, busy_ns;
    Histogram service;
};

// The counters of all threads.
class Metrics {
  public:
    std::shared_ptr<Counters> add_thread();
    std::shared_ptr<NodeCounters> add_node(const std::string& name);
    std::string text() const;

  private:
    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<Counters>> threads_;
    std::vector<std::weak_ptr<NodeCounters>> nodes_;
};

}  // namespace jobd
