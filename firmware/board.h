/* Time, interrupts and the console: the rest of the firmware sees LiteX through this only. */
#ifndef TREBUCHET_BOARD_H
#define TREBUCHET_BOARD_H

#include <stdint.h>

/* Enable interrupts and the console. */
void board_start(void);
/* Milliseconds of protocol time since reset; wraps after 49 days. */
uint32_t board_uptime_ms(void);
/*
 * Clock cycles, modulo 2**32 until board_wake_every(): the fast-moving source of random numbers.
 */
uint32_t board_cycles(void);
/* Return when an interrupt has come since the last call. */
void board_wait(void);
/* From now on board_wait() returns every so many milliseconds, too: for what has no interrupt. */
void board_wake_every(uint32_t milliseconds);

#endif
