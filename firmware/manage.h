/*
 * The management service: SMP messages on the mailbox's TCP port (node.h), with this board's
 * commands, role slots and flash; and the configuration messages that come to the roles' TCP ports.
 */
#ifndef TREBUCHET_MANAGE_H
#define TREBUCHET_MANAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node.h"

void manage_start(void);
/*
 * The mailbox shows a binary request: a header, which has been read, or a piece that was asked for
 * with `tag`. It is answered at once, or later, by manage_serve.
 */
void manage_take_header(const uint8_t *header, size_t length, uint8_t missing);
void manage_take_piece(uint32_t tag, uint8_t missing);
/* The SMP framer shows a part of a configuration (smp.h): the same. */
void manage_take_part(const struct node_piece *piece);
/* Whether a part or request can be taken: none waits for an answer that takes time. */
bool manage_is_idle(void);
/* Go on with an answer that takes time; false while the request that is shown waits for one. */
bool manage_serve(void);

#endif
