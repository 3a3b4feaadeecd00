/*
 * The web service's images (models/http/image.py): one is served by gateware, and the next one is
 * written beside it. It comes over the network as the image of a configuration message (manage.h),
 * behind this header. Numbers have their low byte first.
 *
 *   0  magic "TBWI"    4  layout of images    8  address that it is made for    12  its bytes
 *  16  address of the index    20  buckets, a power of two    24  paths
 *  28  CRC-32 of bytes 0 to 27 and of the image
 */
#ifndef TREBUCHET_WEB_H
#define TREBUCHET_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct web_image {
	char magic[4];
	uint32_t layout, base, length, index, buckets, paths, checksum;
};

/* What there is for an image. */
struct web_room {
	uint32_t layout, base, bytes;
};

/*
 * Judge the header of an image that has `size` bytes with it: OK; BAD_LENGTH, TRUNCATED; WRONG_BOARD:
 * of another layout; TOO_LARGE; STALE: made for another place, as where the image that is served
 * lies; BAD_DATA.
 */
uint8_t web_judge(const struct web_image *image, size_t size, const struct web_room *room);

/* Whether what begins like this is such an image, and there is a web service. */
bool web_begins(const void *data, size_t length);
/* Take the next bytes of an image, `at` bytes of which have come; the first ones with its header. */
void web_take(uint32_t at, const void *data, size_t length);
/*
 * All `size` bytes have come. OK: to be gone on with. As web_judge; BAD_CHECKSUM; BUSY: responses of
 * the image before the one that is served were not acknowledged when it began.
 */
uint8_t web_finish(size_t size);
/* Whether the image is served now; until then call it again. */
bool web_step(void);
/* Is the image of the last switch looked up in, though web_step() has not said so? */
bool web_switched(void);

/*
 * Take the half that is not served, for an image that is written here; one on its way is refused, BUSY. False:
 * responses of the image before the one that is served are not acknowledged.
 */
bool web_claim(struct web_room *room);
/* Serve the image that was written there; until web_step() says so. */
void web_switch_to(const struct web_image *image);

/* Answer an unusual request, if one waits. */
void web_serve(void);
/* The image that is served; `base` 0: none. */
const struct web_image *web_served(void);

/* The row `web` of the table of commands. */
struct words;
struct text;
uint8_t web_command(struct words *words, struct text *out);

#endif
