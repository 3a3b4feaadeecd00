/* External memory. */
#ifndef TREBUCHET_MEMORY_H
#define TREBUCHET_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Gather what chance there is: the contents of the memory at power-up, which differ from chip to chip
 * and from start to start, and the cycle counter. Call it before and after memory_start, whose
 * duration varies. In simulation the result is the same every time.
 */
void memory_gather_chance(uint32_t key[4]);

/*
 * Initialise the SDRAM and test it; false when it does not work. Firmware that runs from it finds it
 * working.
 */
bool memory_start(void);

/*
 * What the test at start found: "good", or "none" of a build that does not test (a simulated memory).
 * Where it fails there is only the console.
 */
const char *memory_test(void);

/* Leave what chance there was for the application, where its memory_gather_chance finds it. */
void memory_leave_chance(const uint32_t key[4]);

#endif
