// Who is next: the user whose job is sent, and the node that it is sent to. No input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <utility>
#include <vector>

namespace jobd {

// The demultiplexers of distributed-fpga-framework, 3.3.1.3, and one of ours. A node can be chosen
// while it has fewer than `window` jobs, so that a job waits here, where every node can take it,
// and not in the receive buffer of one.
enum class Policy {
    kQueue,  // the node that was chosen, or had its last answer, the longest time ago
    kStack,  // the node that was chosen, or answered, last: few nodes are busy, the others idle
    kLeast,  // the node with the fewest jobs; among these as kQueue
};

// What a node is to the demultiplexer.
struct Seat {
    unsigned outstanding = 0;
    bool has_record = false;  // a user's record goes on there: it can begin no other one

  private:
    friend class Demultiplexer;
    bool added = false;
    std::list<Seat*>* list = nullptr;
    std::list<Seat*>::iterator place;
};

// All operations take constant time for a given window, but that choose_for_record() looks for a
// node without a record.
class Demultiplexer {
  public:
    Demultiplexer(Policy policy, unsigned window);

    void add(Seat& seat);
    void remove(Seat& seat);
    bool has_room() const;
    // One with room, which has one job more now; null if there is none.
    Seat* choose();
    // The same among those without a record.
    Seat* choose_for_record();
    // This one, if it was added and has room.
    Seat* choose(Seat& seat);
    // One of its jobs has ended. It may have been removed in the meantime.
    void done(Seat& seat);

  private:
    void enlist(Seat& seat);
    void delist(Seat& seat);
    Seat* give(Seat* seat);

    Policy policy_;
    unsigned window_;
    // Nodes with room; for kLeast by their number of jobs.
    std::vector<std::list<Seat*>> lists_;
};

// What a user is to the fair queue.
struct Share {
  private:
    friend class FairQueue;
    int64_t used = 0;     // nanoseconds of service, in virtual time
    int64_t average = 0;  // nanoseconds of one of its jobs
    uint64_t turn = 0;
    bool waiting = false;
};

// Start-time fair queueing (Goyal, Vin, Cheng, 1996) over service time: the user who has used least
// is next. One that was idle starts with as much as the last one chosen: idle time is not saved up.
// Logarithmic in the number of waiting users.
class FairQueue {
  public:
    // It has something to send.
    void wake(Share& share);
    // It has not, or must not send now.
    void sleep(Share& share);
    // The one to serve; null if none waits.
    Share* next();
    // A job of it is sent: it is charged the time that its jobs take on average, which is returned.
    int64_t reserve(Share& share);
    // That job took so long, which it is charged, but no more than four times the moving average
    // of the user's jobs: a stall of a node or of this process is not the user's. The average
    // itself is not charged: what it begins with would count sixteen times.
    void settle(Share& share, int64_t reserved, int64_t nanoseconds);

  private:
    struct Before {
        bool operator()(const Share* a, const Share* b) const {
            return std::pair(a->used, a->turn) < std::pair(b->used, b->turn);
        }
    };
    void charge(Share& share, int64_t nanoseconds);

    std::set<Share*, Before> waiting_;
    int64_t virtual_time_ = 0;
    int64_t average_ = 0;  // of the jobs of all
    uint64_t turns_ = 0;
};

}  // namespace jobd
