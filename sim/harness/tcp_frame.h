// TCP segments in IPv4 in Ethernet, built and taken apart (RFC 791, RFC 9293).
#pragma once

#include "common.h"

namespace sim {

enum TcpFlag : uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16 };

struct Segment {
    Mac source_mac, target_mac;
    uint32_t source_ip = 0, target_ip = 0;
    uint16_t source_port = 0, target_port = 0;
    uint32_t seq = 0, ack = 0;
    uint8_t flags = 0;
    uint16_t window = 0;
    uint16_t mss = 0;  // option; 0: none
    const uint8_t* payload = nullptr;
    size_t size = 0;
};

// The frame, padded to 60 bytes.
Bytes build_frame(const Segment& segment);

// Sets the IPv4 header checksum and the TCP checksum of a frame that build_frame() made and that
// was altered since. Fields that no longer describe the frame are left alone.
void fix_checksums(Bytes& frame);

enum class Parsed { Ok, NotTcp, BadChecksum };

// `segment.payload` points into `frame`.
Parsed parse_frame(const Bytes& frame, Segment& segment);

}  // namespace sim
