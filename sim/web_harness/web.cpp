// The web service's clients around the fabric top: throughput, and the latency of a single client.
// Options are the harness's, as far as they make sense here, and those of `own_options()`.
#include <algorithm>
#include <cstring>

#include "dut_fabric.cpp"
#include "web_load.h"

namespace sim {

namespace {

constexpr uint32_t kFirstHost = 256;    // as in loadgen.cpp
constexpr uint32_t kCrowdHost = 61000;
constexpr uint32_t kSlowHost = 61100;

Mac client_mac() { return parse_mac("02:00:00:00:10:00"); }

}  // namespace

// ---- clients ----

WebLoad::WebLoad(const Options& o, const WebOptions& web)
    : options_(o.load), web_(web), first_ip_((parse_ip(o.board_ip) & 0xffff0000) + kFirstHost),
      rng_(o.seed, "web"),
      crowd_(options_, client_mac(), first_ip_ + kCrowdHost, parse_mac(o.board_mac), parse_ip(o.board_ip),
             o.seed, output_),
      slow_(options_, web.slow, client_mac(), first_ip_ + kSlowHost, parse_mac(o.board_mac),
            parse_ip(o.board_ip), o.seed, output_) {
    const uint32_t count = options_.clients + web.missing;
    for (uint32_t i = 0; i < count; ++i)
        clients_.push_back(std::make_unique<TcpClient>(options_, client_mac(), first_ip_ + i,
                                                       parse_mac(o.board_mac), parse_ip(o.board_ip),
                                                       rng_.next(), output_));
    running_.assign(count, false);
    held_.resize(count);
    exchanges_ = read_exchanges(options_.messages);
    if (web.missing) misses_ = read_exchanges(web.misses);
    if (!options_.warmup) options_.warmup = options_.clients;
}

// Little-endian numbers of 32 bit, sizes of request and answer; then the bytes of both; and so on.
WebLoad::Exchanges WebLoad::read_exchanges(const std::string& path) {
    Exchanges found;
    std::ifstream file(path, std::ios::binary);
    uint32_t sizes[2];
    while (file.read(reinterpret_cast<char*>(sizes), sizeof sizes)) {
        Exchange e;
        e.request.resize(sizes[0]);
        e.answer.resize(sizes[1]);
        file.read(reinterpret_cast<char*>(e.request.data()), sizes[0]);
        if (!file.read(e.answer.data(), sizes[1])) throw UserError("'" + path + "' ends within an answer");
        found.push_back(std::move(e));
    }
    if (found.empty()) throw UserError("no requests in '" + path + "'; name a file of them");
    return found;
}

void WebLoad::start(size_t i, Cycle now, uint64_t tick) {
    running_[i] = true;
    ++active_;
    if (web_.each && !misses(i)) {
        const Exchange& e = pick(i);
        clients_[i]->start(Job::Http, Bytes(e.request), &e.answer, now, tick);
    } else {
        clients_[i]->start(Job::Messages, {}, nullptr, now, tick);
        ask(i, now, tick);
    }
}

void WebLoad::ask(size_t i, Cycle now, uint64_t tick) {
    Bytes requests;
    std::string answers;
    for (uint32_t k = 0; k < (misses(i) ? 1 : web_.pipeline); ++k) {
        const Exchange& e = pick(i);
        requests.insert(requests.end(), e.request.begin(), e.request.end());
        answers += e.answer;
    }
    clients_[i]->next(std::move(requests), std::move(answers), now, tick);
}

uint64_t WebLoad::delivered() const {
    uint64_t sum = 0;
    for (size_t i = 0; i < options_.clients; ++i) sum += clients_[i]->counters.delivered;
    return sum;
}

void WebLoad::count(size_t requests, Cycle now) {
    const bool warm = ended_ >= options_.warmup;
    ended_ += requests;
    if (!warm && ended_ >= options_.warmup) from_ = now, delivered_from_ = delivered(), missed_from_ = missed_;
    if (!warm || measured_ >= options_.transactions) return;
    measured_ += requests;
    to_ = now;
    if (measured_ >= options_.transactions) delivered_to_ = delivered(), missed_to_ = missed_;
}

void WebLoad::ended(size_t i, Cycle now, uint64_t tick) {
    running_[i] = false;
    --active_;
    if (clients_[i]->outcome() != Outcome::Ok) {
        ++errors_;
        if (first_error_.empty()) first_error_ = clients_[i]->describe();
    }
    if (web_.each && !misses(i)) count(1, now);
    if (!enough()) start(i, now, tick);
}

// Of what says nothing but that a segment has come the first waits for a second one, or for data to go
// with, until the next tick (RFC 9293, 3.8.6.3). `queued`: frames there were before the segment came.
void WebLoad::delay_ack(size_t i, size_t queued) {
    if (output_.size() <= queued) return;
    Segment s;
    const bool alone = output_.size() == queued + 1 && clients_[i]->outcome() == Outcome::Running &&
                       parse_frame(output_.back(), s) == Parsed::Ok && !s.size && s.flags == kAck;
    const bool second = !held_[i].empty();
    held_[i].clear();
    if (!alone || second) return;
    held_[i] = std::move(output_.back());
    output_.pop_back();
}

void WebLoad::receive(const Segment& s, Cycle now, uint64_t tick) {
    if (options_.idle && crowd_.owns(s.target_ip)) return crowd_.receive(s, tick);
    if (web_.slow.members && slow_.owns(s.target_ip)) return slow_.receive(s);
    const size_t i = s.target_ip - first_ip_;
    if (i >= clients_.size()) {
        ++strays_;
        return;
    }
    TcpClient& client = *clients_[i];
    const size_t queued = output_.size();
    client.receive(s, tick);
    if (client.answered()) {
        if (misses(i)) ++missed_;
        else count(web_.pipeline, now);
        if (enough()) client.close(tick);
        else ask(i, now, tick);
    }
    delay_ack(i, queued);
    if (running_[i] && client.outcome() != Outcome::Running) ended(i, now, tick);
}

void WebLoad::tick(Cycle now, uint64_t tick) {
    crowd_.timer(tick);
    if (!crowded_ && !(crowd_.open() && slow_.begun())) return;  // nobody else begins before
    crowded_ = true;
    for (size_t i = 0; i < clients_.size(); ++i) {
        if (!held_[i].empty()) output_.push_back(std::move(held_[i]));
        held_[i].clear();
        if (!running_[i]) {
            if (!enough()) start(i, now, tick);
            continue;
        }
        clients_[i]->timer(tick);
        if (clients_[i]->outcome() != Outcome::Running) ended(i, now, tick);
    }
    if (!draining_ && enough() && !active_) {
        crowd_.leave(tick);
        slow_.leave();
        if (!crowd_.gone() || !slow_.gone()) return;
        draining_ = true;
        drain_until_ = tick + options_.drain_ms;
    }
    drained_ = draining_ && tick >= drain_until_ && output_.empty();
}

bool WebLoad::send(Frame& frame, Cycle now) {
    if (web_.slow.members && now >= slow_next_ && crowd_.open()) slow_.turn(), slow_next_ = now + slow_.gap();
    if (output_.empty()) return false;
    frame = Frame{std::move(output_.front()), false};
    output_.pop_front();
    return true;
}

bool WebLoad::failed() const {
    uint64_t broken = crowd_.resets() + slow_.resets() + slow_.wrong() + errors_ + strays_;
    for (const auto& client : clients_)
        broken += client->counters.bad_ack + client->counters.beyond_window + client->counters.beyond_fin;
    return broken != 0;
}

Json WebLoad::json() const {
    uint64_t repeated = 0;
    for (const auto& client : clients_)
        repeated += client->counters.retransmissions + client->counters.fast_retransmissions;
    Json j;
    j.add("complete", uint64_t(drained_));
    j.add("requests", measured_);
    j.add("cycles", to_ - from_);
    j.add("cycles_per_request", measured_ ? double(to_ - from_) / double(measured_) : 0.0);
    j.add("delivered", delivered_to_ - delivered_from_);
    j.add("errors", errors_);
    j.add("strays", strays_);
    j.add("retransmissions", repeated);
    if (options_.idle) j.add("crowd", crowd_.json());
    if (web_.missing) j.add("misses", missed_to_ - missed_from_);
    if (web_.slow.members) j.add("slow", slow_.json());
    if (!first_error_.empty()) j.add("first_error", first_error_);
    return j;
}

namespace {

// ---- the link, and the times of what passes it ----

class Watched : public DutFabric {
  public:
    using DutFabric::DutFabric;
    // The cycle in which the first beat of each frame that comes out was offered.
    std::deque<Cycle> first_beats;

