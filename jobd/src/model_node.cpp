// trebuchet-node: models of boards for the job server. docs/jobs.md
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/signal_set.hpp>
#include <asio/use_awaitable.hpp>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "board.h"
#include "listen.h"
#include "options.h"

namespace model {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstRetry = 1s;  // as a board in active mode (firmware/server.c)
constexpr auto kLastRetry = 64s;
constexpr auto kRest = 100ms;

struct NodeOptions {
    std::string address = "127.0.0.1";
    uint16_t port = 4000;
    unsigned boards = 1;
    std::string congestion;
    std::optional<tcp::endpoint> server;
    BoardOptions board;
};

NodeOptions parse_node_options(int count, char** words) {
    using jobd::to_number;
    NodeOptions options;
    jobd::OptionTable table;
    table.values["--address"] = [&](const auto& v) { options.address = v; };
    table.values["--port"] = [&](const auto& v) {
        options.port = uint16_t(to_number(v, 0, UINT16_MAX));
    };
    table.values["--boards"] = [&](const auto& v) {
        options.boards = unsigned(to_number(v, 1, 1000));
    };
    table.values["--congestion"] = [&](const auto& v) { options.congestion = v; };
    table.values["--server"] = [&](const auto& v) { options.server = jobd::to_endpoint(v); };
    table.values["--segment"] = [&](const auto& v) {
        options.board.segment = to_number(v, 1 << 8, 1ull << 32);
        options.board.room = options.board.segment - 16;
    };
    table.values["--room"] = [&](const auto& v) {
        options.board.room = to_number(v, 0, 1ull << 32);
    };
    table.values["--cycles"] = [&](const auto& v) {
        options.board.cycles = to_number(v, 0, UINT32_MAX);
    };
    table.values["--clock-hz"] = [&](const auto& v) {
        options.board.clock_hz = double(to_number(v, 1, 10'000'000'000));
    };
    table.values["--lease"] = [&](const auto& v) {
        options.board.lease.epoch = uint16_t(to_number(v, 0, UINT16_MAX));
    };
    table.flags["--streams"] = [&] { options.board.streams = true; };
    table.flags["--guard"] = [&] { options.board.lease.guard = true; };
    table.parse(count, words);
    if (options.port + options.boards > 65536)
        throw jobd::UsageError{"--port leaves too few ports for the boards"};
    return options;
}

asio::awaitable<void> accept(asio::io_context& io, Board& board, tcp::acceptor acceptor) {
    for (;;) {
        asio::error_code error;
        auto socket = co_await acceptor.async_accept(
            asio::redirect_error(asio::use_awaitable, error));
        if (!error)
            asio::co_spawn(io, board.serve(std::move(socket)), asio::detached);
        else
            co_await jobd::pause(io, kRest);
    }
}

// Active mode: the board connects to the job server, and again when the connection has ended.
asio::awaitable<void> keep_connected(asio::io_context& io, Board& board, tcp::endpoint server) {
    std::chrono::seconds retry = kFirstRetry;
    for (;;) {
        tcp::socket socket(io);
        asio::error_code error;
        co_await socket.async_connect(server, asio::redirect_error(asio::use_awaitable, error));
        if (!error) {
            co_await board.serve(std::move(socket));
            retry = kFirstRetry;
        }
        co_await jobd::pause(io, retry);
        retry = std::min<std::chrono::seconds>(2 * retry, kLastRetry);
    }
}

void run(const NodeOptions& options) {
    std::vector<std::unique_ptr<Board>> boards;  // used by what waits in `io`
    asio::io_context io(1);
    std::string ports;
    for (unsigned i = 0; i < options.boards; ++i) {
        boards.push_back(
            std::make_unique<Board>(io, "model-" + std::to_string(i), options.board));
        if (options.server) {
            asio::co_spawn(io, keep_connected(io, *boards.back(), *options.server), asio::detached);
            continue;
        }
        const auto port = uint16_t(options.port ? options.port + i : 0);
        auto acceptor = jobd::listen(io, options.address, port, false, options.congestion);
        ports += " " + std::to_string(acceptor.local_endpoint().port());
        asio::co_spawn(io, accept(io, *boards.back(), std::move(acceptor)), asio::detached);
    }
    if (options.server)
        std::printf("connecting to the server\n");
    else
        std::printf("listening at %s:%s\n", options.address.c_str(), ports.c_str());
    std::fflush(stdout);
    asio::signal_set signals(io, SIGINT, SIGTERM);
    signals.async_wait([&](const asio::error_code&, int) { io.stop(); });
    io.run();
}

}  // namespace
}  // namespace model

int main(int count, char** words) {
    std::signal(SIGPIPE, SIG_IGN);
    try {
        jobd::raise_descriptor_limit();
        model::run(model::parse_node_options(count, words));
    } catch (const jobd::UsageError& error) {
        std::fprintf(stderr, "node: %s\n", error.line.c_str());
        return 2;
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "node: %s\n", error.what());
        return 1;
    }
    return 0;
}
