/*
 * What the boot ROM leaves for the firmware that it starts, in memory that survives a restart. Boards
 * whose firmware is in ROM have no boot ROM (docs/firmware-boot.md).
 */
#ifndef TREBUCHET_HANDOVER_H
#define TREBUCHET_HANDOVER_H

#include <stdint.h>

enum handover_from {
	HANDOVER_APPLICATION,
	HANDOVER_GOLDEN,
	HANDOVER_RECEIVED, /* over the UART */
};

/* In the place of a status: there is no image. */
#define HANDOVER_EMPTY 0xffu

struct handover {
	uint8_t from;        /* enum handover_from: which image runs */
	uint8_t application; /* status of the image in its slot */
	uint8_t golden;      /* likewise; 0 if the application runs */
	uint8_t zero;
};

void handover_leave(struct handover handover);
/* What was left; golden if nothing was: something else has put the firmware into memory. */
struct handover handover_found(void);

#endif
