// Types that every part of the harness shares: frames, seeded randomness, checksums.
#pragma once

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim {

using Bytes = std::vector<uint8_t>;
using Cycle = uint64_t;

// Something the user asked for cannot be done; main() prints one line and exits with code 2.
struct UserError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What was standard output when the program began.
FILE* console();

// From here on `stdout`, to which the Verilog's $write goes, is the file `path`; throws UserError.
void divert_prints(const std::string& path);

// Throws UserError if the Verilog's prints did not all get into the file `path`.
void check_prints(const std::string& path);

// Throws UserError that names `what` and the reason in `errno`.
[[noreturn]] void cannot_write(const std::string& what);

// An Ethernet frame from the destination MAC on, without preamble and FCS.
struct Frame {
    Bytes data;
    // The frame check sequence is wrong: the MAC (or, on a packet stream, `error`) tells so.
    bool bad_fcs = false;
};

// xoshiro256** seeded by splitmix64 (Blackman, Vigna 2018). Each user has its own stream, derived
// from the one seed and a label, so that adding a user does not change what others draw.
class Rng {
  public:
    Rng(uint64_t seed, const char* label) {
        for (const char* p = label; *p; ++p) seed = mix(seed ^ uint8_t(*p));
        for (auto& word : state_) word = seed = mix(seed);
    }
    uint64_t next() {
        const uint64_t result = rotl(state_[1] * 5, 7) * 9;
        const uint64_t t = state_[1] << 17;
        state_[2] ^= state_[0];
        state_[3] ^= state_[1];
        state_[1] ^= state_[2];
        state_[0] ^= state_[3];
        state_[2] ^= t;
        state_[3] = rotl(state_[3], 45);
        return result;
    }
    // Uniform in 0 .. n-1; 0 for n = 0.
    uint64_t below(uint64_t n) { return n ? next() % n : 0; }
    uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
    bool chance(double p) { return double(next() >> 11) * 0x1p-53 < p; }

  private:
    static uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    static uint64_t mix(uint64_t z) {
        z += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    uint64_t state_[4];
};

// IEEE 802.3 frame check sequence, as the number whose low byte is sent first.
uint32_t crc32(const uint8_t* data, size_t size);

// Ones' complement sum of big-endian 16-bit words, not folded into its complement yet (RFC 1071).
uint32_t sum16(const uint8_t* data, size_t size, uint32_t sum = 0);
uint16_t checksum(uint32_t sum);

inline uint16_t get16(const uint8_t* p) { return uint16_t(p[0] << 8 | p[1]); }
inline uint32_t get32(const uint8_t* p) { return uint32_t(get16(p)) << 16 | get16(p + 2); }
inline void put16(uint8_t* p, uint16_t v) { p[0] = uint8_t(v >> 8), p[1] = uint8_t(v); }
inline void put32(uint8_t* p, uint32_t v) { put16(p, uint16_t(v >> 16)), put16(p + 2, uint16_t(v)); }

struct Mac {
    uint8_t bytes[6] = {};
};

// "192.0.2.1" as a number, first byte highest; throws UserError.
uint32_t parse_ip(const std::string& text);
std::string format_ip(uint32_t ip);
Mac parse_mac(const std::string& text);

// An object of numbers and strings, printed in the order of insertion.
class Json {
  public:
    void add(const std::string& key, uint64_t value) { raw(key, std::to_string(value)); }
    void add(const std::string& key, double value);
    void add(const std::string& key, const std::string& value);
    void add(const std::string& key, const Json& value) { raw(key, value.str()); }
    void raw(const std::string& key, const std::string& value);
    std::string str() const { return "{" + body_ + "}"; }

  private:
    std::string body_;
};

}  // namespace sim
