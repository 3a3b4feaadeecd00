#include "board.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/read_until.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <exception>

namespace model {

namespace {

constexpr uint8_t kFirstHttp = 9;
constexpr size_t kMostAnswers = 2;
constexpr size_t kHead = 16;           // bytes of the operand that the benchmark role copies
constexpr size_t kBenchmarkBytes = 16; // payload of a benchmarking configuration
constexpr size_t kMostRequestBytes = 1023;

// What the benchmark role makes up: models/roles.py, benchmark_noise.
void make_noise(smp::Bytes& noise, size_t bytes) {
    std::array<uint32_t, 4> states{0x9E3779B9, 0x7F4A7C15, 0xF39CC060, 0x5CEDC834};
    noise.clear();
    noise.reserve(bytes + 4 * states.size());
    while (noise.size() < bytes) {
        for (uint32_t& x : states) {
            noise.resize(noise.size() + 4);
            smp::store_u32(std::span(noise).last(4), x);
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
        }
    }
}

// models/crc32c.py: of what `before` is the CRC of, and of these bytes behind it.
uint32_t crc32c(uint32_t before, std::span<const std::byte> bytes) {
    uint32_t crc = ~before;
    for (const std::byte byte : bytes) {
        crc ^= std::to_integer<uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
    }
    return ~crc;
}

}  // namespace

Board::Board(asio::io_context& io, std::string name, const BoardOptions& options)
    : io_(io), name_(std::move(name)), options_(options), lease_(options.lease) {}

asio::awaitable<void> Board::serve(tcp::socket socket) {
    ++sessions_;
    try {
        co_await socket.async_wait(tcp::socket::wait_read, asio::use_awaitable);
        uint8_t first = 0;
        if (::recv(socket.native_handle(), &first, 1, MSG_PEEK) == 1 && first >= kFirstHttp) {
            co_await serve_status(std::move(socket));
        } else {
            jobd::Channel channel(std::move(socket), io_, nullptr, unused_);
            co_await serve_messages(channel);
        }
    } catch (const std::exception&) {
        // The peer went away; nothing of its session is left.
    }
    --sessions_;
}

// The channel's write loop is a coroutine of its own, which must end before the channel does.
asio::awaitable<void> Board::serve_messages(jobd::Channel& channel) {
    jobd::Event changed(io_);
    bool written = false, ended = false;
    channel.on_sent = [&] { changed.notify(); };
    asio::co_spawn(
        io_, [&]() { return channel.write_loop(); },
        [&](std::exception_ptr failure) {
            written = true;
            if (failure) channel.close();
            changed.notify();
        });
    const smp::Limits limits{options_.segment, true, false, true, true, options_.streams};
    uint32_t record = 0;
    try {
        jobd::Received received;
        for (;;) {
            while (channel.queued() >= kMostAnswers && !written) co_await changed.wait();
            jobd::Stored message;
            received = co_await channel.receive(message, limits);
            if (received.kind != jobd::Received::kMessage) break;
            channel.post(co_await answer(message.bytes, record));
        }
        if (received.status != Status::OK) channel.post(refuse(received));
        channel.finish();
        while (!written) co_await changed.wait();
        ended = true;
        if (channel.is_open()) co_await channel.linger();
    } catch (const std::exception&) {
        // As in serve().
        if (!ended && channel.incomplete_since()) ++numbers_.aborted;
    }
    channel.close();
    while (!written) co_await changed.wait();
}

// The answer to a message whose header is refused.
smp::Bytes Board::refuse(const jobd::Received& received) {
    const bool large = received.status == Status::TOO_LARGE;
    if (large && lease_.refuses(received.header.epoch)) {
        ++lease_.stale;
        return smp::response_message(Status::STALE, 0);
    }
    return refuse(received.status, 0);
}

asio::awaitable<smp::Bytes> Board::answer(const smp::Bytes& message, uint32_t& record) {
    const auto header = smp::load_header(message);
    const auto payload = std::span(message).subspan(smp::kHeaderBytes);
    if (header.is(smp::Type::kCommand)) {
        const auto [status, text] = lease_.command(
            {reinterpret_cast<const char*>(payload.data()), payload.size()});
        co_return smp::reply_message(status, text);
    }
    const bool configures = header.is(smp::Type::kConfiguration);
    const bool stale = lease_.refuses(header.epoch);
    if (configures && !stale) co_return smp::response_message(configure(payload), 0);
    if (payload.size() < smp::kIdBytes) co_return refuse(Status::BAD_LENGTH, 0);
    if (stale) {
        ++lease_.stale;
        co_return smp::response_message(Status::STALE, configures ? 0 : smp::load_u32(payload));
    }
    ++numbers_.messages;
    co_return co_await do_job(payload, header.is(smp::Type::kStream) ? &record : nullptr);
}

asio::awaitable<smp::Bytes> Board::do_job(std::span<const std::byte> payload, uint32_t* record) {
    co_await work();
    const uint32_t id = smp::load_u32(payload);
    smp::Bytes result(smp::kDataHeaderBytes);
    const auto operand = payload.subspan(smp::kIdBytes);
    const Status status = record ? run_part(operand, *record, result) : run(operand, result);
    if (status != Status::OK) co_return refuse(status, id);
    ++numbers_.answers;
    std::fill_n(result.begin(), smp::kHeaderBytes, std::byte{0});
    result[0] = static_cast<std::byte>(smp::Type::kData);
    smp::store_u32(std::span(result).subspan(4), uint32_t(result.size() - smp::kHeaderBytes));
    smp::store_u32(std::span(result).subspan(smp::kHeaderBytes), id);
    co_return result;
}

smp::Bytes Board::refuse(Status status, uint32_t id) {
    switch (status) {
        case Status::BAD_TYPE: ++numbers_.bad_type; break;
        case Status::BAD_LENGTH: ++numbers_.bad_length; break;
        case Status::TOO_LARGE: ++numbers_.too_large; break;
        case Status::NO_ROOM: ++numbers_.no_room; break;
        default: break;
    }
    return smp::response_message(status, id);
}

// The role is busy for the cycles of a job, after those of the jobs before it.
asio::awaitable<void> Board::work() {
    const uint64_t cycles = benchmark_ ? benchmark_->delay : options_.cycles;
    ++numbers_.jobs;
    numbers_.busy_cycles += cycles;
    if (cycles == 0) co_return;
    const std::chrono::duration<double> length(double(cycles) / options_.clock_hz);
    free_at_ = std::max(free_at_, jobd::Clock::now()) +
               std::chrono::duration_cast<jobd::Clock::duration>(length);
    asio::steady_timer timer(io_, free_at_);
    co_await timer.async_wait(asio::use_awaitable);
}

Status Board::configure(std::span<const std::byte> payload) {
    ++numbers_.configurations;
    smp::Configuration configuration;
    if (const Status form = smp::load_configuration(payload, configuration); form != Status::OK)
        return form;
    if (configuration.cores != 0) return Status::BAD_DATA;
    if (payload.size() != kBenchmarkBytes) return Status::NOT_BUILT_IN;
    benchmark_ = Benchmark{configuration.input_size, configuration.output_size,
                           smp::load_u32(configuration.image)};
    return Status::OK;
}

Status Board::run_part(std::span<const std::byte> part, uint32_t& record, smp::Bytes& message) {
    record = crc32c(record, part);
    message.resize(message.size() + 4);
    smp::store_u32(std::span(message).last(4), record);
    if (part.empty()) record = 0;
    return Status::OK;
}

// Append the result for an operand.
Status Board::run(std::span<const std::byte> operand, smp::Bytes& message) {
    size_t length = operand.size();
    if (benchmark_) {
        const size_t wanted = benchmark_->input_size;
        if (operand.size() < kHead || (wanted && operand.size() != wanted))
            return Status::BAD_LENGTH;
        if (benchmark_->output_size) length = std::max<size_t>(benchmark_->output_size, kHead);
    }
    if (length > options_.room) return Status::NO_ROOM;
    const size_t begin = message.size(), copied = benchmark_ ? kHead : length;
    message.resize(begin + length);
    std::copy_n(operand.begin(), copied, message.begin() + ptrdiff_t(begin));
    if (noise_.size() < length - copied) make_noise(noise_, length - copied);
    std::copy_n(noise_.begin(), length - copied, message.begin() + ptrdiff_t(begin + copied));
    return Status::OK;
}

std::string Board::status() const {
    const auto pair = [](const char* name, uint64_t value) {
        return "\"" + std::string(name) + "\":" + std::to_string(value);
    };
    const std::string role = benchmark_ ? "benchmark" : "loopback";
    const std::string smp = pair("messages", numbers_.messages) + "," +
                            pair("answers", numbers_.answers) + "," +
                            pair("bad_type", numbers_.bad_type) + "," +
                            pair("bad_length", numbers_.bad_length) + "," +
                            pair("too_large", numbers_.too_large) + "," +
                            pair("no_room", numbers_.no_room) + "," +
                            pair("aborted", numbers_.aborted) + "," +
                            pair("stale", lease_.stale) + "," + pair("lease", lease_.epoch) +
                            "," + pair("guard", lease_.guard);
    const std::string jobs = pair("jobs", numbers_.jobs) + "," +
                             pair("busy_cycles", numbers_.busy_cycles) + "," +
                             pair("configurations", numbers_.configurations);
    return "{\"board\":\"" + name_ + "\",\"role\":\"" + role + "\"," +
           pair("sessions", sessions_) + ",\"smp\":{" + smp + "},\"role_counters\":{" + jobs +
           "}}\n";
}

asio::awaitable<void> Board::serve_status(tcp::socket socket) {
    std::string request;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(request, kMostRequestBytes),
                                    "\r\n\r\n", asio::use_awaitable);
    const bool known = request.starts_with("GET /status HTTP/1.");
    const std::string body = known ? status() : "only GET /status\n";
    const std::string answer = std::string("HTTP/1.1 ") + (known ? "200 OK" : "404 Not Found") +
                               "\r\nContent-Type: application/json\r\nConnection: close\r\n"
                               "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
}

}  // namespace model
