/*
 * LTL: the connections to peers (other boards), and what happens when one of them fails.
 *
 * Peers are numbered from 1, on each board in its own way. Entries 2p and 2p + 1 of the send and of
 * the receive table are peer p's: 2p for requests (virtual channel 0), 2p + 1 for replies (1).
 */
#ifndef TREBUCHET_LTL_H
#define TREBUCHET_LTL_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* Switch the engine on and greet the peers; `chance` is another number than before the restart. */
void ltl_start(uint16_t chance);
/* A frame that came by the frame port; it may be a peer's greeting. */
void ltl_take_frame(const uint8_t *frame, size_t length);
/*
 * Report connections that have failed: no jobs go to their peers until these have joined again; and
 * greet those that have not.
 */
void ltl_serve(void);

#endif
