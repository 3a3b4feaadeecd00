// A seeded bad link for one direction: loss, duplication, reordering, corruption, delay.
//
// Every frame draws the same number of random values whatever happens to it, so what befalls the n-th
// frame depends on the seed, the rates and n only.
#pragma once

#include <deque>

#include "common.h"

namespace sim {

struct ImpairRates {
    double loss = 0;
    double duplicate = 0;
    double reorder = 0;
    double corrupt = 0;
    Cycle delay = 0;             // cycles every frame is under way
    uint32_t reorder_depth = 3;  // a reordered frame lets 1 .. this many later frames pass
    Cycle reorder_limit = 50000; // but waits no longer than this for them
};

struct ImpairStats {
    uint64_t frames = 0, bytes = 0, lost = 0, duplicated = 0, reordered = 0;
    uint64_t corrupted_fcs = 0;      // damaged after the FCS was computed: the FCS check sees it
    uint64_t corrupted_payload = 0;  // damaged before: only IP, TCP or UDP checksums can see it
    Json json() const;
};

class Impairer {
  public:
    Impairer(const ImpairRates& rates, uint64_t seed, const char* label)
        : rates_(rates), rng_(seed, label) {}

    void push(Frame&& frame, Cycle now);
    // Moves the next frame that has arrived by `now` to `out`.
    bool pop(Frame& out, Cycle now);
    bool empty() const { return queue_.empty() && held_.empty(); }
    size_t size() const { return queue_.size() + held_.size(); }
    const ImpairStats& stats() const { return stats_; }
    // From now on the link is perfect (frames already damaged stay so).
    void heal() { rates_ = ImpairRates{0, 0, 0, 0, rates_.delay}; }

  private:
    struct Queued {
        Frame frame;
        Cycle due;
    };
    struct Held {
        Frame frame;
        uint64_t pass;  // frames still to let pass
        Cycle limit;
    };
    void damage(Frame& frame, uint64_t random);
    void enqueue(Frame&& frame, Cycle due);

    ImpairRates rates_;
    Rng rng_;
    ImpairStats stats_;
    std::deque<Queued> queue_;
    std::vector<Held> held_;
};

}  // namespace sim
