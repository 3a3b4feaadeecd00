#include "node.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/use_awaitable.hpp>

#include <algorithm>
#include <exception>

namespace jobd {

namespace {

constexpr unsigned kSlotBits = 8;
constexpr size_t kResponsePayload = smp::kResponseBytes - smp::kHeaderBytes;

int64_t nanoseconds(Clock::duration length) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(length).count();
}

}  // namespace

Node::Node(Worker& worker, tcp::socket socket, std::shared_ptr<Origin> origin)
    : worker_(worker),
      origin_(std::move(origin)),
      numbers_(worker.metrics.add_node(origin_->name)),
      channel_(std::move(socket), worker.io, worker.pool(), *worker.counters),
      slots_(worker.options.window + 1),  // one for the end of a record
      configured_event_(worker.io) {
    numbers_->connected.add(1);
}

void Node::start(NodeListener& listener) {
    listener_ = &listener;
    asio::co_spawn(worker_.io, read_loop(shared_from_this()), asio::detached);
    asio::co_spawn(worker_.io, write_loop(shared_from_this()), asio::detached);
}

asio::awaitable<void> Node::read_loop(std::shared_ptr<Node> self) {
    const smp::Limits limits{self->worker_.options.largest, false, true, true};
    try {
        for (;;) {
            Stored answer;
            Received received;
            while (!self->channel_.try_receive(answer, limits, received))
                co_await self->channel_.input();
            if (received.kind == Received::kEnd) break;
            if (received.kind == Received::kRefused) {
                self->worker_.counters->node_faults.add(1);
                self->reject(std::string("sent no SMP answer: ") + status_name(received.status));
                co_return;
            }
            self->take(std::move(answer));
        }
        self->lose("closed the connection");
    } catch (const std::exception& error) {
        self->lose(error.what());
    }
}

asio::awaitable<void> Node::write_loop(std::shared_ptr<Node> self) {
    try {
        co_await self->channel_.write_loop();
    } catch (const std::exception& error) {
        self->lose(error.what());
    }
}

void Node::send(Job job, Stored request) {
    const auto slot = std::ranges::find_if(slots_, [](const Slot& s) { return !s.job; });
    slot->generation = (slot->generation + 1) & (UINT32_MAX >> kSlotBits);
    if (slot->generation == 0) slot->generation = 1;  // ID 0 is that of a refused header
    request.set_id(slot->generation << kSlotBits | uint32_t(slot - slots_.begin()));
    if (origin_->epoch) smp::store_epoch(request.bytes, origin_->epoch);
    slot->job = std::move(job);
    channel_.post(std::move(request));
    numbers_->sent.add(1);
    numbers_->outstanding.add(1);
}

void Node::take(Stored answer) {
    const auto header = answer.header();
    if (header.is(smp::Type::kResponse)) return take_response(std::move(answer));
    if (header.size < smp::kIdBytes) {
        worker_.counters->node_faults.add(1);
        return reject("sent a data message without an ID");
    }
    if (Slot* slot = find(answer.id()))
        finish(*slot, std::move(answer));
    else
        worker_.counters->late.add(1);
}

void Node::take_response(Stored answer) {
    const size_t size = answer.header().size;
    if (size != 1 && size != kResponsePayload) {
        worker_.counters->node_faults.add(1);
        return reject("sent a response of neither 1 nor 8 bytes");
    }
    const auto bytes = std::span(answer.bytes);
    const auto status = static_cast<Status>(bytes[smp::kHeaderBytes]);
    if (status == Status::STALE && origin_->epoch) return lose_lease();
    if (configuring_since_) return set_configured(status);
    const uint32_t id = size == 1 ? 0 : smp::load_u32(bytes.subspan(smp::kDataHeaderBytes));
    // A node that refuses a message by its header does not know its ID; it answers in turn.
    Slot* slot = id == 0 ? oldest() : find(id);
    if (!slot) return worker_.counters->late.add(1);
    finish(*slot, Stored{smp::response_message(status, 0), {}, {}});
}

// Another holder has the node: no message under this epoch will ever be accepted.
void Node::lose_lease() {
    if (origin_->stale.exchange(true)) return;
    worker_.counters->nodes_stale.add(1);
    lose("STALE: its lease has another epoch; it is given up");
}

void Node::finish(Slot& slot, Stored answer) {
    Job job = std::move(*slot.job);
    slot.job.reset();
    if (answer.header().is(smp::Type::kData))
        answer.set_id(job.id);
    else
        smp::store_u32(std::span(answer.bytes).subspan(smp::kDataHeaderBytes), job.id);
    const auto now = Clock::now();
    const int64_t service = nanoseconds(now - std::max(job.sent, last_answer_));
    last_answer_ = now;
    numbers_->answered.add(1);
    numbers_->outstanding.add(-1);
    numbers_->busy_ns.add(service);
    numbers_->service.add(service);
    if (listener_) listener_->on_answer(*this, std::move(job), std::move(answer), service);
}

