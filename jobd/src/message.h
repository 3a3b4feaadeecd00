// SMP messages: header, judgement of a header, and the messages that the server itself writes.
//
// Source: distributed-fpga-framework, 3.2, and models/smp_framing.py. A message is a header of
// eight bytes (type, three reserved bytes, size of the payload as u32) and the payload; numbers are
// little-endian. The payload of a data or a stream message begins with an ID. Nothing here does
// input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "status.h"

namespace smp {

// Leaves new elements as they are: what a header announces costs no memory until it comes.
template <typename T>
struct Uninitialised : std::allocator<T> {
    template <typename U>
    struct rebind {
        using other = Uninitialised<U>;
    };
    template <typename U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;
    }
    template <typename U, typename... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }
};

using Bytes = std::vector<std::byte, Uninitialised<std::byte>>;

enum class Type : uint8_t {
    kConfiguration = 1,
    kResponse = 2,
    kData = 3,
    kStream = 4,
    kCommand = 5,
    kReply = 6,
};

constexpr size_t kHeaderBytes = 8;
constexpr size_t kIdBytes = 4;
// Header and ID of a data message; also header, status and padding of a response, before its ID.
constexpr size_t kDataHeaderBytes = kHeaderBytes + kIdBytes;
constexpr size_t kResponseBytes = 16;

struct Header {
    uint8_t type = 0;
    uint32_t size = 0;   // bytes of the payload
    uint16_t epoch = 0;  // of the sender's lease; 0: none

    bool is(Type wanted) const { return type == static_cast<uint8_t>(wanted); }
    // Its payload begins with an ID.
    bool is_job() const { return is(Type::kData) || is(Type::kStream); }
};

uint32_t load_u32(std::span<const std::byte> from);
void store_u32(std::span<std::byte> into, uint32_t value);

// Of at least kHeaderBytes bytes. The reserved bytes are left where they are: they are passed on.
Header load_header(std::span<const std::byte> from);
// The second and third reserved byte of a header.
void store_epoch(std::span<std::byte> header, uint16_t epoch);

// What a connection takes.
struct Limits {
    size_t largest = 0;          // bytes of a message with its header
    bool configuration = false;  // messages of type 1
    bool response = false;       // messages of type 2
    bool data = true;            // messages of type 3
    bool command = false;        // messages of type 5
    bool stream = false;         // messages of type 4
};

// OK, BAD_TYPE or TOO_LARGE. After the last two the place of the next message is unknown.
Status judge(const Header& header, const Limits& limits);

// A type 2 message of 16 bytes. `id`: of the message in question; 0 if its ID is unknown.
Bytes response_message(Status status, uint32_t id);

// A stream message with no bytes, which ends a record of this role (the header's second byte).
Bytes end_message(std::byte role);

// A type 6 message, the answer to a command.
Bytes reply_message(Status status, std::string_view text);

// What a configuration message says. Only the lengths are checked.
struct Configuration {
    uint32_t input_size = 0, output_size = 0, cores = 0;
    std::span<const std::byte> image;
};

// The contents of a configuration message's payload; BAD_LENGTH if it is too short for its cores.
Status load_configuration(std::span<const std::byte> payload, Configuration& into);

}  // namespace smp
