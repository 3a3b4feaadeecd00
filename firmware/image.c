#include "image.h"

#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "crc32.h"
#include "flash.h"
#include "flash_port.h"

#define FORMAT 1u
#define PIECE 1024u

/* Behind the header, one byte each: a bit cleared for each start; zero when so. */
enum { TRIALS = IMAGE_HEADER, CONFIRMED, BAD, STATES };

_Static_assert(sizeof(struct image) == IMAGE_HEADER, "the header has no gaps");

uint8_t image_header(const struct image *image, const char *board)
{
	if (memcmp(image->magic, "TBIM", sizeof(image->magic)) != 0)
		return TREBUCHET_STATUS_BAD_DATA;
	if (crc32_of(0, image, offsetof(struct image, header_checksum)) != image->header_checksum)
		return TREBUCHET_STATUS_BAD_CHECKSUM;
	if (image->format != FORMAT || image->kind < IMAGE_FIRMWARE || image->kind > IMAGE_BITSTREAM)
		return TREBUCHET_STATUS_BAD_DATA;
	if (strncmp(image->board, board, sizeof(image->board)) != 0)
		return TREBUCHET_STATUS_WRONG_BOARD;
	return image->length == 0 ? TREBUCHET_STATUS_BAD_LENGTH : TREBUCHET_STATUS_OK;
}

/* In memory without a cache a megabyte takes seconds. */
static uint32_t checksum_of(const uint8_t *at, size_t length)
{
	uint32_t crc = 0;

	while (length > 0) {
		size_t piece = length < PIECE ? length : PIECE;

		crc = crc32_of(crc, at, piece);
		flash_working();
		at += piece;
		length -= piece;
	}
	return crc;
}

uint8_t image_check(const struct image *image, size_t size, const char *board)
{
	uint8_t status;

	if (size < IMAGE_HEADER)
		return TREBUCHET_STATUS_TRUNCATED;
	status = image_header(image, board);
	if (status != TREBUCHET_STATUS_OK)
		return status;
	size -= IMAGE_HEADER;
	if (size != image->length)
		return size < image->length ? TREBUCHET_STATUS_TRUNCATED : TREBUCHET_STATUS_BAD_LENGTH;
	if (checksum_of((const uint8_t *)(image + 1), size) != image->checksum)
		return TREBUCHET_STATUS_BAD_CHECKSUM;
	return TREBUCHET_STATUS_OK;
}

static uint32_t header_at(struct slot slot)
{
	return slot.offset + slot.bytes - FLASH_SECTOR;
}

bool slot_empty(struct slot slot)
{
	uint32_t first;

	if (slot.bytes == 0)
		return true;
	flash_read(header_at(slot), &first, sizeof(first));
	return first == 0xffffffff;
}

uint8_t slot_header(struct slot slot, const char *board, struct image *image)
{
	uint8_t status;

	if (slot.bytes == 0)
		return TREBUCHET_STATUS_NOT_BUILT_IN;
	flash_read(header_at(slot), image, sizeof(*image));
	status = image_header(image, board);
	if (status == TREBUCHET_STATUS_OK && image->length > slot.bytes - FLASH_SECTOR)
		return TREBUCHET_STATUS_BAD_LENGTH;
	return status;
}

uint8_t slot_verify(struct slot slot, const struct image *image)
{
	uint8_t piece[64];
	uint32_t crc = 0;

	for (uint32_t at = 0; at < image->length; at += sizeof(piece)) {
		uint32_t left = image->length - at;
		uint32_t length = left < sizeof(piece) ? left : sizeof(piece);

		flash_read(slot.offset + at, piece, length);
		crc = crc32_of(crc, piece, length);
		flash_working();
	}
	return crc == image->checksum ? TREBUCHET_STATUS_OK : TREBUCHET_STATUS_BAD_CHECKSUM;
}

struct slot_state slot_state(struct slot slot)
{
	struct slot_state state = { 0, false, false };
	uint8_t bytes[STATES - IMAGE_HEADER];

	flash_read(header_at(slot) + IMAGE_HEADER, bytes, sizeof(bytes));
	for (unsigned bit = 0; bit < IMAGE_TRIALS; bit++)
		state.trials += !(bytes[0] >> bit & 1);
	state.confirmed = bytes[CONFIRMED - TRIALS] == 0;
	state.bad = bytes[BAD - TRIALS] == 0;
	return state;
}

uint8_t slot_erase(struct slot slot)
{
	if (slot.bytes == 0)
		return TREBUCHET_STATUS_NOT_BUILT_IN;
	if (flash_erase(header_at(slot), FLASH_SECTOR) != TREBUCHET_STATUS_OK || !slot_empty(slot))
		return TREBUCHET_STATUS_FLASH_ERROR;
	return TREBUCHET_STATUS_OK;
}

static uint8_t set_state(struct slot slot, uint32_t at, uint8_t value)
{
	return flash_program(header_at(slot) + at, &value, 1);
}

uint8_t slot_count_trial(struct slot slot)
{
	uint8_t bits;

	flash_read(header_at(slot) + TRIALS, &bits, 1);
	return set_state(slot, TRIALS, (uint8_t)(bits & (bits << 1))); /* the lowest that is left */
}

uint8_t slot_confirm(struct slot slot)
{
	return set_state(slot, CONFIRMED, 0);
}

uint8_t slot_give_up(struct slot slot)
{
	return set_state(slot, BAD, 0);
}

uint8_t slot_renew(struct slot slot)
{
	struct image image;

	flash_read(header_at(slot), &image, sizeof(image));
	if (slot_erase(slot) != TREBUCHET_STATUS_OK)
		return TREBUCHET_STATUS_FLASH_ERROR;
	return flash_program(header_at(slot), &image, sizeof(image));
}
