#include "simulation.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sim {

namespace {

volatile sig_atomic_t stop_signal = 0;

constexpr Cycle kOften = 64;        // cycles between looks at the TAP device and the clock
constexpr Cycle kSeldom = 4096;     // and at everything a human waits for
constexpr Cycle kTickDistance = 16; // cycles between ticks that are late
constexpr uint64_t kMaxLateTicks = 100;
constexpr size_t kTapBacklog = 32;  // frames taken from the kernel ahead of the link
constexpr size_t kUartBacklog = 16;
constexpr double kIdleAfter = 0.5;  // seconds
constexpr int kNapMs = 20;

double wall_seconds() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

}  // namespace

void request_stop(int signal) { stop_signal = signal; }

Simulation::Simulation(const Options& o)
    : options_(o), to_board_(o.to_board, o.seed, "to board"),
      from_board_(o.from_board, o.seed, "from board") {
    setup();
}

void Simulation::setup() {
    dut_ = make_dut(options_);
    if (!options_.load.mode.empty()) {
        load_ = std::make_unique<LoadGenerator>(options_);
    } else if (!options_.tap.empty()) {
        tap_.open(options_.tap, options_.address);
        has_tap_ = true;
    }
    uart_.open(options_.uart);
    if (!options_.pcap.empty()) pcap_.open(options_.pcap, options_.clock_hz);
    if (!options_.trace.empty() && !options_.trace_from) {
        dut_->start_trace(options_.trace);
        tracing_ = true;
    }
    if (options_.control_fd >= 0) control_.open(options_.control_fd);
    initial_counters_ = dut_->counters();
    next_tick_ = options_.tick_cycles;
    fprintf(stderr, "sim: seed %llu\n", static_cast<unsigned long long>(options_.seed));
    if (!uart_.path().empty()) fprintf(stderr, "sim: UART at %s\n", uart_.path().c_str());
    if (control_.active()) {
        Json ready;
        ready.add("ready", uint64_t(1));
        ready.add("uart", uart_.path());
        control_.write(ready.str());
    }
}

ExitCode Simulation::run() {
    start_ = last_ms_ = last_activity_ = wall_seconds();
    while (!reason_) {
        if (cycle_ % kOften == 0) poll_often();
        if (cycle_ == options_.trace_from && !options_.trace.empty() && !tracing_) {
            dut_->start_trace(options_.trace);
            tracing_ = true;
        }
        const bool tick = step_tick();
        if (tick && load_) load_->tick(cycle_, ++tick_);
        move_frames();
        dut_->cycle(tick);
        ++cycle_;
        if (options_.cycles && cycle_ >= options_.cycles) stop("cycle limit");
    }
    pcap_.close();
    for (uint8_t byte : dut_->uart_out) uart_.put(byte);
    uart_.flush();
    write_stats();
    if (dut_->link_errors) fprintf(stderr, "sim: link error: %s\n", dut_->last_link_error.c_str());
    return exit_code();
}

void Simulation::stop(const char* reason) {
    if (!reason_) reason_ = reason;
}

bool Simulation::step_tick() {
    if (options_.tick_cycles && cycle_ >= next_tick_) {
        next_tick_ += options_.tick_cycles;
        return true;
    }
    if (!pending_ticks_ || cycle_ < next_tick_) return false;
    --pending_ticks_;
    next_tick_ = cycle_ + kTickDistance;
    return true;
}

void Simulation::move_frames() {
    Frame frame;
    if (load_) {
        while (to_board_.size() < kTapBacklog && load_->send(frame)) to_board_.push(std::move(frame), cycle_);
    }
    if (!to_board_.empty() && dut_->can_send() && to_board_.pop(frame, cycle_)) {
        pcap_.write(frame, cycle_);
        dut_->send(std::move(frame));
    }
    while (!dut_->received.empty()) {
        pcap_.write(dut_->received.front(), cycle_);
        from_board_.push(std::move(dut_->received.front()), cycle_);
        dut_->received.pop_front();
    }
    while (!from_board_.empty() && from_board_.pop(frame, cycle_)) {
        if (frame.bad_fcs) {
            ++dropped_fcs_;
        } else if (load_) {
            load_->receive(frame, cycle_, tick_);
        } else if (has_tap_) {
            tap_.write(frame);
        }
    }
}

