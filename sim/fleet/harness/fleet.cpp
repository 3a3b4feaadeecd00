// Several boards and a switch, clocked together: `sim PLAN` (plan.h). The switch's first port ends in a
// TAP device of this machine, the others in a board each. One clock for all, so a run with ticks by
// cycles depends on the plan only.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "control.h"
#include "dut.h"
#include "plan.h"
#include "progress.h"
#include "switch.h"
#include "tap.h"
#include "ticker.h"
#include "uart.h"

namespace sim {

namespace {

volatile sig_atomic_t stopped = 0;

constexpr Cycle kOften = 64;     // cycles between looks at the TAP device and the clock
constexpr Cycle kSeldom = 4096;  // and at everything a human waits for
constexpr int kTapBurst = 32;    // frames taken from the kernel at a time

// Memory images are named without a folder: a board is made in the folder where its own lie.
std::unique_ptr<Dut> make_board(Options options, const BoardPlan& plan) {
    options.board_ip = plan.ip;
    options.board_mac = plan.mac;
    char before[PATH_MAX];
    if (!getcwd(before, sizeof before) || chdir(plan.folder.c_str()))
        throw UserError("cannot go to '" + plan.folder + "': " + strerror(errno));
    auto board = make_dut(options);
    if (chdir(before)) throw UserError(std::string("cannot go back to '") + before + "'");
    return board;
}

}  // namespace

class Fleet {
  public:
    explicit Fleet(const Plan& plan);
    int run();

  private:
    void cycle();
    void poll_often();
    void poll_seldom();
    bool faulty() const;
    // All boards have the processor that one of them would have alone.
    double nominal_hz() const { return boards_.front()->nominal_hz() / double(boards_.size()); }
    Json json() const;

    Options options_;
    Switch switch_;
    std::vector<std::unique_ptr<Dut>> boards_;
    std::vector<std::unique_ptr<Uart>> uarts_;
    Tap tap_;
    bool has_tap_ = false;
    Control control_;
    Progress progress_;
    Ticker ticker_;
    Idler idler_;
    Cycle cycle_ = 0;
    uint64_t ticks_ = 0;
    uint64_t traffic_ = 0, last_traffic_ = 0;
    double start_ = 0;
    bool ends_ = false;
};

Fleet::Fleet(const Plan& plan)
    : options_(plan.options), switch_(plan.options.seed), ticker_(plan.options),
      idler_(plan.options) {
    for (const LinkOptions& port : plan.ports) switch_.add_port(port);
    for (const BoardPlan& board : plan.boards) {
        boards_.push_back(make_board(options_, board));
        uarts_.push_back(std::make_unique<Uart>());
        uarts_.back()->open(board.uart);
    }
    if (!options_.tap.empty()) {
        tap_.open(options_.tap, options_.address);
        has_tap_ = true;
    }
    if (!options_.progress.empty())
        progress_.open(options_.progress, nominal_hz());
    if (options_.control_fd < 0) return;
    control_.open(options_.control_fd);
    Json ready;
    ready.add("ready", uint64_t(1));
    control_.write(ready.str());
}

int Fleet::run() {
    start_ = wall_seconds();
    ticker_.start(start_);
    idler_.start(start_);
    while (!ends_) {
        if (cycle_ % kOften == 0) poll_often();
        cycle();
        ++cycle_;
        if (options_.cycles && cycle_ >= options_.cycles) ends_ = true;
    }
    for (size_t k = 0; k < boards_.size(); ++k) {
        for (uint8_t byte : boards_[k]->uart_out) uarts_[k]->put(byte);
        uarts_[k]->flush();
    }
    if (!control_.active()) printf("%s\n", json().str().c_str());
    return faulty() ? 1 : 0;
}

void Fleet::cycle() {
    Frame frame;
    for (size_t k = 0; k < boards_.size(); ++k) {
        Dut& board = *boards_[k];
        while (!board.received.empty()) {
            switch_.put(k + 1, std::move(board.received.front()), cycle_);
            board.received.pop_front();
            ++traffic_;
        }
        if (board.can_send() && switch_.get(k + 1, frame, cycle_)) board.send(std::move(frame));
    }
    while (switch_.get(0, frame, cycle_))
        if (has_tap_ && !frame.bad_fcs) tap_.write(frame);
    if (!switch_.idle() || traffic_ != last_traffic_ || cycle_ % kOften == 0) switch_.step(cycle_);
    const bool tick = ticker_.step(cycle_);
    ticks_ += tick;
    for (auto& board : boards_) board->cycle(tick);
}

void Fleet::poll_often() {
    Frame frame;
    for (int k = 0; has_tap_ && k < kTapBurst && tap_.read(frame); ++k) {
        switch_.put(0, std::move(frame), cycle_);
        ++traffic_;
    }
    ticker_.poll(cycle_, nominal_hz());
    progress_.publish(cycle_ + idler_.cycles(nominal_hz()), ticks_);
    if (cycle_ % kSeldom == 0) poll_seldom();
}

void Fleet::poll_seldom() {
    if (stopped || faulty()) ends_ = true;
    for (size_t k = 0; k < boards_.size(); ++k) {
        for (uint8_t byte : boards_[k]->uart_out) uarts_[k]->put(byte), ++traffic_;
        boards_[k]->uart_out.clear();
        uarts_[k]->flush();
    }
    if (!control_.serve([this](const std::string& command) {
            return command == "stats" ? json().str() : "";
        })) ends_ = true;
    const bool busy = traffic_ != last_traffic_ || !switch_.idle();
    const double now = wall_seconds();
    if (busy) idler_.busy(cycle_, now);
    Cycle silence = 0;
    for (const auto& board : boards_) silence = std::max(silence, board->silence());
    ticker_.rested(idler_.nap(cycle_, silence, now, {tap_.fd(), control_.fd()}));
    last_traffic_ = traffic_;
}

bool Fleet::faulty() const {
    return std::any_of(boards_.begin(), boards_.end(),
                       [](const auto& b) { return b->link_errors || b->finished(); });
}

Json Fleet::json() const {
    Json j, errors;
    j.add("seed", options_.seed);
    j.add("cycles", cycle_);
    j.add("seconds", wall_seconds() - start_);
    j.add("ports", switch_.json());
    for (size_t k = 0; k < boards_.size(); ++k)
        errors.add(std::to_string(k), boards_[k]->last_link_error);
    j.add("link_errors", errors);
    return j;
}

}  // namespace sim

int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    for (int s : {SIGINT, SIGTERM}) signal(s, [](int) { sim::stopped = 1; });
    try {
        if (argc != 2) throw sim::UserError("the plan's file must be the only argument");
        return sim::Fleet(sim::read_plan(argv[1])).run();
    } catch (const sim::UserError& error) {
        fprintf(stderr, "sim: %s\n", error.what());
        return 2;
    }
}
