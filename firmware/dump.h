/* What is kept of a crash: the registers at that moment, in memory that a restart leaves alone. */
#ifndef TREBUCHET_DUMP_H
#define TREBUCHET_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "text.h"

/* Causes beside those of the RISC-V privileged specification, 3.1.15. */
#define DUMP_WATCHDOG 0x100u
#define DUMP_STACK 0x101u

#define DUMP_REGISTERS 31

/* crash.c's trap entry, in assembler, relies on the places of scratch, cause, pc, value and x. */
struct dump {
	uint32_t scratch; /* of the trap entry */
	uint32_t cause;
	uint32_t pc;      /* mepc: the instruction, or the next one when it was the watchdog */
	uint32_t value;   /* mtval: the address that could not be reached, or the instruction */
	uint32_t x[DUMP_REGISTERS]; /* x1 to x31 */
	uint32_t uptime_ms;
	uint32_t check;
};

/* Make the dump valid; it stays so until a word of it changes, but for `scratch`. */
void dump_seal(struct dump *dump);
bool dump_valid(const struct dump *dump);
void dump_clear(struct dump *dump);

/* Append it as text, some 500 characters. */
void dump_write(struct text *out, const struct dump *dump);

#endif
