// Simulates the scheduler alone: trebuchet-jobd-schedule POLICY WINDOW NODES JOBS[:SLOW] USER...
//
// A node works on one job at a time and keeps others waiting, as a board does. USER is
// BEGIN:SERVICE, in milliseconds: from BEGIN on the user always has a job to send, which takes a
// node SERVICE, and 25 times as long if it is among the first SLOW jobs: a machine that is not warm
// yet. After JOBS jobs in all two lines are printed: the jobs of each user, and those of
// each node.
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "scheduler.h"

namespace {

using jobd::Demultiplexer;
using jobd::FairQueue;
using jobd::Policy;

constexpr int64_t kMillisecond = 1'000'000;  // in nanoseconds
constexpr int64_t kSlower = 25;

struct User : jobd::Share {
    int64_t begin = 0, service = 0;
    long done = 0;
};

struct Node : jobd::Seat {
    std::deque<std::pair<User*, int64_t>> jobs;  // and what the user was charged
    int64_t service = 0;                         // of the first of them
    long done = 0;
};

class Simulation {
  public:
    Simulation(Policy policy, unsigned window, size_t nodes, std::vector<User>& users, long slow)
        : demultiplexer_(policy, window), nodes_(nodes), users_(users), slow_(slow) {
        for (auto& node : nodes_) demultiplexer_.add(node);
        for (auto& user : users_) events_.emplace(user.begin, std::pair(&user, nullptr));
    }

    void run(long jobs) {
        while (jobs > 0 && !events_.empty()) {
            const auto event = events_.begin();
            now_ = event->first;
            const auto [user, node] = event->second;
            events_.erase(event);
            if (node)
                finish(*node), --jobs;
            else
                fair_.wake(*user);
            dispatch();
        }
    }

    void print() const {
        for (const auto& user : users_) std::printf("%ld ", user.done);
        std::printf("\n");
        for (const auto& node : nodes_) std::printf("%ld ", node.done);
        std::printf("\n");
    }

  private:
    void dispatch() {
        while (demultiplexer_.has_room()) {
            auto* user = static_cast<User*>(fair_.next());
            if (!user) return;
            auto* node = static_cast<Node*>(demultiplexer_.choose());
            node->jobs.emplace_back(user, fair_.reserve(*user));
            if (node->jobs.size() == 1) start(*node);
        }
    }

    void start(Node& node) {
        node.service = node.jobs.front().first->service * (slow_-- > 0 ? kSlower : 1);
        events_.emplace(now_ + node.service, std::pair(nullptr, &node));
    }

    void finish(Node& node) {
        const auto [user, reserved] = node.jobs.front();
        node.jobs.pop_front();
        ++node.done, ++user->done;
        demultiplexer_.done(node);
        fair_.settle(*user, reserved, node.service);
        if (!node.jobs.empty()) start(node);
    }

    Demultiplexer demultiplexer_;
    FairQueue fair_;
    std::vector<Node> nodes_;
    std::vector<User>& users_;
    long slow_;  // jobs that are still to be slow
    std::multimap<int64_t, std::pair<User*, Node*>> events_;
    int64_t now_ = 0;
};

}  // namespace

int main(int count, char** words) {
    if (count < 6) return 2;
    const std::string name = words[1];
    const Policy policy = name == "queue"   ? Policy::kQueue
                          : name == "stack" ? Policy::kStack
                                            : Policy::kLeast;
    std::vector<User> users(size_t(count - 5));
    for (size_t i = 0; i < users.size(); ++i) {
        char* service = nullptr;
        users[i].begin = kMillisecond * std::strtoll(words[5 + i], &service, 10);
        users[i].service = kMillisecond * std::atoll(service + 1);
    }
    const auto window = unsigned(std::atoi(words[2]));
    char* slow = nullptr;
    const long jobs = std::strtol(words[4], &slow, 10);
    Simulation simulation(policy, window, size_t(std::atol(words[3])), users,
                          *slow ? std::atol(slow + 1) : 0);
    simulation.run(jobs);
    simulation.print();
    return 0;
}
