#include "message.h"

#include <algorithm>

namespace smp {

namespace {

constexpr size_t kReplyHeadBytes = 4;       // status and zeros, before a reply's text
constexpr size_t kConfigurationBytes = 12;  // sizes and number of cores; also of each core

}  // namespace

uint32_t load_u32(std::span<const std::byte> from) {
    return std::to_integer<uint32_t>(from[0]) | std::to_integer<uint32_t>(from[1]) << 8 |
           std::to_integer<uint32_t>(from[2]) << 16 | std::to_integer<uint32_t>(from[3]) << 24;
}

void store_u32(std::span<std::byte> into, uint32_t value) {
    for (size_t i = 0; i < 4; ++i) into[i] = static_cast<std::byte>(value >> (8 * i));
}

Header load_header(std::span<const std::byte> from) {
    return {std::to_integer<uint8_t>(from[0]), load_u32(from.subspan(4)),
            static_cast<uint16_t>(load_u32(from) >> 16)};
}

void store_epoch(std::span<std::byte> header, uint16_t epoch) {
    header[2] = static_cast<std::byte>(epoch);
    header[3] = static_cast<std::byte>(epoch >> 8);
}

Status judge(const Header& header, const Limits& limits) {
    const bool known = (limits.configuration && header.is(Type::kConfiguration)) ||
                       (limits.response && header.is(Type::kResponse)) ||
                       (limits.data && header.is(Type::kData)) ||
                       (limits.command && header.is(Type::kCommand)) ||
                       (limits.stream && header.is(Type::kStream));
    if (!known) return Status::BAD_TYPE;
    return kHeaderBytes + size_t{header.size} > limits.largest ? Status::TOO_LARGE : Status::OK;
}

Bytes response_message(Status status, uint32_t id) {
    Bytes message(kResponseBytes, std::byte{0});
    message[0] = static_cast<std::byte>(Type::kResponse);
    store_u32(std::span(message).subspan(4), kResponseBytes - kHeaderBytes);
    message[kHeaderBytes] = static_cast<std::byte>(status);
    store_u32(std::span(message).subspan(kDataHeaderBytes), id);
    return message;
}

Bytes end_message(std::byte role) {
    Bytes message(kDataHeaderBytes, std::byte{0});
    message[0] = static_cast<std::byte>(Type::kStream);
    message[1] = role;
    store_u32(std::span(message).subspan(4), kIdBytes);
    return message;
}

Bytes reply_message(Status status, std::string_view text) {
    Bytes message(kHeaderBytes + kReplyHeadBytes + text.size(), std::byte{0});
    message[0] = static_cast<std::byte>(Type::kReply);
    store_u32(std::span(message).subspan(4), uint32_t(message.size() - kHeaderBytes));
    message[kHeaderBytes] = static_cast<std::byte>(status);
    const auto from = std::as_bytes(std::span(text));
    std::copy(from.begin(), from.end(), message.begin() + kHeaderBytes + kReplyHeadBytes);
    return message;
}

Status load_configuration(std::span<const std::byte> payload, Configuration& into) {
    if (payload.size() < kConfigurationBytes) return Status::BAD_LENGTH;
    into.input_size = load_u32(payload);
    into.output_size = load_u32(payload.subspan(4));
    into.cores = load_u32(payload.subspan(8));
    const size_t begin = kConfigurationBytes * (1 + size_t{into.cores});
    if (payload.size() < begin) return Status::BAD_LENGTH;
    into.image = payload.subspan(begin);
    return Status::OK;
}

}  // namespace smp
