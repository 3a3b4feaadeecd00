/* Which image the boot ROM starts (docs/firmware-boot.md). */
#ifndef TREBUCHET_CHOOSE_H
#define TREBUCHET_CHOOSE_H

#include "../handover.h"

/*
 * Start the application in flash, or else the golden firmware. Returns if neither is good: why not.
 * A start of an application that was never confirmed is counted first.
 */
struct handover choose(void);
/* Start what is in memory. */
_Noreturn void choose_start(struct handover found);

#endif
