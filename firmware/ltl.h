/*
 * LTL: the connections to peers (other boards), and what happens when one of them fails.
 *
 * Peers are numbered from 1, on each board in its own way. Entries 2p and 2p + 1 of the send and of
 * the receive table are peer p's: 2p for requests (virtual channel 0), 2p + 1 for replies (1).
 */
#ifndef TREBUCHET_LTL_H
#define TREBUCHET_LTL_H

#include "config.h"

/* Open the connections to all peers, switch the engine on, and let jobs go out. */
void ltl_start(void);
/* Report connections that failed since the last call; no jobs go to their peers any more. */
void ltl_serve(void);

#endif
