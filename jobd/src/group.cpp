#include "group.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include <algorithm>

#include "job_log.h"
#include "user.h"

namespace jobd {

Group::Group(Worker& worker)
    : worker_(worker),
      demultiplexer_(worker.options.policy, worker.options.window),
      largest_(worker.options.largest),
      changed_(worker.io) {
    if (worker.options.configured) configuration_ = std::make_shared<const smp::Bytes>();
}

void Group::add_node(tcp::socket socket, std::shared_ptr<Origin> origin) {
    auto node = std::make_shared<Node>(worker_, std::move(socket), std::move(origin));
    nodes_.push_back(node);
    node->start(*this);
    if (!configuration_) return;
    ++being_configured_;
    asio::co_spawn(worker_.io, configure_node(shared_from_this(), node, configuration_),
                   asio::detached);
}

void Group::add_idle_nodes() {
    for (auto& idle : worker_.registry.take(worker_.options.own_most - nodes_.size()))
        add_node(tcp::socket(worker_.io, tcp::v4(), idle.descriptor), idle.origin);
}

void Group::leave(User& user) {
    fair_.sleep(user);
    blocked_.erase(&user);
    users_.erase(&user);
    worker_.registry.release(&user);
}

void Group::update(User& user) {
    user.refuse_parts();
    blocked_.erase(&user);
    if (!user.can_send()) return fair_.sleep(user);
    fair_.wake(user);
    dispatch();
}

// Every change that can let a job go ends here: a request, an answer, room for an answer, a node.
void Group::dispatch() {
    while (!configuring_ && demultiplexer_.has_room()) {
        auto* user = static_cast<User*>(fair_.next());
        if (!user) return;
        if (Node* node = choose_node(*user)) {
            send(*user, *node);
        } else {
            blocked_.insert(user);
            fair_.sleep(*user);
        }
    }
}

Node* Group::choose_node(const User& user) {
    if (!user.part_is_next()) return static_cast<Node*>(demultiplexer_.choose());
    if (user.record.node) return static_cast<Node*>(demultiplexer_.choose(*user.record.node));
    return static_cast<Node*>(demultiplexer_.choose_for_record());
}

void Group::send(User& user, Node& node) {
    Request request = user.pop_request();
    const auto header = request.message.header();
    const auto now = Clock::now();
    Job job{user.shared_from_this(), request.message.id(), request.message.size(),
            request.arrived, now, fair_.reserve(user)};
    if (header.is(smp::Type::kStream)) {
        job.is_part = true;
        job.is_end = header.size == smp::kIdBytes;
        if (!user.record.node) node.set_record(&user);
        user.record.node = &node;
        user.record.end_sent = job.is_end;
        user.record.role = request.message.bytes[1];
        ++user.record.in_flight;
    }
    worker_.counters->wait.add((now - request.arrived).count());
    worker_.counters->in_flight.add(1);
    ++in_flight_;
    ++user.in_flight;
    node.send(std::move(job), std::move(request.message));
    user.refuse_parts();
    if (!user.can_send()) fair_.sleep(user);
}

// There may be room for parts of records, of which each has its node.
void Group::wake_blocked() {
    for (User* user : std::exchange(blocked_, {})) update(*user);
}

// The record goes on, or its node is free for another one.
void Group::take_part_answer(Node& node, const Job& job, Status outcome) {
    Record& record = job.user->record;
    --record.in_flight;
    record.open = outcome == Status::OK && !job.is_end;
    if (outcome == Status::BAD_TYPE) takes_streams_ = false;
    if (record.open || record.in_flight > 0) return;
    node.set_record(nullptr);
    record.node = nullptr;
}

void Group::end_record(User& user) {
    user.record.broken = Status::OK;
    Node* node = user.record.node;
    if (!node || !user.record.open) return;
    worker_.counters->records_broken.add(1);
    Job job;
    job.user = user.shared_from_this();
    job.arrived = job.sent = Clock::now();
    job.is_part = job.is_end = job.is_ours = user.record.end_sent = true;
    ++user.record.in_flight;
    ++in_flight_;
    ++user.in_flight;
    node->send(std::move(job), Stored{smp::end_message(user.record.role), {}, {}});
}

void Group::break_record(User& user, Status status) {
    worker_.counters->records_broken.add(1);
    user.record = Record{};
    user.record.broken = status;
    update(user);
}

void Group::withdraw_nodes() {
    for (const auto& node : std::vector(nodes_))
        if (node->is_withdrawn()) withdraw(*node);
}

void Group::withdraw(Node& node) {
    if (admitted_.erase(&node)) {
        demultiplexer_.remove(node);
        without_nodes_since_ = Clock::now();
    }
    if (node.has_jobs() || node.is_lost()) return;
    worker_.counters->nodes_withdrawn.add(1);
    node.lose("is no longer on the list of nodes");
}

void Group::on_answer(Node& node, Job job, Stored answer, int64_t service_ns) {
    const Status outcome = answer.header().is(smp::Type::kResponse)
                               ? static_cast<Status>(answer.bytes[smp::kHeaderBytes])
                               : Status::OK;
    if (job.is_part) take_part_answer(node, job, outcome);
    if (!job.is_ours) {
        demultiplexer_.done(node);
        worker_.counters->service.add(service_ns);
        fair_.settle(*job.user, job.reserved, service_ns);
        if (outcome == Status::TOO_LARGE) largest_ = std::min(largest_, job.bytes - 1);
        log_job(node, job, Clock::now() - std::chrono::nanoseconds(service_ns), outcome);
        if (!job.user->is_gone()) worker_.counters->answered.add(1);
    }
    end_job(job, std::move(answer));
    if (node.is_withdrawn()) withdraw(node);
    wake_blocked();
    dispatch();
}

void Group::end_job(Job& job, Stored answer) {
    --in_flight_;
    --job.user->in_flight;
    if (!job.is_ours) {
        worker_.counters->in_flight.add(-1);
        if (job.user->is_gone()) worker_.counters->abandoned.add(1);
    }
    job.user->deliver(job.is_ours ? Stored{} : std::move(answer));
    update(*job.user);
    if (in_flight_ == 0) changed_.notify();
}

void Group::log_job(const Node& node, const Job& job, Clock::time_point started, Status outcome) {
    if (worker_.job_log)
        worker_.job_log->add({node.name(), job.user->name(), job.id, job.bytes, job.arrived, started,
                              Clock::now(), outcome});
}

void Group::on_lost(Node& node, std::vector<Job> jobs) {
    if (admitted_.erase(&node)) {
        demultiplexer_.remove(node);
        without_nodes_since_ = Clock::now();
    }
    if (User* user = node.record_user()) {
        node.set_record(nullptr);
        const bool whole = user->record.end_sent;
        user->record = Record{};
        if (!whole) break_record(*user, Status::ABORTED);
    }
    for (auto& job : jobs) {
        if (job.is_ours) {
            end_job(job, Stored{});
            continue;
        }
        if (!job.user->is_gone()) worker_.counters->aborted.add(1);
        log_job(node, job, job.sent, Status::ABORTED);
        end_job(job, Stored{smp::response_message(Status::ABORTED, job.id), {}, {}});
    }
    std::erase_if(nodes_, [&](const auto& other) { return other.get() == &node; });
    changed_.notify();
    wake_blocked();
}

void Group::admit(Node& node) {
    admitted_.insert(&node);
    demultiplexer_.add(node);
    wake_blocked();
    dispatch();
}

asio::awaitable<Group::Outcome> Group::configure(const User& user, ConfigurationBytes wanted) {
    if (worker_.options.own)
        add_idle_nodes();
    else if (worker_.options.configured && users_.size() > 1)
        co_return Outcome{Status::BUSY, 0};  // the others' jobs would have another result
    else if (worker_.registry.acquire(&user, wanted) != Status::OK)
        co_return Outcome{Status::BUSY, 0};
    while (configuring_) co_await changed_.wait();
    if (!admitted_.empty() && configuration_ && *configuration_ == *wanted && !worker_.options.own)
        co_return Outcome{Status::OK, uint32_t(admitted_.size())};
    const Outcome outcome = co_await configure_nodes(wanted);
    if (outcome.status != Status::OK) worker_.registry.release(&user);
    co_return outcome;
}

asio::awaitable<Group::Outcome> Group::configure_nodes(ConfigurationBytes configuration) {
    configuring_ = true;
    while (in_flight_ > 0 || being_configured_ > 0) co_await changed_.wait();
    for (Node* node : admitted_) demultiplexer_.remove(*node);
    admitted_.clear();
    without_nodes_since_ = Clock::now();
    configuration_ = configuration;
    largest_ = worker_.options.largest;
    takes_streams_ = true;
    refusal_ = worker_.options.own ? Status::BUSY : Status::NO_ANSWER;
    for (const auto& node : nodes_) {
        ++being_configured_;
        asio::co_spawn(worker_.io, configure_node(shared_from_this(), node, configuration),
                       asio::detached);
    }
    while (being_configured_ > 0) co_await changed_.wait();
    configuring_ = false;
    if (admitted_.empty()) configuration_ = nullptr;
    changed_.notify();
    const auto count = uint32_t(admitted_.size());
    co_return Outcome{count ? Status::OK : refusal_, count};
}

asio::awaitable<void> Group::configure_node(std::shared_ptr<Group> self,
                                            std::shared_ptr<Node> node,
                                            ConfigurationBytes configuration) {
    const Status status =
        configuration->empty() ? Status::OK : co_await node->configure(configuration);
    --self->being_configured_;
    if (status != Status::OK) {
        self->refusal_ = status;
        node->lose(std::string("refused its configuration: ") + status_name(status));
    } else if (node->is_withdrawn()) {
        self->withdraw(*node);
    } else if (!node->is_lost()) {
        self->admit(*node);
    }
    self->changed_.notify();
}

void Group::check_patience(Clock::time_point now) {
    for (const auto& node : std::vector(nodes_)) node->check_patience(now);
    for (User* user : std::vector(users_.begin(), users_.end())) user->check_patience(now);
}

asio::awaitable<void> Group::dissolve(std::shared_ptr<Group> self) {
    while (self->in_flight_ > 0 || self->being_configured_ > 0) co_await self->changed_.wait();
    for (const auto& node : std::vector(self->nodes_))
        if (auto idle = node->release()) self->worker_.registry.put(std::move(*idle));
    self->nodes_.clear();
}

void Group::abandon() {
    for (const auto& node : nodes_) node->forget_listener();
    for (const auto& node : std::vector(nodes_)) node->lose("the server stops");
    nodes_.clear();
}

}  // namespace jobd
