/*
 * The CPU's end of the mailbox service: what came on its TCP port through the TCP engine. Text is
 * HTTP and answered here; binary requests are SMP and go to manage.h.
 */
#ifndef TREBUCHET_MAILBOX_H
#define TREBUCHET_MAILBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the mailbox gives at most (cores/services/mailbox_copy.py); it takes a quarter of that. */
#define MAILBOX_RESPONSE_BYTES 4096u

/* Switch the mailbox and its interrupt on. */
void mailbox_start(void);
/* Serve one request that waits, and wake the event loop for the next. */
void mailbox_serve(void);

/* --- for whom a request is passed on to --- */

/* Copy the request that is shown, rounded up to words; returns its bytes. */
size_t mailbox_read(uint32_t *request);
uint32_t mailbox_session(void);
/* Append `length` bytes to the response; only the last of it may be no multiple of four. */
void mailbox_put(const uint32_t *words, size_t length);
/*
 * Send the response, which has `length` bytes; 0 and no `close`: nothing is sent. The session's next
 * request has `expect` bytes and `tag`; 0: it is text or a header.
 */
void mailbox_send(size_t length, bool close, uint32_t expect, uint32_t tag);
/* Whether the interrupt comes while a request is shown: not while its answer takes time. */
void mailbox_listen(bool on);

#endif
