/*
 * Writing an image from memory to its slot in flash, a sector at a time, so that the event loop goes
 * on meanwhile. The header is written last: until then the slot has no image.
 */
#ifndef TREBUCHET_UPDATE_H
#define TREBUCHET_UPDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Check an image (image.h), at an address that is a multiple of four; it must stay there until the
 * last update_step. OK: to be gone on with. Otherwise the status says why not; NOT_BUILT_IN: this
 * board has no flash, or no slot for it.
 */
uint8_t update_start(const void *data, size_t size);
/* Write the next part. True when that was the last one, or it failed; `status` says which. */
bool update_step(uint8_t *status);
/* Whether a whole image is a bitstream that this board can have the FPGA load. */
bool update_starts(const void *data, size_t size);
/* Whether what runs is this image, of which update_starts was true. */
bool update_is_running(const void *data);

#endif
