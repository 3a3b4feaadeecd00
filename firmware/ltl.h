/*
 * LTL: the connections to peers (other boards), and what happens when one of them fails.
 *
 * Peers are numbered from 1, on each board in its own way. Entries 2p and 2p + 1 of the send and of
 * the receive table are peer p's: 2p for requests (virtual channel 0), 2p + 1 for replies (1).
 */
#ifndef TREBUCHET_LTL_H
#define TREBUCHET_LTL_H

#include <stdbool.h>
#include <stdint.h>

/* A row of generated/trebuchet_peers.h; peer p is row p - 1. */
struct peer {
	uint32_t mac_high;   /* the first two bytes on the wire */
	uint32_t mac_low;    /* the other four, the first one most significant */
	uint32_t ip;
	uint16_t theirs;     /* the number that the peer has for this board */
	uint16_t timeout_us; /* at most 32767: the engine's time wraps at 65536 ticks */
	bool called;         /* jobs that come to this board may go to the peer's role */
};

/* Open the connections to all peers, switch the engine on, and let jobs go out. */
void ltl_start(void);
/* Report connections that failed since the last call; no jobs go to their peers any more. */
void ltl_serve(void);

#endif
