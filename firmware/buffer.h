/*
 * The one large buffer: a response of the mailbox, or the output of a command. Whoever fills it has
 * passed its contents on before it returns to the event loop, so nobody finds it in use.
 */
#ifndef TREBUCHET_BUFFER_H
#define TREBUCHET_BUFFER_H

#include <stdint.h>

#include "text.h"

#define BUFFER_BYTES 3904

extern uint32_t buffer[BUFFER_BYTES / 4];

/* The buffer, empty. */
struct text buffer_text(void);

#endif
