// A population of TCP clients inside the harness: the deterministic peer of the fabric top.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "arp.h"
#include "crowd.h"
#include "hostile.h"
#include "tcp_client.h"

namespace sim {

class LoadGenerator {
  public:
    explicit LoadGenerator(const Options& options);

    void receive(const Frame& frame, Cycle now, uint64_t tick);
    void tick(Cycle now, uint64_t tick);
    // The next frame for the board, if there is one.
    bool send(Frame& frame);

    // Every transaction has ended and the drain time is over.
    bool finished() const { return drained_; }
    // The last transaction has ended: from now on the link should be healed and attacks have stopped.
    bool draining() const { return draining_; }
    // Errors that no bad link excuses (and, without attackers, no client excuses either).
    bool failed() const;
    Json json() const;

  private:
    struct Carried {  // payload bytes
        uint64_t acknowledged = 0, delivered = 0;
    };
    struct Result {
        uint64_t reset = 0, timeout = 0, mismatch = 0, vanished = 0, aborted = 0;
    };
    // A message and its answer; the four bytes at these places hold a number of its own.
    struct Message {
        Bytes request;
        std::string answer;
        size_t request_id, answer_id;
    };
    void read_messages(const std::string& path);
    void send_message(size_t client, Cycle now, uint64_t tick);
    void answered(size_t client, Cycle now, uint64_t tick);
    bool enough() const { return ended_ >= options_.warmup + options_.transactions; }
    void start(size_t client, Cycle now, uint64_t tick);
    void ended(size_t client, Cycle now, uint64_t tick);
    void measure(const TcpClient& client, Cycle now);
    Carried carried() const;
    void attack();
    void check_drain(uint64_t tick);
    bool evil(size_t client) const { return client >= options_.clients; }
    Job pick_job() const;
    Bytes payload();
    size_t latency(double quantile) const;

    LoadOptions options_;
    uint32_t first_ip_;
    Rng rng_;
    ArpResponder arp_;
    Attacker attacker_;
    std::deque<Bytes> output_, evil_output_, attacks_;
    Crowd crowd_;
    std::vector<Message> messages_;
    uint32_t message_number_ = 0;
    std::vector<std::unique_ptr<TcpClient>> clients_;
    std::vector<bool> running_;
    std::string answer_;  // of the first http transaction, or the file given
    bool answer_known_ = false;

    uint64_t started_ = 0, ended_ = 0;
    size_t active_ = 0;  // honest clients with a transaction under way
    Cycle measured_from_ = 0, measured_to_ = 0;
    uint64_t measured_ = 0, bytes_sent_ = 0, bytes_received_ = 0;
    Carried carried_from_, carried_to_;
    std::vector<uint32_t> latencies_;
    Result honest_, evil_result_;
    uint64_t bad_checksums_ = 0, strays_ = 0;
    double attack_debt_ = 0;
    bool draining_ = false, drained_ = false, crowded_ = false;
    uint64_t drain_until_ = 0;
    std::string first_error_;
};

}  // namespace sim
