/*
 * Images of firmware and of bitstreams, and the slots of the flash that they lie in.
 *
 * An image is 64 bytes of header, then its contents. Numbers have their low byte first; texts are
 * filled up with zeros.
 *
 *   0  magic "TBIM"    4  version of the format, 1    5  kind: 1 firmware, 2 bitstream    6  0 (2)
 *   8  bytes of contents (4)   12  CRC-32 of them (4)   16  where they run in memory, or 0 (4)
 *  20  name of the board (24)  44  version (16)         60  CRC-32 of bytes 0 to 59 (4)
 *
 * A slot has the contents at its start and the header at the start of its last sector, behind which
 * bits are cleared for what happens to the image.
 */
#ifndef TREBUCHET_IMAGE_H
#define TREBUCHET_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_HEADER 64u
#define IMAGE_BOARD 24u
#define IMAGE_VERSION 16u
/* An image that has been started so often and never confirmed is not started again. */
#define IMAGE_TRIALS 3u

enum image_kind {
	IMAGE_FIRMWARE = 1,
	IMAGE_BITSTREAM = 2,
};

/* The header as it lies in flash and memory: CPU and host have the low byte first, too. */
struct image {
	char magic[4];
	uint8_t format;
	uint8_t kind;
	uint16_t zero;
	uint32_t length;
	uint32_t checksum;
	uint32_t load;
	char board[IMAGE_BOARD];     /* without a NUL if it is as long as that */
	char version[IMAGE_VERSION];
	uint32_t header_checksum;
};

/* A part of the flash; `bytes` of 0: the board has none. */
struct slot {
	uint32_t offset;
	uint32_t bytes;
};

struct slot_state {
	uint8_t trials;  /* starts without a confirmation, at most IMAGE_TRIALS */
	bool confirmed;  /* it came up once: it is trusted from then on */
	bool bad;        /* given up: it was found damaged, or never confirmed */
};

/* Functions that return uint8_t return a status (generated/trebuchet_status_codes.h). */

/*
 * Judge a header: OK, BAD_DATA (no image, or another format), BAD_CHECKSUM, WRONG_BOARD. What it
 * says can be shown after OK and WRONG_BOARD.
 */
uint8_t image_header(const struct image *image, const char *board);
/*
 * Judge a whole image in memory, at an address that is a multiple of four: as above, TRUNCATED, or
 * BAD_LENGTH if there is more than it says.
 */
uint8_t image_check(const struct image *image, size_t size, const char *board);

/* Whether nothing has been written where the header goes. */
bool slot_empty(struct slot slot);
/* Read and judge the header in a slot: also BAD_LENGTH if it says more than the slot has. */
uint8_t slot_header(struct slot slot, const char *board, struct image *image);
/* Judge the contents in a slot: OK or BAD_CHECKSUM. */
uint8_t slot_verify(struct slot slot, const struct image *image);
struct slot_state slot_state(struct slot slot);

/* From now on there is no image: OK, FLASH_ERROR, or NOT_BUILT_IN if there is no slot. */
uint8_t slot_erase(struct slot slot);
/* Count a start, trust the image, give it up, forget all that: OK or FLASH_ERROR. */
uint8_t slot_count_trial(struct slot slot);
uint8_t slot_confirm(struct slot slot);
uint8_t slot_give_up(struct slot slot);
uint8_t slot_renew(struct slot slot);

#endif
