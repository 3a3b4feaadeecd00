#include "options.h"

#include <asio/ip/tcp.hpp>

#include <sys/resource.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace jobd {

namespace {

using asio::ip::tcp;

uint16_t to_port(const std::string& text) { return uint16_t(to_number(text, 0, UINT16_MAX)); }

// HOST:PORT or HOST:PORT/MANAGEMENT_PORT, and @EPOCH.
PassiveNode to_node(const std::string& text) {
    const auto at = text.find('@');
    const std::string place = text.substr(0, at);
    const auto slash = place.find('/');
    PassiveNode node{place.substr(0, slash), to_endpoint(place.substr(0, slash)), std::nullopt, 0,
                     text};
    if (slash != std::string::npos)
        node.management = tcp::endpoint(node.data.address(), to_port(place.substr(slash + 1)));
    if (at != std::string::npos) {
        node.epoch = uint16_t(to_number(text.substr(at + 1), 1, UINT16_MAX));
        node.name += "@" + std::to_string(node.epoch);
    }
    return node;
}

Policy to_policy(const std::string& text) {
    if (text == "queue") return Policy::kQueue;
    if (text == "stack") return Policy::kStack;
    if (text == "least") return Policy::kLeast;
    throw UsageError{"must be queue, stack or least, not " + text};
}

std::string to_address(const std::string& text) {
    asio::error_code error;
    if (asio::ip::make_address_v4(text, error); error)
        throw UsageError{"must be an IPv4 address, not " + text};
    return text;
}

}  // namespace

void OptionTable::parse(int count, char** words) const {
    for (int i = 1; i < count; ++i) {
        const std::string name = words[i];
        if (const auto flag = flags.find(name); flag != flags.end()) {
            flag->second();
            continue;
        }
        const auto value = values.find(name);
        if (value == values.end()) throw UsageError{"there is no option " + name};
        if (++i == count) throw UsageError{name + " needs a value"};
        try {
            value->second(words[i]);
        } catch (const UsageError& error) {
            throw UsageError{name + " " + error.line};
        }
    }
}

uint64_t to_number(const std::string& text, uint64_t least, uint64_t most) {
    uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number < least || number > most)
        throw UsageError{"must be a number from " + std::to_string(least) + " to " +
                         std::to_string(most) + ", not " + text};
    return number;
}

tcp::endpoint to_endpoint(const std::string& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos || colon == 0)
        throw UsageError{"must be HOST:PORT, not " + text};
    const auto port = to_number(text.substr(colon + 1), 1, UINT16_MAX);
    asio::io_context io;
    asio::error_code error;
    const auto found = tcp::resolver(io).resolve(tcp::v4(), text.substr(0, colon),
                                                 std::to_string(port), error);
    if (error || found.empty())
        throw UsageError{"names no host: " + text + " (" + error.message() + ")"};
    return found.begin()->endpoint();
}

void raise_descriptor_limit() {
    rlimit limit;
    if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<PassiveNode> read_node_list(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw UsageError{"cannot be read: " + path};
    std::vector<PassiveNode> nodes;
    std::string line;
    for (unsigned number = 1; std::getline(file, line); ++number) {
        std::istringstream words(line.substr(0, line.find('#')));
        std::string place, more;
        if (!(words >> place)) continue;
        const std::string where = path + ", line " + std::to_string(number) + ": ";
        if (words >> more) throw UsageError{where + "one node a line, not also " + more};
        try {
            nodes.push_back(to_node(place));
        } catch (const UsageError& error) {
            throw UsageError{where + error.line};
        }
    }
    if (file.bad()) throw UsageError{"cannot be read: " + path};
    return nodes;
}

Options parse_options(int count, char** words) {
    constexpr uint64_t kDay = 86'400'000;  // ms
    Options options;
    OptionTable table;
    table.values["--address"] = [&](const auto& v) { options.address = to_address(v); };
    table.values["--user-port"] = [&](const auto& v) { options.user_port = to_port(v); };
    table.values["--node-port"] = [&](const auto& v) { options.node_port = to_port(v); };
    table.values["--metrics-port"] = [&](const auto& v) { options.metrics_port = to_port(v); };
    table.values["--node"] = [&](const auto& v) { options.nodes.push_back(to_node(v)); };
    table.values["--nodes"] = [&](const auto& v) { options.node_list = v; };
    table.values["--policy"] = [&](const auto& v) { options.policy = to_policy(v); };
    table.values["--window"] = [&](const auto& v) {
        options.window = unsigned(to_number(v, 1, 64));
    };
    table.values["--threads"] = [&](const auto& v) {
        options.threads = unsigned(to_number(v, 1, 256));
    };
    table.values["--own"] = [&](const auto& v) {
        options.own = true;
        options.own_most = to_number(v, 1, UINT32_MAX);
    };
    table.values["--largest"] = [&](const auto& v) {
        options.largest = to_number(v, 1 << 8, 1ull << 32);
    };
    table.values["--congestion"] = [&](const auto& v) { options.congestion = v; };
    table.values["--job-log"] = [&](const auto& v) { options.job_log = v; };
    table.values["--pipes"] = [&](const auto& v) { options.pipes = to_number(v, 0, 1 << 20); };
    table.values["--patience-ms"] = [&](const auto& v) {
        options.patience = std::chrono::milliseconds(to_number(v, 1, kDay));
    };
    table.values["--message-timeout-ms"] = [&](const auto& v) {
        options.message_timeout = std::chrono::milliseconds(to_number(v, 1, kDay));
    };
    table.flags["--configured"] = [&] { options.configured = true; };
    table.flags["--streams"] = [&] { options.streams = true; };
    table.flags["--copy"] = [&] { options.copy = true; };
    table.parse(count, words);
    return options;
}

}  // namespace jobd
