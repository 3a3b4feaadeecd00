/*
 * What an Internet host answers and the host services in gateware (cores/net/hosts) leave to the CPU:
 * ICMP echo and UDP echo and discard with IPv4 options or in fragments (RFC 1122, 3.2.1.8, 3.3.2), and ICMP
 * errors: port and protocol unreachable (3.2.2.1), reassembly time exceeded (3.2.2.4).
 *
 * One answer is on its way at a time, in frames of at most NIC_SEND_BYTES.
 */
#ifndef TREBUCHET_HOST_H
#define TREBUCHET_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet.h"

void host_start(const uint8_t mac[PACKET_MAC_BYTES]);
/* Take a frame that came in, when we are `us` with this netmask (0: unknown); not while host_busy(). */
void host_take_frame(const uint8_t *frame, size_t length, uint32_t us, uint32_t netmask, uint32_t now_ms);
/* Does an answer wait? */
bool host_busy(void);
/* Send what waits, and end what takes too long. */
void host_serve(uint32_t us, uint32_t now_ms);

#endif
