/*
 * Discovery: a host sends a UDP datagram to DISCOVER_PORT, of all stations or of ours, that begins with
 * DISCOVER_REQUEST; the board answers the sender with one line of JSON (docs/firmware.md). It answers hosts of
 * its own network only, at most one in DISCOVER_PAUSE_MS, and never with more bytes than the request had, so
 * nobody gains by a forged sender.
 */
#ifndef TREBUCHET_DISCOVER_H
#define TREBUCHET_DISCOVER_H

#include <stddef.h>
#include <stdint.h>

#include "network.h"

#define DISCOVER_PORT 47600u
#define DISCOVER_REQUEST "trebuchet discover 1\n"
#define DISCOVER_PAUSE_MS 50u

/*
 * Take a frame that came in, when we are `us` with this netmask (0: unknown, so everybody is taken to be on our
 * network). An answer is sent at once and written over the frame, for which there are NIC_SEND_BYTES; while the
 * port is busy there is none. `own` has our MAC address and name.
 */
void discover_take_frame(uint8_t *frame, size_t length, const struct address *own, uint32_t us, uint32_t netmask,
	uint32_t now_ms);

#endif