void Node::set_record(User* user) {
    worker_.counters->records.add(int64_t(user != nullptr) - int64_t(has_record));
    record_user_ = user;
    has_record = user != nullptr;
}

bool Node::has_jobs() const {
    return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.job.has_value(); });
}

Node::Slot* Node::find(uint32_t wire_id) {
    const uint32_t number = wire_id & ((1u << kSlotBits) - 1);
    if (number >= slots_.size()) return nullptr;
    Slot& slot = slots_[number];
    return slot.job && slot.generation == wire_id >> kSlotBits ? &slot : nullptr;
}

Node::Slot* Node::oldest() {
    Slot* found = nullptr;
    for (auto& slot : slots_)
        if (slot.job && (!found || slot.job->sent < found->job->sent)) found = &slot;
    return found;
}

void Node::set_configured(Status status) {
    configuring_since_.reset();
    configured_ = status;
    configured_event_.notify();
}

ConfigurationBytes Node::stamped(ConfigurationBytes configuration) const {
    if (!origin_->epoch) return configuration;
    smp::Bytes copy = *configuration;
    smp::store_epoch(copy, origin_->epoch);
    return std::make_shared<const smp::Bytes>(std::move(copy));
}

asio::awaitable<Status> Node::configure(ConfigurationBytes configuration) {
    configuration = stamped(std::move(configuration));
    configured_.reset();
    configuring_since_ = Clock::now();
    if (origin_->management)
        asio::co_spawn(worker_.io, connect_to_configure(shared_from_this(), configuration),
                       asio::detached);
    else
        channel_.post(*configuration);
    const auto self = shared_from_this();
    while (!configured_ && !lost_) co_await configured_event_.wait();
    co_return configured_.value_or(Status::NO_ANSWER);
}

asio::awaitable<void> Node::connect_to_configure(std::shared_ptr<Node> self,
                                                 ConfigurationBytes configuration) {
    Status status = Status::NO_ANSWER;
    try {
        tcp::socket socket(self->worker_.io);
        co_await socket.async_connect(*self->origin_->management, asio::use_awaitable);
        const auto channel = std::make_shared<Channel>(std::move(socket), self->worker_.io, nullptr,
                                                       *self->worker_.counters);
        self->management_ = channel;
        if (self->lost_) channel->close();
        channel->post(*configuration);
        channel->finish();
        co_await channel->write_loop();
        Stored answer;
        const auto received =
            co_await channel->receive(answer, {smp::kResponseBytes, false, true, false});
        if (received.kind == Received::kMessage && received.header.size > 0)
            status = static_cast<Status>(answer.bytes[smp::kHeaderBytes]);
    } catch (const std::exception& error) {
        log(self->name(), std::string("configuration: ") + error.what());
    }
    self->management_.reset();
    if (status == Status::STALE && self->origin_->epoch) co_return self->lose_lease();
    if (self->configuring_since_) self->set_configured(status);
}

void Node::check_patience(Clock::time_point now) {
    const Slot* slot = oldest();
    const auto limit = worker_.options.patience;
    // The second of two jobs waits for the first.
    if (slot && now - std::max(slot->job->sent, last_answer_) > limit)
        reject("did not answer a job in time");
    else if (configuring_since_ && now - *configuring_since_ > limit)
        reject("did not answer a configuration in time");
}

void Node::reject(const std::string& reason) {
    origin_->faulty = true;
    lose(reason);
}

void Node::lose(const std::string& reason) {
    if (lost_) return;
    lost_ = true;
    channel_.close();
    if (management_) management_->close();
    configured_event_.notify();
    numbers_->connected.add(-1);
    worker_.counters->nodes_lost.add(1);
    log(name(), reason);
    std::vector<Job> jobs;
    for (auto& slot : slots_)
        if (slot.job) jobs.push_back(std::move(*std::exchange(slot.job, std::nullopt)));
    numbers_->outstanding.add(-int64_t(jobs.size()));
    if (listener_) listener_->on_lost(*this, std::move(jobs));
    if (origin_->ended) origin_->ended();
}

std::optional<IdleNode> Node::release() {
    if (lost_) return std::nullopt;
    if (channel_.has_unread() || has_jobs()) {
        lose("was in the middle of an answer when its user left");
        return std::nullopt;
    }
    lost_ = true;  // for the loops, which end now
    numbers_->connected.add(-1);
    return IdleNode{channel_.release(), origin_};
}

}  // namespace jobd
