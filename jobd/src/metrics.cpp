#include "metrics.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <utility>

namespace jobd {

namespace {

constexpr int64_t kFirstClass = 16'000;  // ns

struct Family {
    const char* name;
    const char* type;
    const char* help;
    Number Counters::*number;
};

constexpr Family kFamilies[] = {
    {"users", "gauge", "users connected", &Counters::users},
    {"users_total", "counter", "users that have connected", &Counters::users_total},
    {"jobs_received_total", "counter", "data messages received", &Counters::received},
    {"jobs_answered_total", "counter", "jobs answered by a node", &Counters::answered},
    {"jobs_aborted_total", "counter", "jobs answered ABORTED", &Counters::aborted},
    {"jobs_refused_total", "counter", "jobs refused by the server", &Counters::refused},
    {"jobs_abandoned_total", "counter", "jobs whose user went away", &Counters::abandoned},
    {"jobs_in_flight", "gauge", "jobs assigned to a node", &Counters::in_flight},
    {"late_answers_total", "counter", "answers to no job in flight, dropped", &Counters::late},
    {"records", "gauge", "records of stream messages that nodes have", &Counters::records},
    {"records_broken_total", "counter", "records that were not ended by their user",
     &Counters::records_broken},
    {"configurations_total", "counter", "configuration messages", &Counters::configurations},
    {"configurations_refused_total", "counter", "those answered with an error",
     &Counters::configurations_refused},
    {"nodes_lost_total", "counter", "connections to nodes that ended", &Counters::nodes_lost},
    {"node_faults_total", "counter", "nodes that broke the protocol", &Counters::node_faults},
    {"nodes_stale_total", "counter", "nodes given up: their lease has another epoch",
     &Counters::nodes_stale},
    {"nodes_withdrawn_total", "counter", "nodes taken off the list of nodes",
     &Counters::nodes_withdrawn},
    {"user_bytes_received_total", "counter", "bytes of users' messages",
     &Counters::bytes_from_users},
    {"user_bytes_sent_total", "counter", "bytes of messages to users", &Counters::bytes_to_users},
    {"pipes", "gauge", "pipes open", &Counters::pipes},
    {"spliced_bytes_total", "counter", "bytes stored in pipes", &Counters::spliced},
    {"copied_bytes_total", "counter", "bytes stored in memory", &Counters::copied},
    {"without_pipe_total", "counter", "large messages copied for want of a pipe",
     &Counters::without_pipe},
};

std::string braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

void sample(std::string& into, const std::string& name, const std::string& labels, int64_t value) {
    into += "trebuchet_jobd_" + name + braces(labels) + " " + std::to_string(value) + "\n";
}

void head(std::string& into, const std::string& name, const char* type, const char* help) {
    into += "# HELP trebuchet_jobd_" + name + " " + help + "\n";
    into += "# TYPE trebuchet_jobd_" + name + " " + type + "\n";
}

std::string seconds(int64_t nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", double(nanoseconds) * 1e-9);
    return text;
}

int64_t open_descriptors() {
    std::error_code error;
    const std::filesystem::directory_iterator open("/proc/self/fd", error);
    return error ? 0 : std::distance(begin(open), end(open));
}

}  // namespace

void Histogram::add(int64_t nanoseconds) {
    size_t place = 0;
    for (int64_t limit = kFirstClass; place < kClasses && nanoseconds > limit; limit *= 4) ++place;
    counts_[place].add(1);
    sum_.add(nanoseconds);
}

void Histogram::print(std::string& into, const std::string& name, const std::string& label) const {
    const std::string separator = label.empty() ? "" : ",";
    int64_t total = 0, limit = kFirstClass;
    for (size_t place = 0; place <= kClasses; ++place, limit *= 4) {
        total += counts_[place].value();
        const std::string le = place < kClasses ? seconds(limit) : "+Inf";
        sample(into, name + "_bucket", label + separator + "le=\"" + le + "\"", total);
    }
    sample(into, name + "_count", label, total);
    into += "trebuchet_jobd_" + name + "_sum" + braces(label) + " " + seconds(sum_.value()) + "\n";
}

std::shared_ptr<Counters> Metrics::add_thread() {
    const std::lock_guard lock(mutex_);
    return threads_.emplace_back(std::make_shared<Counters>());
}

std::shared_ptr<NodeCounters> Metrics::add_node(const std::string& name) {
    const std::lock_guard lock(mutex_);
    std::erase_if(nodes_, [](const auto& node) { return node.expired(); });
    auto node = std::make_shared<NodeCounters>();
    node->name = name;
    nodes_.push_back(node);
    return node;
}

std::string Metrics::text() const {
    const std::lock_guard lock(mutex_);
    std::string out;
    for (const Family& family : kFamilies) {
        int64_t sum = 0;
        for (const auto& thread : threads_) sum += ((*thread).*family.number).value();
        head(out, family.name, family.type, family.help);
        sample(out, family.name, "", sum);
    }
    head(out, "open_descriptors", "gauge", "open file descriptors of the process");
    sample(out, "open_descriptors", "", open_descriptors());
    head(out, "wait_seconds", "histogram", "from a job's arrival until a node is chosen");
    for (size_t i = 0; i < threads_.size(); ++i)
        threads_[i]->wait.print(out, "wait_seconds", "thread=\"" + std::to_string(i) + "\"");
    head(out, "service_seconds", "histogram", "from a job's start on a node to its answer");
    for (size_t i = 0; i < threads_.size(); ++i)
        threads_[i]->service.print(out, "service_seconds", "thread=\"" + std::to_string(i) + "\"");

    std::vector<std::pair<std::string, std::shared_ptr<NodeCounters>>> nodes;
    for (size_t i = 0; i < nodes_.size(); ++i)
        if (auto node = nodes_[i].lock())
            nodes.emplace_back(
                "node=\"" + node->name + "\",link=\"" + std::to_string(i) + "\"", node);
    const auto print = [&](const char* name, const char* type, const char* help,
                           Number NodeCounters::*number) {
        head(out, name, type, help);
        for (const auto& [label, node] : nodes) sample(out, name, label, ((*node).*number).value());
    };
    print("node_connected", "gauge", "1: the node is connected", &NodeCounters::connected);
    print("node_outstanding", "gauge", "jobs at the node", &NodeCounters::outstanding);
    print("node_jobs_total", "counter", "jobs sent to the node", &NodeCounters::sent);
    print("node_answers_total", "counter", "jobs that the node answered", &NodeCounters::answered);
    print("node_busy_nanoseconds_total", "counter", "time with a job", &NodeCounters::busy_ns);
    head(out, "node_service_seconds", "histogram", "service times of the node");
    for (const auto& [label, node] : nodes) node->service.print(out, "node_service_seconds", label);
    return out;
}

}  // namespace jobd
