#include "loadgen.h"

#include <algorithm>
#include <cstring>
#include <fstream>

namespace sim {

namespace {

constexpr uint32_t kFirstHost = 256;  // clients are 10.0.1.0 and up for a board in 192.0.2.0/16
constexpr uint32_t kCrowdHost = 61000;  // behind all clients
constexpr double kEvilMutation = 0.2;
constexpr double kEvilVanish = 0.3;
constexpr size_t kMaxBacklog = 64;

Mac client_mac() { return parse_mac("02:00:00:00:10:00"); }

uint32_t evil_clients(const LoadOptions& o) { return o.mode == "hostile" ? std::max(o.clients / 4, 1u) : 0; }

// Addresses that are ours, from the first client's on.
uint32_t addresses(const LoadOptions& o) {
    return o.idle ? kCrowdHost + Crowd::hosts(o.idle) : o.clients + evil_clients(o);
}

}  // namespace

LoadGenerator::LoadGenerator(const Options& o)
    : options_(o.load), first_ip_((parse_ip(o.board_ip) & 0xffff0000) + kFirstHost),
      rng_(o.seed, "load"),
      arp_(client_mac(), first_ip_, addresses(o.load)),
      attacker_(parse_mac(o.board_mac), parse_ip(o.board_ip), o.load.port, o.seed),
      crowd_(options_, client_mac(), first_ip_ + kCrowdHost, parse_mac(o.board_mac), parse_ip(o.board_ip),
             o.seed, output_),
      answer_(o.load.expect), answer_known_(!o.load.expect.empty()) {
    const size_t count = options_.clients + evil_clients(options_);
    for (size_t i = 0; i < count; ++i)
        clients_.push_back(std::make_unique<TcpClient>(
            options_, client_mac(), first_ip_ + uint32_t(i), parse_mac(o.board_mac), parse_ip(o.board_ip),
            rng_.next(), evil(i) ? evil_output_ : output_));
    running_.assign(count, false);
    if (options_.mode == "messages") read_messages(options_.messages);
    if (!options_.warmup) options_.warmup = options_.clients;
    latencies_.reserve(options_.transactions);
}

// Little-endian numbers of 32 bit: sizes of request and answer, place of the ID in each; then the
// bytes of both; and so on.
void LoadGenerator::read_messages(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    uint32_t head[4];
    while (file.read(reinterpret_cast<char*>(head), sizeof head)) {
        Message m;
        m.request.resize(head[0]);
        m.answer.resize(head[1]);
        m.request_id = head[2];
        m.answer_id = head[3];
        file.read(reinterpret_cast<char*>(m.request.data()), head[0]);
        file.read(m.answer.data(), head[1]);
        if (!file || m.request_id + 4 > head[0] || m.answer_id + 4 > head[1])
            throw UserError("'" + path + "' is no file of messages");
        messages_.push_back(std::move(m));
    }
    if (messages_.empty()) throw UserError("no messages in '" + path + "'");
}

void LoadGenerator::send_message(size_t i, Cycle now, uint64_t tick) {
    const Message& m = messages_[message_number_ % messages_.size()];
    Bytes request = m.request;
    std::string answer = m.answer;
    memcpy(&request[m.request_id], &message_number_, sizeof message_number_);
    memcpy(&answer[m.answer_id], &message_number_, sizeof message_number_);
    ++message_number_;
    if (rng_.chance(options_.abort)) clients_[i]->abort_after(rng_.between(1, request.size()));
    clients_[i]->next(std::move(request), std::move(answer), now, tick);
}

void LoadGenerator::answered(size_t i, Cycle now, uint64_t tick) {
    measure(*clients_[i], now);
    if (enough()) clients_[i]->close(tick);
    else send_message(i, now, tick);
}

Job LoadGenerator::pick_job() const {
    if (options_.mode == "messages") return Job::Messages;
    return options_.mode == "http" ? Job::Http : options_.mode == "discard" ? Job::Discard : Job::Echo;
}

Bytes LoadGenerator::payload() {
    if (pick_job() == Job::Messages) return {};
    if (pick_job() == Job::Http) return Bytes(options_.request.begin(), options_.request.end());
    Bytes data(rng_.between(options_.min_bytes, options_.max_bytes));
    for (auto& byte : data) byte = uint8_t(rng_.next());
    return data;
}

void LoadGenerator::start(size_t i, Cycle now, uint64_t tick) {
    running_[i] = true;
    if (!evil(i)) ++started_, ++active_;
    const bool compare = pick_job() == Job::Http && answer_known_;
    clients_[i]->start(pick_job(), payload(), compare ? &answer_ : nullptr, now, tick);
    if (pick_job() == Job::Messages) send_message(i, now, tick);
    if (evil(i) && rng_.chance(kEvilVanish)) clients_[i]->vanish_after(uint32_t(rng_.between(1, 12)));
}

// Of all honest connections so far, those under way included.
LoadGenerator::Carried LoadGenerator::carried() const {
    Carried sum;
    for (size_t i = 0; i < options_.clients; ++i) {
        sum.acknowledged += clients_[i]->counters.acknowledged;
        sum.delivered += clients_[i]->counters.delivered;
    }
    return sum;
}

void LoadGenerator::measure(const TcpClient& client, Cycle now) {
    ++ended_;
    if (ended_ == options_.warmup) measured_from_ = now, carried_from_ = carried();
    if (ended_ <= options_.warmup || measured_ == options_.transactions) return;
    ++measured_;
    measured_to_ = now;
    if (measured_ == options_.transactions) carried_to_ = carried();
    bytes_sent_ += client.sent_bytes();
    bytes_received_ += client.received_bytes();
    latencies_.push_back(uint32_t(now - client.started()));
}

void LoadGenerator::ended(size_t i, Cycle now, uint64_t tick) {
    const TcpClient& client = *clients_[i];
    Result& result = evil(i) ? evil_result_ : honest_;
    running_[i] = false;
    switch (client.vanished() ? Outcome::Running : client.outcome()) {
        case Outcome::Running: ++result.vanished; break;
        case Outcome::Reset: ++result.reset; break;
        case Outcome::Timeout: ++result.timeout; break;
        case Outcome::Mismatch: ++result.mismatch; break;
        case Outcome::Aborted: ++result.aborted; break;
        case Outcome::Ok:
            if (pick_job() == Job::Http && !answer_known_) {
                answer_ = client.answer();
                answer_known_ = true;
            }
    }
    if (!evil(i)) {
        --active_;
        const bool right = client.outcome() == Outcome::Ok || client.outcome() == Outcome::Aborted;
        if (!right && first_error_.empty()) first_error_ = client.describe();
        if (pick_job() != Job::Messages) measure(client, now);
        if (enough()) return;
    } else if (draining_) {
        return;
    }
    start(i, now, tick);
}

void LoadGenerator::receive(const Frame& frame, Cycle now, uint64_t tick) {
    if (frame.bad_fcs) return;
    Frame reply;
    Segment s;
    switch (parse_frame(frame.data, s)) {
        case Parsed::BadChecksum: ++bad_checksums_; return;
        case Parsed::NotTcp:
            if (arp_.answer(frame, reply)) output_.push_back(std::move(reply.data));
            return;
        case Parsed::Ok: break;
    }
    if (options_.idle && crowd_.owns(s.target_ip)) return crowd_.receive(s, tick);
    const size_t i = s.target_ip - first_ip_;
    if (i >= clients_.size()) {
        ++strays_;  // the answer to an attacker's SYN, say
        return;
    }
    clients_[i]->receive(s, tick);
    if (clients_[i]->answered()) answered(i, now, tick);
    if (running_[i] && (clients_[i]->outcome() != Outcome::Running || clients_[i]->vanished()))
        ended(i, now, tick);
}

void LoadGenerator::tick(Cycle now, uint64_t tick) {
    crowd_.timer(tick);
    if (!crowded_ && !crowd_.open()) return;  // nobody else begins before
    crowded_ = true;
    const uint64_t ready = options_.ramp ? tick * options_.ramp : clients_.size();
    for (size_t i = 0; i < std::min<uint64_t>(ready, clients_.size()); ++i) {
        if (!running_[i]) {
            // Once enough transactions have ended no honest client starts another one.
            if (!draining_ && (evil(i) || !enough()))
                start(i, now, tick);
            continue;
        }
        clients_[i]->timer(tick);
        if (clients_[i]->outcome() != Outcome::Running) ended(i, now, tick);
    }
    check_drain(tick);
}

void LoadGenerator::check_drain(uint64_t tick) {
    if (!draining_ && enough() && !active_) {
        crowd_.leave(tick);
        if (!crowd_.gone()) return;
        draining_ = true;
        drain_until_ = tick + options_.drain_ms;
    }
    if (draining_ && tick >= drain_until_ && output_.empty()) drained_ = true;
}

void LoadGenerator::attack() {
    if (options_.mode != "hostile" || draining_ || attacks_.size() > kMaxBacklog) return;
    attack_debt_ += options_.attack_percent / 100.0;
    for (; attack_debt_ >= 1; attack_debt_ -= 1)
        attacks_.push_back(attacker_.make(output_.empty() ? Bytes() : output_.front()));
}

bool LoadGenerator::send(Frame& frame) {
    std::deque<Bytes>* queues[3] = {&output_, &evil_output_, &attacks_};
    const size_t first = attacks_.empty() && evil_output_.empty() ? 0 : rng_.below(3);
    for (size_t i = 0; i < 3; ++i) {
        std::deque<Bytes>& queue = *queues[(first + i) % 3];
        if (queue.empty()) continue;
        if (&queue == &output_) attack();
        frame.data = std::move(queue.front());
        frame.bad_fcs = false;
        queue.pop_front();
        // Only frames of attackers' own connections: a damaged copy of an honest frame with its
        // checksums mended would be a forgery that nobody could tell.
        if (&queue == &evil_output_ && rng_.chance(kEvilMutation)) attacker_.mutate(frame.data);
        return true;
    }
    return false;
}

bool LoadGenerator::failed() const {
    uint64_t broken = crowd_.resets() + honest_.reset + honest_.timeout + honest_.mismatch;
    for (size_t i = 0; i < options_.clients; ++i)
        broken += clients_[i]->counters.bad_ack + clients_[i]->counters.beyond_window +
                  clients_[i]->counters.beyond_fin;
    return broken != 0;
}

size_t LoadGenerator::latency(double quantile) const {
    if (latencies_.empty()) return 0;
    std::vector<uint32_t> sorted = latencies_;
    const size_t k = std::min(size_t(quantile * double(sorted.size())), sorted.size() - 1);
    std::nth_element(sorted.begin(), sorted.begin() + long(k), sorted.end());
    return sorted[k];
}

Json LoadGenerator::json() const {
    ClientCounters sum;
    for (size_t i = 0; i < options_.clients; ++i) {
        const ClientCounters& c = clients_[i]->counters;
        sum.retransmissions += c.retransmissions;
        sum.fast_retransmissions += c.fast_retransmissions;
        sum.out_of_order += c.out_of_order;
        sum.probes += c.probes;
        sum.pauses += c.pauses;
        sum.bad_ack += c.bad_ack;
        sum.beyond_window += c.beyond_window;
        sum.beyond_fin += c.beyond_fin;
    }
    const Cycle cycles = measured_to_ - measured_from_;
    Json j;
    j.add("mode", options_.mode);
    j.add("clients", uint64_t(options_.clients));
    j.add("complete", uint64_t(drained_));
    j.add("ended", ended_);
    j.add("active", uint64_t(active_));
    j.add("transactions", measured_);
    j.add("cycles", cycles);
    j.add("cycles_per_transaction", measured_ ? double(cycles) / double(measured_) : 0.0);
    j.add("latency_p50", uint64_t(latency(0.5)));
    j.add("latency_p99", uint64_t(latency(0.99)));
    j.add("latency_max", uint64_t(latency(1)));
    j.add("bytes_sent", bytes_sent_);
    j.add("bytes_received", bytes_received_);
    j.add("carried_out", carried_to_.acknowledged - carried_from_.acknowledged);
    j.add("carried_in", carried_to_.delivered - carried_from_.delivered);
    j.add("answer_bytes", uint64_t(answer_.size()));
    j.add("errors", honest_.reset + honest_.timeout + honest_.mismatch);
    j.add("resets", honest_.reset);
    j.add("timeouts", honest_.timeout);
    j.add("aborted", honest_.aborted);
    j.add("mismatches", honest_.mismatch);
    j.add("bad_ack", sum.bad_ack);
    j.add("beyond_window", sum.beyond_window);
    j.add("beyond_fin", sum.beyond_fin);
    j.add("bad_checksums", bad_checksums_);
    j.add("strays", strays_);
    j.add("retransmissions", sum.retransmissions);
    j.add("fast_retransmissions", sum.fast_retransmissions);
    j.add("out_of_order", sum.out_of_order);
    j.add("probes", sum.probes);
    j.add("pauses", sum.pauses);
    if (options_.idle) j.add("crowd", crowd_.json());
    if (!first_error_.empty()) j.add("first_error", first_error_);
    if (options_.mode == "hostile") {
        Json attacks = attacker_.json();
        attacks.add("vanished", evil_result_.vanished);
        j.add("attacks", attacks);
    }
    return j;
}

}  // namespace sim
