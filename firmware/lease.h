/*
 * The board's lease: the epoch that messages must have, and the guard that refuses all others
 * (docs/smp.md, Epochs). Both are registers of the SMP framer, which nothing else writes: so they
 * outlive a restart of the CPU alone, and nothing is kept here.
 *
 * Race: the framer judges messages while the CPU writes. The epoch is written before the guard, and the
 * command answers after reading them back, when no message that the old values let pass can become a
 * job any more (cores/services/framer.py).
 */
#ifndef TREBUCHET_LEASE_H
#define TREBUCHET_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"

/* Epochs have 16 bits; 0 is none. */
#define LEASE_LARGEST 65535u

/* Whether `epoch` may follow `other`: serial number arithmetic (RFC 1982), any is newer than 0. */
bool lease_is_newer(uint32_t epoch, uint32_t other);
/* The epoch of the board's lease; 0 if it has none, or no TCP port with SMP. */
uint32_t lease_epoch(void);
/* Whether the guard is on and refuses a message of this epoch; it refuses 0 whenever it is on. */
bool lease_refuses(uint32_t epoch);
/* Switch the guard; with it on a board without a lease refuses all messages. */
void lease_guard(bool on);
/* The row `lease` of the table of commands. */
uint8_t lease_command(struct words *words, struct text *out);

#endif