void Simulation::poll_often() {
    if (has_tap_) read_tap();
    if (options_.tick_wall) advance_wall_clock(wall_seconds());
    if (load_ && load_->draining() && !healed_) {
        to_board_.heal();
        from_board_.heal();
        healed_ = true;
    }
    if (load_ && load_->finished()) stop("load complete");
    if (cycle_ % kSeldom == 0) poll_seldom();
}

void Simulation::read_tap() {
    Frame frame;
    while (to_board_.size() < kTapBacklog && tap_.read(frame)) to_board_.push(std::move(frame), cycle_);
}

void Simulation::advance_wall_clock(double now) {
    const double elapsed = (now - last_ms_) * 1e3;
    if (elapsed < 1) return;
    const uint64_t whole = uint64_t(elapsed);
    last_ms_ += double(whole) * 1e-3;
    // After a suspension the board does not have to live through all of it.
    pending_ticks_ = std::min(pending_ticks_ + whole, kMaxLateTicks);
}

void Simulation::poll_seldom() {
    const double now = wall_seconds();
    if (stop_signal) stop(stop_signal == SIGINT ? "interrupted" : "terminated");
    if (options_.seconds > 0 && now - start_ >= options_.seconds) stop("time limit");
    if (dut_->finished()) stop("$finish");
    for (uint8_t byte : dut_->uart_out) uart_.put(byte);
    dut_->uart_out.clear();
    uint8_t byte;
    while (dut_->uart_in.size() < kUartBacklog && uart_.get(byte)) dut_->uart_in.push_back(byte);
    uart_.flush();
    pcap_.flush();
    commands();
    nap(now);
}

void Simulation::commands() {
    while (control_.active()) {
        const std::string command = control_.read();
        if (command.empty()) return;
        if (command == "quit") {
            stop("quit");
            return;
        }
        if (command == "stats") {
            control_.write(json().str());
        } else {
            control_.write("{\"error\": \"unknown command\"}");
        }
    }
}

// Gives the processor back when asked to keep a rate, or while nothing has happened for a while.
void Simulation::nap(double now) {
    if (options_.max_rate > 0) {
        const double ahead = double(cycle_) / options_.max_rate - (now - start_);
        if (ahead > 0) usleep(useconds_t(std::min(ahead, 0.1) * 1e6));
    }
    if (!options_.idle_sleep || load_) return;
    const uint64_t traffic = to_board_.stats().frames + from_board_.stats().frames + uart_.bytes_out();
    if (traffic != last_traffic_) {
        last_traffic_ = traffic;
        last_activity_ = now;
    }
    if (now - last_activity_ < kIdleAfter) return;
    pollfd wake{tap_.fd(), POLLIN, 0};
    poll(&wake, 1, kNapMs);
}

ExitCode Simulation::exit_code() const {
    if (dut_->link_errors || dut_->finished()) return kFault;
    if (!load_) return kOk;
    if (load_->failed()) return kFault;
    return load_->finished() ? kOk : kIncomplete;
}

Json Simulation::json() const {
    const double seconds = std::max(wall_seconds() - start_, 1e-9);
    Json j;
    j.add("seed", options_.seed);
    j.add("cycles", cycle_);
    j.add("seconds", seconds);
    j.add("cycles_per_second", double(cycle_) / seconds);
    if (reason_) j.add("ended", std::string(reason_));
    j.add("to_board", to_board_.stats().json());
    j.add("from_board", from_board_.stats().json());
    j.add("error_frames", dropped_fcs_);
    j.add("link_errors", dut_->link_errors);
    if (dut_->link_errors) j.add("link_error", dut_->last_link_error);
    j.add("counters_initial", initial_counters_);
    j.add("counters", dut_->counters());
    if (load_) j.add("load", load_->json());
    return j;
}

void Simulation::write_stats() const {
    if (options_.stats.empty()) return;
    FILE* file = options_.stats == "-" ? stdout : fopen(options_.stats.c_str(), "w");
    if (!file) throw UserError("cannot write '" + options_.stats + "': " + strerror(errno));
    fprintf(file, "%s\n", json().str().c_str());
    if (file == stdout) fflush(file);
    else fclose(file);
}

}  // namespace sim
