// Frames that no well-meaning peer sends: noise, damaged and nonsensical TCP, SYN floods.
#pragma once

#include <map>
#include <string>

#include "tcp_frame.h"

namespace sim {

class Attacker {
  public:
    Attacker(Mac board_mac, uint32_t board_ip, uint16_t port, uint64_t seed)
        : board_mac_(board_mac), board_ip_(board_ip), port_(port), rng_(seed, "attacker") {}

    // A frame of a kind drawn at random. `honest` is a recent frame of a well-meaning client.
    Bytes make(const Bytes& honest);
    // Alters a frame of an attacker's own connection, with right checksums most of the time.
    void mutate(Bytes& frame);
    Json json() const;

  private:
    Bytes noise();
    Bytes damaged(const Bytes& honest);
    Bytes half_open();
    Bytes stray_segment();
    Bytes datagram();
    Segment stranger();

    Mac board_mac_;
    uint32_t board_ip_;
    uint16_t port_;
    Rng rng_;
    std::map<std::string, uint64_t> counts_;
};

}  // namespace sim
