#include "common.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sim {

namespace {

FILE* diverted = nullptr;

}  // namespace

FILE* console() { return diverted ? diverted : stdout; }

void divert_prints(const std::string& path) {
    fflush(stdout);
    diverted = fdopen(dup(STDOUT_FILENO), "w");
    if (!diverted || !freopen(path.c_str(), "w", stdout))
        cannot_write("'" + path + "'");
    setvbuf(stdout, nullptr, _IOLBF, 0);
}

void check_prints(const std::string& path) {
    if (!diverted || (!fflush(stdout) && !ferror(stdout))) return;
    // What the Verilog printed failed long ago; the reason is still there for one more byte.
    clearerr(stdout);
    errno = 0;
    if (fputc('\n', stdout) == EOF || fflush(stdout)) cannot_write("events '" + path + "'");
    throw UserError("cannot write all events to '" + path + "'");
}

void cannot_write(const std::string& what) {
    throw UserError("cannot write " + what + ": " + strerror(errno));
}

uint32_t crc32(const uint8_t* data, size_t size) {
    static const auto table = [] {
        std::vector<uint32_t> t(256);
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t c = i;
            for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320 ^ (c >> 1) : c >> 1;
            t[i] = c;
        }
        return t;
    }();
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < size; ++i) crc = table[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
    return ~crc;
}

uint32_t sum16(const uint8_t* data, size_t size, uint32_t sum) {
    for (size_t i = 0; i + 1 < size; i += 2) sum += get16(data + i);
    if (size & 1) sum += uint32_t(data[size - 1]) << 8;
    return sum;
}

uint16_t checksum(uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return uint16_t(~sum);
}

uint32_t parse_ip(const std::string& text) {
    in_addr address;
    if (inet_pton(AF_INET, text.c_str(), &address) != 1)
        throw UserError("'" + text + "' is not an IPv4 address");
    return ntohl(address.s_addr);
}

std::string format_ip(uint32_t ip) {
    char text[16];
    snprintf(text, sizeof text, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
    return text;
}

Mac parse_mac(const std::string& text) {
    Mac mac;
    char rest;
    uint8_t* b = mac.bytes;
    if (sscanf(text.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", b, b + 1, b + 2, b + 3, b + 4,
               b + 5, &rest) != 6)
        throw UserError("'" + text + "' is not a MAC address such as 02:00:00:00:00:02");
    return mac;
}

void Json::raw(const std::string& key, const std::string& value) {
    if (!body_.empty()) body_ += ", ";
    body_ += "\"" + key + "\": " + value;
}

void Json::add(const std::string& key, double value) {
    char text[40];
    snprintf(text, sizeof text, "%.6g", value);
    raw(key, text);
}

void Json::add(const std::string& key, const std::string& value) {
    std::string quoted = "\"";
    for (char c : value) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (uint8_t(c) >= 0x20) quoted += c;
    }
    raw(key, quoted + "\"");
}

}  // namespace sim