    void cycle(bool tick) override {
        DutFabric::cycle(tick);
        ++now_;
        if (top_->tx_valid && top_->tx_first && !offered_) first_beats.push_back(now_);
        offered_ = top_->tx_valid && top_->tx_first && !top_->tx_ready;
    }

  private:
    Cycle now_ = 0;
    bool offered_ = false;
};

class Run {
  public:
    Run(const Options& o, const WebOptions& web) : options_(o), dut_(o), load_(o, web) {}

    // Until all is done, or the limit of cycles; returns the exit code, as in simulation.h.
    int run() {
        while (!load_.finished() && (!options_.cycles || cycle_ < options_.cycles) && !dut_.finished()) step();
        Json j;
        j.add("seed", options_.seed);
        j.add("cycles", cycle_);
        j.add("link_errors", dut_.link_errors);
        j.add("latencies", latencies_);
        j.add("latency_min", lowest_);
        j.add("latency_max", highest_);
        j.add("load", load_.json());
        j.add("counters", dut_.counters());
        fprintf(console(), "%s\n", j.str().c_str());
        if (dut_.link_errors) fprintf(stderr, "sim: link error: %s\n", dut_.last_link_error.c_str());
        if (dut_.link_errors || dut_.finished() || load_.failed()) return 1;
        return load_.finished() ? 0 : 3;
    }

