/* What happens when the firmware fails: a dump on the console and in memory, then a restart. */
#ifndef TREBUCHET_CRASH_H
#define TREBUCHET_CRASH_H

#include "command.h"

/* Take over the CPU's traps; to be called first of all. */
void crash_start(void);
/* Crash if the stack has grown into the data. */
void crash_check_stack(void);
/* The handler of the watchdog's interrupt: it ends in a dump of what hung. */
void crash_watchdog_isr(void);

/* The row `crash` of the table of commands. */
uint8_t crash_command(struct words *words, struct text *out);

#endif
