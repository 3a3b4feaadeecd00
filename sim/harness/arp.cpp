#include "arp.h"

#include <algorithm>
#include <cstring>

namespace sim {

bool ArpResponder::answer(const Frame& request, Frame& reply) const {
    const Bytes& q = request.data;
    if (q.size() < 42) return false;
    return get16(&q[12]) == 0x0806 ? answer_arp(q, reply.data) : answer_ping(q, reply.data);
}

bool ArpResponder::answer_arp(const Bytes& q, Bytes& r) const {
    // Ethernet, IPv4, request (RFC 826).
    static const uint8_t kRequest[8] = {0, 1, 8, 0, 6, 4, 0, 1};
    if (memcmp(&q[14], kRequest, 8) || !ours(get32(&q[38]))) return false;
    r.assign(60, 0);
    std::copy_n(&q[6], 6, &r[0]);
    std::copy_n(mac_.bytes, 6, &r[6]);
    put16(&r[12], 0x0806);
    std::copy_n(kRequest, 8, &r[14]);
    r[21] = 2;
    std::copy_n(mac_.bytes, 6, &r[22]);
    put32(&r[28], get32(&q[38]));
    std::copy_n(&q[22], 10, &r[32]);
    return true;
}

bool ArpResponder::answer_ping(const Bytes& q, Bytes& r) const {
    if (get16(&q[12]) != 0x0800 || q[14] != 0x45 || q[23] != 1 || q[34] != 8) return false;
    const size_t end = 14 + size_t(get16(&q[16]));
    if (end > q.size() || end < 42 || !ours(get32(&q[30]))) return false;
    if (checksum(sum16(&q[14], 20)) || checksum(sum16(&q[34], end - 34))) return false;
    r = q;
    std::copy_n(&q[6], 6, &r[0]);
    std::copy_n(mac_.bytes, 6, &r[6]);
    put32(&r[26], get32(&q[30]));
    put32(&r[30], get32(&q[26]));
    r[34] = 0;
    put16(&r[36], 0);
    put16(&r[36], checksum(sum16(&r[34], end - 34)));
    return true;
}

}  // namespace sim
