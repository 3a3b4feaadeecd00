// Feeds Channel::receive() with streams of good and bad messages, in pieces: trebuchet-jobd-fuzz
// INPUTS SEED. What it makes of each must be what a naive parser of the whole stream does.
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ranges>
#include <string>
#include <vector>

#include "channel.h"
#include "message.h"
#include "metrics.h"
#include "pipes.h"

namespace {

using jobd::Channel;
using jobd::Received;
using jobd::Stored;
using smp::Bytes;

constexpr smp::Limits kLimits{100'000, true, false, true, false, true};
constexpr size_t kMostMessages = 5;
constexpr size_t kMostPieces = 20;

// xorshift64*, S. Vigna, ACM TOMS 42 (2016).
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
    uint32_t below(uint32_t limit) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return uint32_t(((state_ * 2685821657736338717u) >> 32) * limit >> 32);
    }
    bool one_in(uint32_t count) { return below(count) == 0; }

  private:
    uint64_t state_;
};

struct Parsed {
    std::vector<Bytes> messages;
    Received::Kind ending = Received::kEnd;
    Status status = Status::OK;
    bool operator==(const Parsed&) const = default;
};

Parsed parse_naively(const Bytes& stream) {
    Parsed parsed;
    for (size_t at = 0; stream.size() - at >= 8;) {
        const auto number = [&](size_t i) { return std::to_integer<size_t>(stream[at + i]); };
        const size_t size = number(4) | number(5) << 8 | number(6) << 16 | number(7) << 24;
        if (number(0) != 1 && number(0) != 3 && number(0) != 4) return parsed.ending = Received::kRefused,
                                              parsed.status = Status::BAD_TYPE, parsed;
        if (8 + size > kLimits.largest) return parsed.ending = Received::kRefused,
                                               parsed.status = Status::TOO_LARGE, parsed;
        if (stream.size() - at < 8 + size) break;
        const auto begin = stream.begin() + ptrdiff_t(at);
        parsed.messages.emplace_back(begin, begin + ptrdiff_t(8 + size));
        at += 8 + size;
    }
    return parsed;
}

uint32_t random_size(Random& random) {
    switch (random.below(200)) {
        case 0: return uint32_t(kLimits.largest) - 8 + random.below(2);
        case 1: return 32'756 + random.below(12);  // where splicing begins
        case 2: return random.below(100'000);
        case 3:
        case 4: return UINT32_MAX - random.below(12);
        default: return random.below(40);
    }
}

Bytes random_stream(Random& random) {
    Bytes stream;
    for (uint32_t left = 1 + random.below(kMostMessages); left > 0; --left) {
        const uint32_t size = random_size(random);
        const size_t begin = stream.size();
        const size_t there = size > kLimits.largest ? random.below(64) : size;
        stream.resize(begin + smp::kHeaderBytes + there);
        for (auto& byte : std::span(stream).subspan(begin)) byte = std::byte(random.below(256));
        stream[begin] = std::byte(random.one_in(30) ? random.below(256) : random.one_in(4) ? 1 : 3 + random.below(2));
        smp::store_u32(std::span(stream).subspan(begin + 4), size);
    }
    if (random.one_in(4)) stream.resize(random.below(uint32_t(stream.size()) + 1));
    return stream;
}

// The message as one piece; empties the pipes.
Bytes contents(Stored& message) {
    Bytes whole = message.bytes;
    for (auto& part : message.pipes) {
        const size_t begin = whole.size();
        whole.resize(begin + part.bytes);
        while (part.bytes > 0) {
            std::byte* place = whole.data() + whole.size() - part.bytes;
            const ssize_t count = ::read(part.pipe().out(), place, part.bytes);
            if (count <= 0) std::abort();
            part.bytes -= size_t(count);
        }
    }
    whole.insert(whole.end(), message.rest.begin(), message.rest.end());
    return whole;
}

asio::awaitable<void> receive_all(Channel& channel, Parsed& parsed, bool& done) {
    for (;;) {
        Stored message;
        const auto received = co_await channel.receive(message, kLimits);
        parsed.ending = received.kind;
        parsed.status = received.status;
        if (received.kind != Received::kMessage) break;
        const auto header = message.header();
        smp::Configuration configuration;
        const auto bytes = contents(message);
        if (header.is(smp::Type::kConfiguration))
            (void)smp::load_configuration(std::span(bytes).subspan(8), configuration);
        parsed.messages.push_back(bytes);
    }
    done = true;
}

Parsed parse_in_pieces(asio::io_context& io, const Bytes& stream, jobd::PipePool* pool,
                       jobd::Counters& counters, Random& random) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0) std::abort();
    Parsed parsed;
    bool done = false;
    {
        asio::ip::tcp::socket socket(io, asio::ip::tcp::v4(), ends[0]);
        Channel channel(std::move(socket), io, pool, counters);
        asio::co_spawn(io, receive_all(channel, parsed, done), asio::detached);
        const uint32_t longest = std::max(random.one_in(2) ? 20u : 60'000u,
                                          uint32_t(stream.size() / kMostPieces));
        for (size_t at = 0; at < stream.size() && !done;) {
            const size_t piece = std::min<size_t>(1 + random.below(longest), stream.size() - at);
            const ssize_t count = ::send(ends[1], stream.data() + at, piece, MSG_NOSIGNAL);
            if (count > 0) at += size_t(count);
            io.restart();
            io.poll();
        }
        ::shutdown(ends[1], SHUT_WR);
        io.restart();
        io.run();
        if (!done) std::abort();
    }
    ::close(ends[1]);
    return parsed;
}

}  // namespace

int main(int count, char** words) {
    const long inputs = count > 1 ? std::atol(words[1]) : 0;
    Random random(count > 2 ? std::strtoull(words[2], nullptr, 10) : 1);
    jobd::Counters counters;
    jobd::PipePool pool(2, counters);
    asio::io_context io(1);
    for (long i = 0; i < inputs; ++i) {
        const Bytes stream = random_stream(random);
        jobd::PipePool* used = random.one_in(4) ? nullptr : &pool;
        if (parse_in_pieces(io, stream, used, counters, random) == parse_naively(stream)) continue;
        std::fprintf(stderr, "input %ld is parsed wrongly\n", i);
        return 1;
    }
    std::printf("%ld inputs, %lld bytes spliced\n", inputs, (long long)counters.spliced.value());
    return 0;
}
