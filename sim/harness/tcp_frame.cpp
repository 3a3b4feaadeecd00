#include "tcp_frame.h"

#include <algorithm>

namespace sim {

namespace {

constexpr size_t kIp = 14;
constexpr size_t kTcp = 34;

uint16_t tcp_checksum(const Bytes& f, size_t tcp, size_t length) {
    uint32_t sum = sum16(&f[kIp + 12], 8);
    sum += 6 + uint32_t(length);
    return checksum(sum16(&f[tcp], length, sum));
}

uint16_t mss_option(const uint8_t* option, const uint8_t* end) {
    while (option < end && *option != 0) {
        if (*option == 1) {
            ++option;
            continue;
        }
        if (option + 1 >= end || option[1] < 2 || option + option[1] > end) break;
        if (option[0] == 2 && option[1] == 4) return get16(option + 2);
        option += option[1];
    }
    return 0;
}

}  // namespace

Bytes build_frame(const Segment& s) {
    const size_t header = s.mss ? 24 : 20;
    const size_t end = kTcp + header + s.size;
    Bytes f(std::max<size_t>(end, 60), 0);
    std::copy_n(s.target_mac.bytes, 6, &f[0]);
    std::copy_n(s.source_mac.bytes, 6, &f[6]);
    put16(&f[12], 0x0800);
    f[kIp] = 0x45;
    put16(&f[kIp + 2], uint16_t(end - kIp));
    put16(&f[kIp + 6], 0x4000);  // don't fragment
    f[kIp + 8] = 64;
    f[kIp + 9] = 6;
    put32(&f[kIp + 12], s.source_ip);
    put32(&f[kIp + 16], s.target_ip);
    put16(&f[kTcp], s.source_port);
    put16(&f[kTcp + 2], s.target_port);
    put32(&f[kTcp + 4], s.seq);
    put32(&f[kTcp + 8], s.ack);
    f[kTcp + 12] = uint8_t(header / 4 << 4);
    f[kTcp + 13] = s.flags;
    put16(&f[kTcp + 14], s.window);
    if (s.mss) {
        put16(&f[kTcp + 20], 0x0204);
        put16(&f[kTcp + 22], s.mss);
    }
    if (s.size) std::copy_n(s.payload, s.size, &f[kTcp + header]);
    fix_checksums(f);
    return f;
}

void fix_checksums(Bytes& f) {
    if (f.size() < kTcp + 20) return;
    put16(&f[kIp + 10], 0);
    put16(&f[kIp + 10], checksum(sum16(&f[kIp], 20)));
    const size_t length = get16(&f[kIp + 2]);
    if (length < 40 || kIp + length > f.size()) return;
    put16(&f[kTcp + 16], 0);
    put16(&f[kTcp + 16], tcp_checksum(f, kTcp, length - 20));
}

Parsed parse_frame(const Bytes& f, Segment& s) {
    if (f.size() < kTcp + 20 || get16(&f[12]) != 0x0800 || f[kIp] >> 4 != 4) return Parsed::NotTcp;
    const size_t ip_header = size_t(f[kIp] & 15) * 4;
    const size_t end = kIp + get16(&f[kIp + 2]);
    if (f[kIp + 9] != 6 || ip_header < 20) return Parsed::NotTcp;
    const size_t tcp = kIp + ip_header;
    if (end > f.size() || tcp + 20 > end || checksum(sum16(&f[kIp], ip_header)))
        return Parsed::BadChecksum;
    const size_t header = size_t(f[tcp + 12] >> 4) * 4;
    if (header < 20 || tcp + header > end || tcp_checksum(f, tcp, end - tcp))
        return Parsed::BadChecksum;
    std::copy_n(&f[0], 6, s.target_mac.bytes);
    std::copy_n(&f[6], 6, s.source_mac.bytes);
    s.source_ip = get32(&f[kIp + 12]);
    s.target_ip = get32(&f[kIp + 16]);
    s.source_port = get16(&f[tcp]);
    s.target_port = get16(&f[tcp + 2]);
    s.seq = get32(&f[tcp + 4]);
    s.ack = get32(&f[tcp + 8]);
    s.flags = f[tcp + 13] & 0x3f;
    s.window = get16(&f[tcp + 14]);
    s.mss = mss_option(f.data() + tcp + 20, f.data() + tcp + header);
    s.payload = f.data() + tcp + header;
    s.size = end - tcp - header;
    return Parsed::Ok;
}

}  // namespace sim
