/*
 * Reassembly of IPv4 datagrams (RFC 791, 3.2; RFC 815; RFC 1122, 3.3.2) in a bounded buffer.
 *
 * A datagram may have REASSEMBLY_BYTES behind its header; REASSEMBLY_SLOTS of them may be incomplete at a
 * time, and a new one takes the place of the oldest. A datagram is given up if fragments of it overlap in
 * part, contradict each other about its length, or reach beyond the buffer; a fragment that is there
 * already is ignored, whatever it has: so no fragment replaces what was accepted.
 */
#ifndef TREBUCHET_REASSEMBLY_H
#define TREBUCHET_REASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "packet.h"

#define REASSEMBLY_BYTES 4096u
#define REASSEMBLY_SLOTS 4u
/* RFC 1122, 3.3.2: 60 to 120 s, from the first fragment on. */
#define REASSEMBLY_MS 60000u
#define REASSEMBLY_HEADER 60u

struct reassembly {
	bool used;
	uint8_t mac[PACKET_MAC_BYTES];     /* who sent the fragment with offset 0 */
	uint8_t header[REASSEMBLY_HEADER]; /* of that fragment */
	uint16_t header_length;            /* 0: it has not come */
	uint16_t length;                   /* of the payload; 0: the last fragment has not come */
	uint16_t highest, blocks;          /* end of what has come, and blocks of eight bytes that have */
	uint32_t since_ms;
	uint32_t from;
	uint16_t id;
	uint8_t protocol;
	uint8_t came[REASSEMBLY_BYTES / 64]; /* a bit for each block */
	_Alignas(4) uint8_t pad[2]; /* `data` lie two bytes behind a word, as in a frame: see packet_copy */
	uint8_t data[REASSEMBLY_BYTES];
};

/* Forget everything. */
void reassembly_start(void);
/*
 * Take the fragment of a frame whose IPv4 header, of `header` bytes, and total length are right. Return the
 * datagram if that completes it, to be released with `used` false; else NULL.
 */
struct reassembly *reassembly_take(const uint8_t *frame, size_t header, uint32_t now_ms);
/* Return a datagram whose time is over, to be released likewise, or NULL. */
struct reassembly *reassembly_expired(uint32_t now_ms);

#endif
