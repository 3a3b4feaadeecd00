#include "user.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <algorithm>
#include <exception>

namespace jobd {

namespace {

// Requests are read ahead of their turn: two, or as many small ones as these bytes hold.
constexpr size_t kRequestsAhead = 2;
constexpr size_t kBytesAhead = 1 << 16;
// A user that takes no answers has this many bytes of them stored, and those of the jobs that are
// with nodes by then.
constexpr size_t kAnswerBytes = 4 << 20;
constexpr size_t kLeastAnswers = 16;
// Refusals are answers to no job: so many may wait to be taken.
constexpr size_t kMostRefusals = 4096;

}  // namespace

User::User(Worker& worker, tcp::socket socket, std::shared_ptr<Group> group)
    : worker_(worker),
      channel_(std::move(socket), worker.io, worker.pool(), *worker.counters),
      name_("user " + channel_.peer()),
      group_(std::move(group)),
      changed_(worker.io) {
    if (worker.options.configured) state_ = State::kDataRouting;
    channel_.on_sent = [this] {
        group_->update(*this);
        changed_.notify();
    };
}

asio::awaitable<void> User::run(std::shared_ptr<User> self) {
    self->worker_.counters->users.add(1);
    self->worker_.counters->users_total.add(1);
    self->group_->join(*self);
    asio::co_spawn(self->worker_.io, write_loop(self), asio::detached);
    Ending ending;
    try {
        ending = co_await self->read_messages();
    } catch (const std::exception& error) {
        self->leave(error.what());
    }
    co_await self->drained();
    self->group_->end_record(*self);
    co_await self->drained();
    try {
        co_await self->finish(ending);
    } catch (const std::exception&) {
        // It went without reading to the end; its jobs are answered.
    }
    self->leave("");
    self->group_->leave(*self);
    self->worker_.counters->users.add(-1);
}

asio::awaitable<void> User::write_loop(std::shared_ptr<User> self) {
    try {
        co_await self->channel_.write_loop();
    } catch (const std::exception& error) {
        self->leave(error.what());
    }
    self->written_ = true;
    self->changed_.notify();
}

asio::awaitable<User::Ending> User::read_messages() {
    smp::Limits limits{worker_.options.largest, true, false, true};
    limits.stream = worker_.options.streams;
    for (;;) {
        while (is_full() && !gone_) co_await changed_.wait();
        Stored message;
        Received received;
        while (!channel_.try_receive(message, limits, received)) co_await channel_.input();
        if (timed_out_) co_return Ending{Status::TIMED_OUT};
        if (received.kind == Received::kEnd) co_return Ending{};
        if (received.kind == Received::kRefused) co_return Ending{received.status};
        worker_.counters->bytes_from_users.add(int64_t(message.size()));
        const auto ending = received.header.is(smp::Type::kConfiguration)
                                ? co_await configure(std::move(message))
                                : take_data(std::move(message));
        if (ending) co_return *ending;
    }
}

std::optional<User::Ending> User::take_data(Stored message) {
    worker_.counters->received.add(1);
    if (message.header().size < smp::kIdBytes) {
        refuse(Status::BAD_LENGTH, 0);
    } else if (state_ == State::kInitial) {
        worker_.counters->refused.add(1);
        return Ending{Status::STOPPED, message.id()};
    } else if (message.header().is(smp::Type::kStream) && !group_->takes_streams()) {
        worker_.counters->refused.add(1);
        return Ending{Status::BAD_TYPE, 0};
    } else if (message.size() > group_->largest()) {
        refuse(Status::TOO_LARGE, message.id());
    } else {
        request_bytes_ += message.size();
        requests_.push_back({std::move(message), Clock::now()});
        group_->update(*this);
    }
    return std::nullopt;
}

asio::awaitable<std::optional<User::Ending>> User::configure(Stored message) {
    worker_.counters->configurations.add(1);
    smp::Configuration ignored;
    const Status form = smp::load_configuration(
        std::span(message.bytes).subspan(smp::kHeaderBytes), ignored);
    Group::Outcome outcome{form, 0};
    if (form == Status::OK) {
        const State before = state_;
        state_ = State::kNodesConfiguration;
        co_await drained();
        group_->end_record(*this);
        co_await drained();
        const auto bytes = std::make_shared<const smp::Bytes>(std::move(message.bytes));
        outcome = co_await group_->configure(*this, bytes);
        const bool changed = outcome.status == Status::OK;
        state_ = changed ? State::kDataRouting
                         : outcome.status == Status::BUSY ? before : State::kInitial;
    }
    if (outcome.status != Status::OK) {
        worker_.counters->configurations_refused.add(1);
        log(name_, std::string("configuration refused: ") + status_name(outcome.status));
        if (form != Status::OK && state_ == State::kInitial) co_return Ending{form};
    }
    channel_.post(smp::response_message(outcome.status, outcome.nodes));
    co_return std::nullopt;
}

asio::awaitable<void> User::drained() {
    while (!requests_.empty() || in_flight > 0) co_await changed_.wait();
}

// So many messages wait that no more is read.
bool User::is_full() const {
    return (requests_.size() >= kRequestsAhead && request_bytes_ >= kBytesAhead) ||
           channel_.queued() >= kMostRefusals;
}

asio::awaitable<void> User::finish(Ending ending) {
    if (gone_) co_return;
    if (ending.status != Status::OK) {
        log(name_, std::string("refused: ") + status_name(ending.status));
        channel_.post(smp::response_message(ending.status, ending.id));
    }
    channel_.finish();
    while (!written_) co_await changed_.wait();
    if (!gone_) co_await channel_.linger();
}

bool User::can_send() const {
    const size_t most = std::max(kLeastAnswers, 2 * worker_.options.window * group_->nodes());
    return !requests_.empty() && in_flight + channel_.queued() < most &&
           channel_.queued_bytes() < kAnswerBytes;
}

void User::refuse_parts() {
    while (record.broken != Status::OK && !requests_.empty() && part_is_next()) {
        const bool aborted = record.broken == Status::ABORTED;
        const auto request = pop_request();
        (aborted ? worker_.counters->aborted : worker_.counters->refused).add(1);
        channel_.post(smp::response_message(record.broken, request.message.id()));
        if (request.message.header().size == smp::kIdBytes) record.broken = Status::OK;
    }
}

Request User::pop_request() {
    Request request = std::move(requests_.front());
    requests_.pop_front();
    request_bytes_ -= request.message.size();
    changed_.notify();
    return request;
}

void User::deliver(Stored answer) {
    if (!gone_ && !answer.bytes.empty()) {
        worker_.counters->bytes_to_users.add(int64_t(answer.size()));
        channel_.post(std::move(answer));
    }
    changed_.notify();
}

void User::refuse(Status status, uint32_t id) {
    worker_.counters->refused.add(1);
    if (!std::exchange(refused_, true))  // a line for each would let it fill the log
        log(name_, std::string("refused a message: ") + status_name(status));
    channel_.post(smp::response_message(status, id));
}

void User::refuse_requests(Status status) {
    worker_.counters->aborted.add(int64_t(requests_.size()));
    while (!requests_.empty())
        channel_.post(smp::response_message(status, pop_request().message.id()));
    group_->update(*this);
}

void User::check_patience(Clock::time_point now) {
    const auto since = channel_.incomplete_since();
    if (since && now - *since > worker_.options.message_timeout) {
        timed_out_ = true;
        channel_.stop_reading();
    }
    if (requests_.empty()) return;
    const auto arrived = requests_.front().arrived;
    if (!group_->has_nodes()) {
        const auto waiting = std::max(arrived, group_->without_nodes_since());
        if (now - waiting > worker_.options.patience) refuse_requests(Status::ABORTED);
    } else if (part_is_next() && !record.node && now - arrived > worker_.options.patience) {
        log(name_, "no node is free for a record: BUSY");
        group_->break_record(*this, Status::BUSY);
    }
}

void User::leave(const std::string& reason) {
    if (gone_) return;
    gone_ = true;
    if (!reason.empty()) log(name_, reason);
    channel_.close();
    worker_.counters->abandoned.add(int64_t(requests_.size()));
    requests_.clear();
    request_bytes_ = 0;
    group_->update(*this);
    changed_.notify();
}

}  // namespace jobd
