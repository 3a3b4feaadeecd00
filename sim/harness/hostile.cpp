#include "hostile.h"

#include <algorithm>

namespace sim {

namespace {

constexpr uint32_t kStrangers = 0xc6120000;  // 198.18.0.0/15, for benchmarks (RFC 2544)
constexpr size_t kMaxFrame = 1514;

}  // namespace

Bytes Attacker::make(const Bytes& honest) {
    switch (rng_.below(10)) {
        case 0: return noise();
        case 1:
        case 2:
            if (!honest.empty()) return damaged(honest);
            [[fallthrough]];
        case 3: return half_open();
        case 4:
        case 5: return datagram();
        default: return stray_segment();
    }
}

Bytes Attacker::noise() {
    ++counts_["noise"];
    Bytes f(rng_.between(15, kMaxFrame));
    for (auto& byte : f) byte = uint8_t(rng_.next());
    if (rng_.chance(0.8)) std::copy_n(board_mac_.bytes, 6, &f[0]);
    // Often something that looks like IPv4 or ARP.
    if (rng_.chance(0.5)) put16(&f[12], rng_.chance(0.7) ? 0x0800 : 0x0806);
    if (rng_.chance(0.5)) f[14] = 0x45;
    return f;
}

// One flipped bit (a sum of 16-bit words always shows one) or a cut end.
Bytes Attacker::damaged(const Bytes& honest) {
    ++counts_["damaged"];
    Bytes f = honest;
    const size_t end = std::min(f.size(), 14 + size_t(get16(&f[16])));
    if (rng_.chance(0.3)) {
        f.resize(rng_.between(15, end - 1));
    } else {
        f[rng_.between(14, end - 1)] ^= uint8_t(1 << rng_.below(8));
    }
    return f;
}

Segment Attacker::stranger() {
    Segment s;
    s.target_mac = board_mac_;
    s.source_mac.bytes[0] = 0x02;
    put32(&s.source_mac.bytes[2], uint32_t(rng_.next()));
    s.source_ip = kStrangers + uint32_t(rng_.below(1 << 17));
    s.target_ip = board_ip_;
    s.source_port = uint16_t(rng_.next());
    s.target_port = rng_.chance(0.8) ? port_ : uint16_t(rng_.next());
    s.seq = uint32_t(rng_.next());
    s.ack = uint32_t(rng_.next());
    s.window = uint16_t(rng_.next());
    return s;
}

Bytes Attacker::half_open() {
    ++counts_["half_open"];
    Segment s = stranger();
    s.flags = kSyn;
    s.mss = rng_.chance(0.7) ? 1460 : uint16_t(rng_.next());
    return build_frame(s);
}

Bytes Attacker::stray_segment() {
    ++counts_["stray"];
    static const uint8_t kContent[1460] = {};
    Segment s = stranger();
    s.flags = uint8_t(rng_.below(64));
    s.payload = kContent;
    s.size = rng_.chance(0.5) ? 0 : rng_.between(1, sizeof kContent);
    Bytes f = build_frame(s);
    mutate(f);
    return f;
}

Bytes Attacker::datagram() {
    ++counts_["datagram"];
    Bytes f = build_frame(stranger());
    f.resize(rng_.between(42, kMaxFrame));
    put16(&f[16], uint16_t(rng_.chance(0.7) ? f.size() - 14 : rng_.next()));
    f[23] = rng_.chance(0.5) ? 17 : rng_.chance(0.5) ? 1 : uint8_t(rng_.next());
    fix_checksums(f);
    return f;
}

void Attacker::mutate(Bytes& f) {
    if (f.size() < 54) return;
    ++counts_["mutated"];
    bool fix = true;
    switch (rng_.below(12)) {
        case 0: f[47] = uint8_t(rng_.next()); break;                           // flags
        case 1: put32(&f[38], get32(&f[38]) + uint32_t(rng_.next() >> rng_.between(32, 63))); break;
        case 2: put32(&f[38], get32(&f[38]) - uint32_t(rng_.next() >> rng_.between(32, 63))); break;
        case 3: put32(&f[42], get32(&f[42]) + uint32_t(rng_.next() >> rng_.between(32, 63))); break;
        case 4: put16(&f[48], rng_.chance(0.5) ? 0 : uint16_t(rng_.next())); break;  // window
        case 5: f[46] = uint8_t(rng_.next()); break;                           // data offset
        case 6: put16(&f[16], uint16_t(rng_.next())); break;                   // IP length
        case 7: f[14] = uint8_t(rng_.next()); break;                           // version, IHL
        case 8: put16(&f[20], uint16_t(rng_.next())); break;                   // fragments
        case 9: f.resize(rng_.between(15, f.size())); break;
        case 10: f.resize(std::min(f.size() + rng_.below(64), kMaxFrame)); break;
        default:
            fix = false;
            f[rng_.between(14, f.size() - 1)] = uint8_t(rng_.next());
    }
    if (fix) fix_checksums(f);
}

Json Attacker::json() const {
    Json j;
    for (const auto& [kind, count] : counts_) j.add(kind, count);
    return j;
}

}  // namespace sim
