// A store-and-forward Ethernet switch whose ports end in imperfect links. Time is in clock cycles.
//
// From a device: its wire (rate, then delay and faults by an Impairer), then forwarding by learned
// addresses; unknown ones and groups go to all. To a device: a queue for each of eight classes, ECN
// marks by its length, PFC both ways, the wire. Classes take turns, frame by frame.
//
// A frame's class is its VLAN priority, or else the upper three bits of its IPv4 DSCP, or else 0.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "common.h"
#include "impair.h"

namespace sim {

constexpr int kClasses = 8;

struct LinkOptions {
    std::string name;
    double rate = 1;                // bytes a cycle, each way
    ImpairRates up, down;           // from the device, to it
    uint64_t queue = 128 << 10;     // bytes that wait to go down, all classes; more are dropped
    // Marked on entering a queue (RFC 3168) if ECN-capable: never below min bytes, always above max,
    // with a chance that grows to `chance` between them. 0 as maximum: never.
    uint64_t ecn_min = 0, ecn_max = 0;
    double ecn_chance = 0;
    // Classes that are paused (IEEE 802.1Qbb) when more than `xoff` bytes that came up here wait
    // anywhere in the switch, and released below `xon`. Frames of theirs are dropped at twice the queue.
    uint8_t lossless = 0;
    uint64_t xoff = 0, xon = 0;
};

struct PortStats {
    uint64_t in = 0, out = 0, flooded = 0, bad_fcs = 0, queue_drops = 0, lossless_drops = 0;
    uint64_t marked = 0, pauses_sent = 0, pauses_received = 0, queue_max = 0;
};

class Switch {
  public:
    explicit Switch(uint64_t seed) : rng_(seed, "switch"), seed_(seed) {}

    // Returns its number. All ports are added before the first frame.
    size_t add_port(const LinkOptions& options);
    size_t ports() const { return ports_.size(); }

    // A frame leaves the device at `port` now.
    void put(size_t port, Frame&& frame, Cycle now);
    // The next frame that has reached the device at `port`.
    bool get(size_t port, Frame& frame, Cycle now);
    // Moves frames inside; call it once a cycle.
    void step(Cycle now);
    // Nothing is inside: `step` has nothing to do before the next `put`.
    bool idle() const { return inside_ == 0; }
    Json json() const;

  private:
    struct Waiting {
        Frame frame;
        size_t from;
        int priority;
    };
    struct Port {
        Port(const LinkOptions& o, uint64_t seed)
            : options(o), up(o.up, seed, ("up " + o.name).c_str()),
              down(o.down, seed, ("down " + o.name).c_str()) {}
        LinkOptions options;
        Impairer up, down;
        std::deque<Frame> sending;    // on the device's side of the wire
        double up_free = 0, down_free = 0;
        std::array<std::deque<Waiting>, kClasses> queues;
        std::deque<Frame> control;    // PFC frames: before all others
        uint64_t queued = 0;          // bytes in `queues`
        int turn = 0;
        std::array<Cycle, kClasses> paused_until{};   // the device told us to wait
        std::array<uint64_t, kClasses> held{};        // bytes from this device inside the switch
        std::array<bool, kClasses> pausing{};         // we told the device to wait
        Cycle refreshed = 0;
        PortStats stats;
    };

    void forward(size_t from, Frame&& frame, Cycle now);
    void enqueue(size_t from, size_t to, const Frame& frame, int priority);
    void transmit(Port& port, Cycle now);
    bool next(Port& port, Frame& frame, Cycle now);
    void pause_received(Port& port, const Bytes& data, Cycle now);
    void pause_senders(Port& port, Cycle now);

    Rng rng_;
    uint64_t seed_;
    std::vector<std::unique_ptr<Port>> ports_;
    std::unordered_map<uint64_t, size_t> learned_;
    uint64_t inside_ = 0;  // frames on wires and in queues, and classes being paused
};

// The class of a frame, 0 to 7.
int priority_of(const Bytes& frame);
// Marks an ECN-capable IPv4 packet "congestion experienced"; returns whether it was one.
bool mark_ecn(Bytes& frame);
// A PFC frame that pauses the classes of `enable` for `quanta` times 512 bit times (0: no longer).
Frame pause_frame(uint8_t enable, uint16_t quanta);

}  // namespace sim
