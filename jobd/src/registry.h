// What the threads share: nodes that no user has, and which configuration shared nodes have.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "message.h"
#include "worker.h"

namespace jobd {

// Where a connection to a node came from.
struct Origin {
    std::string name;
    std::optional<asio::ip::tcp::endpoint> management;
    uint16_t epoch = 0;  // of our lease of the node; 0: none
    // It has answered STALE: it has another lease, and must not be given jobs under this one.
    std::atomic<bool> stale = false;
    // It is no longer among the nodes: it gets no more jobs.
    std::atomic<bool> withdrawn = false;
    // May be called by any thread when the connection has ended; empty for nodes that connect to
    // us.
    std::function<void()> ended;
    // It broke the protocol, or did not answer in time; set before `ended` is called.
    bool faulty = false;
};

// A connection that no thread serves.
struct IdleNode {
    int descriptor;
    std::shared_ptr<Origin> origin;
};

using ConfigurationBytes = std::shared_ptr<const smp::Bytes>;

class Registry {
  public:
    ~Registry();

    void put(IdleNode node);
    // Close those that are no longer among the nodes.
    void remove_withdrawn();
    // Up to `most` of them, the one first that has waited longest.
    std::vector<IdleNode> take(size_t most);

    // A user of shared nodes wants this configuration. BUSY while others work with another one.
    Status acquire(const void* user, const ConfigurationBytes& wanted);
    void release(const void* user);

  private:
    void remove_unusable();

    std::mutex mutex_;
    std::deque<IdleNode> idle_;
    ConfigurationBytes configuration_;
    std::set<const void*> holders_;
};

}  // namespace jobd
