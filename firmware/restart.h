/* Why the board started, restarting it, and the watchdog. */
#ifndef TREBUCHET_RESTART_H
#define TREBUCHET_RESTART_H

#include <stdint.h>

#include "command.h"

enum restart_cause {
	RESTART_NONE,
	RESTART_POWER,    /* nothing is left in memory */
	RESTART_BUTTON,   /* a reset from outside; named "reset" */
	RESTART_WATCHDOG,
	RESTART_CRASH,
	RESTART_COMMAND,
};

/* Find out why we started; to be called once, before anything else here. */
void restart_start(void);
enum restart_cause restart_cause(void);
const char *restart_cause_name(void);
/* Restarts since power-up. */
uint32_t restart_count(void);
/* Crashes and watchdogs in a row, without a minute of work between two of them. */
uint32_t restart_failures(void);
/* The application that golden firmware jumps to next has our cause: it is the same start. */
void restart_hand_over(void);

/* Restart when answers that are under way have been sent. */
void restart_request(void);
/* Restart if that was asked for some time ago. */
void restart_serve(void);
/* Write out the console's queue, and restart. */
_Noreturn void restart_now(enum restart_cause cause);

/*
 * From now on the board is restarted when the watchdog is not fed for so many milliseconds of the
 * clock, at most 65,535; 0: never.
 */
void watchdog_start(uint32_t milliseconds);
void watchdog_feed(void);

/* The row `reset` of the table of commands. */
uint8_t restart_command(struct words *words, struct text *out);

#endif
