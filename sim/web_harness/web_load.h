// HTTP clients inside the harness: keep-alive, pipelines or a connection each, every byte compared.
#pragma once

#include <fstream>
#include <memory>
#include <vector>

#include "crowd.h"
#include "tcp_client.h"
#include "web_crowd.h"

namespace sim {

struct WebOptions {
    uint32_t pipeline = 1;  // requests that a client sends in one go
    bool each = false;      // every request has a connection of its own, which the board closes
    SlowOptions slow;       // connections more that send requests byte by byte, and never an end
    uint32_t missing = 0;   // clients more, with keep-alive, that are not measured
    std::string misses;     // what they ask for, and what must come: a file as `--messages`
};

class WebLoad {
  public:
    WebLoad(const Options& o, const WebOptions& web);

    void receive(const Segment& segment, Cycle now, uint64_t tick);
    void tick(Cycle now, uint64_t tick);
    // The next frame for the board, if there is one.
    bool send(Frame& frame, Cycle now);
    bool finished() const { return drained_; }
    bool failed() const;
    Json json() const;

  private:
    // A request and the exact answer.
    struct Exchange {
        Bytes request;
        std::string answer;
    };
    using Exchanges = std::vector<Exchange>;
    static Exchanges read_exchanges(const std::string& path);
    // Not one of those that are measured?
    bool misses(size_t client) const { return client >= options_.clients; }
    const Exchange& pick(size_t client) {
        const Exchanges& from = misses(client) ? misses_ : exchanges_;
        return from[rng_.below(from.size())];
    }
    void start(size_t i, Cycle now, uint64_t tick);
    void ask(size_t i, Cycle now, uint64_t tick);
    void count(size_t requests, Cycle now);
    void delay_ack(size_t i, size_t queued);
    void ended(size_t i, Cycle now, uint64_t tick);
    uint64_t delivered() const;
    bool enough() const { return ended_ >= options_.warmup + options_.transactions; }

    LoadOptions options_;
    WebOptions web_;
    uint32_t first_ip_;
    Rng rng_;
    std::deque<Bytes> output_;
    Crowd crowd_;
    SlowCrowd slow_;
    Cycle slow_next_ = 0;
    Exchanges exchanges_, misses_;
    std::vector<std::unique_ptr<TcpClient>> clients_;
    std::vector<bool> running_;
    std::vector<Bytes> held_;  // an acknowledgement that a client delays
    uint64_t ended_ = 0, measured_ = 0, missed_ = 0, missed_from_ = 0, missed_to_ = 0;
    uint64_t errors_ = 0, strays_ = 0, delivered_from_ = 0, delivered_to_ = 0;
    Cycle from_ = 0, to_ = 0;
    size_t active_ = 0;
    bool crowded_ = false, draining_ = false, drained_ = false;
    uint64_t drain_until_ = 0;
    std::string first_error_;
};

}  // namespace sim
