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
};

/* The slot of this name, or NULL. */
const struct role *role_find(const char *name);
/* Jobs are taken, or answered STOPPED. */
void role_enable(const struct role *role, bool on);

/* Jobs in it are answered ABORTED. */
void role_reset(const struct role *role);

/* Jobs are taken, or not, by all slots. */
void role_enable_all(bool on);

/* Logs what the slots' watchdogs have done since the last call. */
void role_serve(void);

/* The row `role` of the table of commands. */
uint8_t role_command(struct words *words, struct text *out);

#endif