  private:
    void step() {
        if (cycle_ == options_.trace_from && !options_.trace.empty()) dut_.start_trace(options_.trace);
        const bool tick = ++since_tick_ >= options_.tick_cycles;
        if (tick) since_tick_ = 0, load_.tick(cycle_, ++tick_);
        Frame frame;
        if (dut_.can_send() && load_.send(frame, cycle_)) {
            Segment s;
            asks_ = parse_frame(frame.data, s) == Parsed::Ok && s.size;
            sending_ = true;
            dut_.send(std::move(frame));
        }
        dut_.cycle(tick);
        ++cycle_;
        if (sending_ && dut_.can_send()) {  // its last beat was taken in this cycle
            sending_ = false;
            if (asks_) asked_ = cycle_, waits_ = true;
        }
        for (; !dut_.received.empty(); dut_.received.pop_front()) receive(dut_.received.front());
    }

    void receive(const Frame& frame) {
        const Cycle first = dut_.first_beats.front();
        dut_.first_beats.pop_front();
        Segment s;
        if (frame.bad_fcs || parse_frame(frame.data, s) != Parsed::Ok) return;
        if (s.size && waits_ && options_.load.clients == 1) answer(first);
        load_.receive(s, cycle_, tick_);
    }

    // Of several clients nobody could say which request it belongs to.
    void answer(Cycle first) {
        waits_ = false;
        const uint64_t latency = first + 1 - asked_;
        lowest_ = latencies_ ? std::min(lowest_, latency) : latency;
        highest_ = std::max(highest_, latency);
        ++latencies_;
    }

    Options options_;
    Watched dut_;
    WebLoad load_;
    Cycle cycle_ = 0, since_tick_ = 0, asked_ = 0;
    uint64_t tick_ = 0, latencies_ = 0, lowest_ = 0, highest_ = 0;
    bool sending_ = false, asks_ = false, waits_ = false;
};

// Takes the options of this harness out of `arguments`.
WebOptions own_options(std::vector<char*>& arguments) {
    WebOptions web;
    const std::pair<const char*, uint32_t*> numbers[] = {
        {"--pipeline", &web.pipeline},         {"--slow", &web.slow.members},
        {"--slow-gap", &web.slow.gap},         {"--slow-connect", &web.slow.connect},
        {"--slow-before", &web.slow.before},   {"--missing", &web.missing}};
    for (size_t i = 1; i < arguments.size();) {
        const std::string name = arguments[i];
        const auto found = std::find_if(std::begin(numbers), std::end(numbers),
                                        [&](const auto& number) { return name == number.first; });
        const bool number = found != std::end(numbers), file = name == "--misses";
        const bool takes = number || file;
        if (name == "--each") web.each = true;
        else if (!takes) {
            ++i;
            continue;
        }
        if (takes && i + 1 == arguments.size()) throw UserError("option " + name + " needs a value");
        if (file) web.misses = arguments[i + 1];
        if (number) *found->second = uint32_t(strtoul(arguments[i + 1], nullptr, 10));
        arguments.erase(arguments.begin() + long(i), arguments.begin() + long(i) + 1 + takes);
    }
    if (!web.pipeline) throw UserError("--pipeline must be a number of at least 1");
    return web;
}

}  // namespace
}  // namespace sim

int main(int argc, char** argv) {
    try {
        std::vector<char*> arguments(argv, argv + argc);
        const sim::WebOptions web = sim::own_options(arguments);
        const sim::Options options = sim::parse_options(int(arguments.size()), arguments.data());
        if (!options.tick_cycles) throw sim::UserError("--time must be cycles:N");
        return sim::Run(options, web).run();
    } catch (const sim::UserError& error) {
        fprintf(stderr, "sim: %s\n", error.what());
        return 2;
    }
}
