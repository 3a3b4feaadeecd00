#include "simulation.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sim {

namespace {

volatile sig_atomic_t stop_signal = 0;

constexpr Cycle kOften = 64;        // cycles between looks at the TAP device and the clock
constexpr Cycle kNapDistance = 1024;  // between naps while nothing happens
constexpr Cycle kSeldom = 4096;     // and at everything a human waits for
constexpr size_t kTapBacklog = 32;  // frames taken from the kernel ahead of the link
constexpr size_t kUartBacklog = 16;

}  // namespace

void request_stop(int signal) { stop_signal = signal; }

Simulation::Simulation(const Options& o)
    : options_(o), to_board_(o.to_board, o.seed, "to board"),
      from_board_(o.from_board, o.seed, "from board"), ticker_(o), idler_(o) {
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
    if (!options_.stats.empty() && options_.stats != "-") {
        // Not only at the end, when the simulation's time has been spent.
        FILE* file = fopen(options_.stats.c_str(), "a");
        if (!file) cannot_write("statistics '" + options_.stats + "'");
        fclose(file);
    }
    if (options_.control_fd >= 0) control_.open(options_.control_fd);
    if (!options_.progress.empty()) progress_.open(options_.progress, dut_->nominal_hz());
    initial_counters_ = dut_->counters();
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
    start_ = wall_seconds();
    ticker_.start(start_);
    idler_.start(start_);
    while (!reason_) {
        if (cycle_ % kOften == 0) poll_often();
        if (cycle_ == options_.trace_from && !options_.trace.empty() && !tracing_) {
            dut_->start_trace(options_.trace);
            tracing_ = true;
        }
        const bool tick = ticker_.step(cycle_);
        tick_ += tick;
        if (tick && load_) load_->tick(cycle_, tick_);
        move_frames();
        dut_->cycle(tick);
        ++cycle_;
        if (!options_.until.empty() && dut_->uart_out.size() > looked_at_) look_at_uart();
        if (options_.cycles && cycle_ >= options_.cycles) stop("cycle limit");
    }
    pcap_.close();
    for (uint8_t byte : dut_->uart_out) uart_.put(byte);
    uart_.flush();
    check_prints(options_.events);
    write_stats();
    if (dut_->link_errors) fprintf(stderr, "sim: link error: %s\n", dut_->last_link_error.c_str());
    return exit_code();
}

void Simulation::stop(const char* reason) {
    if (!reason_) reason_ = reason;
}

// What was printed, its end only, so that the text is found when its last byte comes.
void Simulation::look_at_uart() {
    for (; looked_at_ < dut_->uart_out.size(); ++looked_at_) printed_ += char(dut_->uart_out[looked_at_]);
    if (printed_.size() > options_.until.size()) printed_.erase(0, printed_.size() - options_.until.size());
    if (printed_ == options_.until) stop("text printed");
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
    ticker_.poll(cycle_, dut_->nominal_hz());
    // Who waits for simulated time need not be told how little of it was computed.
    progress_.publish(cycle_ + idler_.cycles(dut_->nominal_hz()), tick_);
    if (load_ && load_->draining() && !healed_) {
        to_board_.heal();
        from_board_.heal();
        healed_ = true;
    }
    if (load_ && load_->finished()) stop("load complete");
    if (cycle_ % kSeldom == 0) poll_seldom();
    if (cycle_ % kNapDistance == 0 && !load_) nap();
}

void Simulation::read_tap() {
    Frame frame;
    while (to_board_.size() < kTapBacklog && tap_.read(frame)) to_board_.push(std::move(frame), cycle_);
}

void Simulation::poll_seldom() {
    const double now = wall_seconds();
    if (stop_signal) stop(stop_signal == SIGINT ? "interrupted" : "terminated");
    if (options_.seconds > 0 && now - start_ >= options_.seconds) stop("time limit");
    if (dut_->finished()) stop("$finish");
    for (uint8_t byte : dut_->uart_out) uart_.put(byte);
    dut_->uart_out.clear();
    looked_at_ = 0;
    uint8_t byte;
    while (dut_->uart_in.size() < kUartBacklog && uart_.get(byte)) dut_->uart_in.push_back(byte);
    uart_.flush();
    pcap_.flush();
    check_prints(options_.events);
    if (!control_.serve([this](const std::string& command) { return answer(command); })) stop("quit");
    keep_rate(now);
}

std::string Simulation::answer(const std::string& command) {
    if (command == "stats") return json().str();
    const std::string ticks = "ticks ";
    if (command.rfind(ticks, 0) != 0) return "";
    ticker_.hurry(strtoull(command.c_str() + ticks.size(), nullptr, 10));
    return "{}";
}

void Simulation::keep_rate(double now) {
    if (options_.max_rate <= 0) return;
    const double ahead = double(cycle_) / options_.max_rate - (now - start_);
    if (ahead <= 0) return;
    usleep(useconds_t(std::min(ahead, 0.1) * 1e6));
    ticker_.rested(wall_seconds() - now);
}

void Simulation::nap() {
    const uint64_t traffic = to_board_.stats().frames + from_board_.stats().frames + uart_.bytes_out();
    const bool under_way = !to_board_.empty() || !from_board_.empty() || !dut_->can_send();
    const bool waiting = !dut_->uart_in.empty() || !dut_->uart_out.empty();
    const double now = wall_seconds();
    if (traffic != last_traffic_ || under_way || waiting || dut_->active || ticker_.hurries())
        idler_.busy(cycle_, now);
    const auto wake = {tap_.fd(), uart_.input(), control_.fd(), dut_->wakes()};
    ticker_.rested(idler_.nap(cycle_, dut_->silence(), now, wake));
    last_traffic_ = traffic;
    dut_->active = false;
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
    const bool own = options_.stats != "-";
    FILE* file = own ? fopen(options_.stats.c_str(), "w") : console();
    const std::string what = "statistics '" + options_.stats + "'";
    if (!file) cannot_write(what);
    const bool written = fprintf(file, "%s\n", json().str().c_str()) > 0 && !fflush(file);
    const int reason = errno;
    if (own) fclose(file);
    errno = reason;
    if (!written) cannot_write(what);
}

}  // namespace sim
