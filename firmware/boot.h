/*
 * Which firmware runs. Where firmware is in external memory, the boot ROM has chosen it (rom/choose.h);
 * else the firmware in ROM is golden: it starts the application in flash, if there is a
 * good one, and stays otherwise. An application confirms that it came up; one that does not, three
 * times, is not started again, and neither is one that came up once but has failed three times in a
 * row, within a minute of its start.
 */
#ifndef TREBUCHET_BOOT_H
#define TREBUCHET_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image.h"

/* Whether the firmware that asks is no application: the one in ROM, or what the boot ROM had instead. */
bool boot_is_golden(void);
/* "golden", "application", or "received" by the boot ROM. */
const char *boot_name(void);
/*
 * Golden firmware: start the application. Returns if there is none, or none that is good, which a
 * line on the console explains; `key` is the chance gathered so far, left for the application.
 * With a boot ROM: only tell what that found in the application's slot.
 */
void boot_application(const uint32_t key[4]);
/* The application has come up. */
void boot_confirm(void);

/* The slots of this board. */
struct slot boot_slot(enum image_kind kind);
/*
 * What an image's history allows, and its failures in a row until now: OK, or ABORTED after a line
 * that tells why.
 */
uint8_t boot_history(struct slot slot, struct slot_state state, uint32_t failures);
/* Whether an image is firmware that can run here: OK, BAD_DATA, TOO_LARGE. */
uint8_t boot_check(const struct image *image);

#endif
