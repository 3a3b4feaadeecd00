/*
 * The CPU's end of the SMP framer (cores/services/smp_board.py): parts of the configuration messages
 * that name no role. They go to manage.h, as those of the mailbox do.
 */
#ifndef TREBUCHET_SMP_H
#define TREBUCHET_SMP_H

#include <stdbool.h>
#include <stdint.h>

/* Set in the session of a part: the framer's numbers are not the mailbox's. */
#define SMP_SESSION (1u << 31)

/* The role of the connection's messages stays as it was. */
#define SMP_SAME_ROLE (-1)

/* Serve a part that waits, if nothing else of manage.h is at work. */
void smp_serve(void);
/* Answer the part that is shown: the next one has `bytes`. */
void smp_await(uint32_t bytes);
/* Answer it, and with it the message. */
void smp_respond(uint8_t status, bool close, int role);
/* Whether the interrupt comes while a part waits. */
void smp_listen(bool on);

#endif
