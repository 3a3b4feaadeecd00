/* Time and interrupts: the rest of the firmware sees LiteX through this only. */
#ifndef TREBUCHET_BOARD_H
#define TREBUCHET_BOARD_H

#include <stdint.h>

/* Enable interrupts and the UART. */
void board_start(void);
/* Everything is printed and interrupts are off: somebody else takes over. */
void board_stop(void);
/* Milliseconds of protocol time since reset; wraps after 49 days. */
uint32_t board_uptime_ms(void);
/*
 * Clock cycles, modulo 2**32 until board_wake_every(): the fast-moving source of random numbers.
 */
uint32_t board_cycles(void);
/* An interrupt has come: for handlers, and for whoever has more to do. */
void board_wake(void);
/* Return when an interrupt has come since the last call. */
void board_wait(void);
/* With interrupts off: return when one is pending, or sooner. */
void board_sleep(void);
/*
 * From now on board_wait() returns at least every so many milliseconds, too: for what has no
 * interrupt. Of several callers the one in the greatest hurry has its way.
 */
void board_wake_every(uint32_t milliseconds);

/* Clock cycles from the timer's expiry to its handler, the most since board_wake_every(). */
uint32_t board_interrupt_cycles(void);

/* While something that has no interrupt goes on: sleep until the next wake-up, if there are any. */
void board_pause(void);

#endif
