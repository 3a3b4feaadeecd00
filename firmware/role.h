/* The role slots: on, off, reset, and what their registers say. */
#ifndef TREBUCHET_ROLE_H
#define TREBUCHET_ROLE_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"

/* A slot's register block; soc/firmware.py generates the table. */
struct role {
	const char *name;
	uint32_t base;
	uint8_t number;  /* of its role in the plan */
	uint32_t delay;  /* a benchmark role's registers delay and output_length; else 0 */
	uint32_t output;
};

/* The slot of this name, or NULL. */
const struct role *role_find(const char *name);
/* Jobs are taken, or answered STOPPED. */
void role_enable(const struct role *role, bool on);

/*
 * Set all slots of a benchmark role: microseconds, and bytes of result (0: as the operand). OK, with
 * their bits (slot k of the table: bit k) in `slots`; NOT_BUILT_IN, NO_ROOM.
 */
uint8_t role_benchmark(uint32_t delay, uint32_t output, uint32_t *slots);

/* Jobs in it are answered ABORTED. */
void role_reset(const struct role *role);

/* Jobs are taken, or not, by all slots. */
void role_enable_all(bool on);

/* Logs what the slots' watchdogs have done since the last call. */
void role_serve(void);

/* The row `role` of the table of commands. */
uint8_t role_command(struct words *words, struct text *out);

#endif
