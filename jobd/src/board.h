// A model of a board with one role: takes SMP messages as the gateware's framer does, and works as
// long as the board would.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "channel.h"
#include "lease.h"
#include "message.h"
#include "metrics.h"

namespace model {

using asio::ip::tcp;

struct BoardOptions {
    size_t segment = 1 << 17;        // bytes of the largest message with its header
    size_t room = (1 << 17) - 16;    // bytes of the largest result
    double clock_hz = 50e6;          // of the role
    uint64_t cycles = 0;             // of a job, before a benchmarking configuration
    bool streams = false;            // takes stream messages
    Lease lease;                     // after a start
};

// Behaves as models/smp_framing.py, with these roles: before it is configured the loopback role;
// after a benchmarking configuration (distributed-fpga-framework, 4.2.2) the benchmark role
// (models/roles.py), whose delay is in cycles. The result of a stream message is the CRC-32C of the
// connection's record so far, four bytes; this part included, and anew after its end. One job at a
// time, whichever connection it came by;
// a connection's messages are answered in turn, and at most two answers wait to be taken. A message
// is judged by the board's lease when its turn has come. The command `lease` (type 5) comes to the
// same port. A connection whose first byte is 9 or more speaks HTTP: it has one answer, the state
// as JSON.
class Board {
  public:
    Board(asio::io_context& io, std::string name, const BoardOptions& options);

    // Serve a connection to its end.
    asio::awaitable<void> serve(tcp::socket socket);

  private:
    struct Benchmark {
        uint32_t input_size, output_size, delay;
    };
    struct Numbers {
        // The framer's (cores/services/smp_registers.py): data messages given to the role; results;
        // error answers by status; connections lost in mid-message.
        uint64_t messages = 0, answers = 0, aborted = 0;
        uint64_t bad_type = 0, bad_length = 0, too_large = 0, no_room = 0;
        // The role's.
        uint64_t configurations = 0, jobs = 0, busy_cycles = 0;
    };

    asio::awaitable<void> serve_messages(jobd::Channel& channel);
    asio::awaitable<void> serve_status(tcp::socket socket);
    // `record`: CRC-32C of the record of the connection so far.
    asio::awaitable<smp::Bytes> answer(const smp::Bytes& message, uint32_t& record);
    smp::Bytes refuse(const jobd::Received& received);
    smp::Bytes refuse(Status status, uint32_t id);
    asio::awaitable<smp::Bytes> do_job(std::span<const std::byte> payload, uint32_t* record);
    asio::awaitable<void> work();
    Status configure(std::span<const std::byte> payload);
    static Status run_part(std::span<const std::byte> part, uint32_t& record, smp::Bytes& message);
    Status run(std::span<const std::byte> operand, smp::Bytes& message);
    std::string status() const;

    asio::io_context& io_;
    std::string name_;
    BoardOptions options_;
    jobd::Counters unused_;
    Lease lease_;
    std::optional<Benchmark> benchmark_;
    smp::Bytes noise_;  // for the longest result so far
    Numbers numbers_;
    unsigned sessions_ = 0;
    jobd::Clock::time_point free_at_{};
};

}  // namespace model
