/*
 * The management service: SMP messages on the mailbox's TCP port (node.h), with this board's
 * commands, role slots and flash.
 */
#ifndef TREBUCHET_MANAGE_H
#define TREBUCHET_MANAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void manage_start(void);
/*
 * The mailbox shows a binary request: a header, which has been read, or a piece that was asked for
 * with `tag`. It is answered at once, or later, by manage_serve.
 */
void manage_take_header(const uint8_t *header, size_t length, uint8_t missing);
void manage_take_piece(uint32_t tag, uint8_t missing);
/* Go on with an answer that takes time; false while the request that is shown waits for one. */
bool manage_serve(void);

#endif
