// Answers ARP requests for one IPv4 address, and ICMP echo requests to it.
#pragma once

#include "common.h"

namespace sim {

class ArpResponder {
  public:
    // With `count` > 1 it answers ARP for that many addresses from `ip` on.
    ArpResponder(Mac mac, uint32_t ip, uint32_t count = 1) : mac_(mac), ip_(ip), count_(count) {}
    bool answer(const Frame& request, Frame& reply) const;

  private:
    bool answer_arp(const Bytes& request, Bytes& reply) const;
    bool answer_ping(const Bytes& request, Bytes& reply) const;
    bool ours(uint32_t ip) const { return ip - ip_ < count_; }

    Mac mac_;
    uint32_t ip_, count_;
};

}  // namespace sim
