// firmware: image crc32
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "crc32.h"
#include "flash.h"
#include "flash_port.h"
#include "image.h"

/*
 * An input is a byte that says how, and an image. Its checksums may be made right, so that what comes
 * behind them is reached.
 */
#define RIGHT_HEADER 0x01
#define RIGHT_CONTENTS 0x02

#define SLOT_BYTES (2 * FLASH_SECTOR)

const char *const fuzz_dictionary[] = { "TBIM\x01\x01", "sim", "versa_ecp5", "\xff\xff\xff\xff", NULL };

static uint8_t flash[SLOT_BYTES];

void flash_working(void)
{
}

void flash_read(uint32_t address, void *to, size_t length)
{
	require(address <= SLOT_BYTES && length <= SLOT_BYTES - address);
	memcpy(to, flash + address, length);
}

uint8_t flash_erase(uint32_t address, uint32_t length)
{
	require(address <= SLOT_BYTES && length <= SLOT_BYTES - address);
	memset(flash + address, 0xff, (length + FLASH_SECTOR - 1) / FLASH_SECTOR * FLASH_SECTOR);
	return TREBUCHET_STATUS_OK;
}

uint8_t flash_program(uint32_t address, const void *from, size_t length)
{
	require(address <= SLOT_BYTES && length <= SLOT_BYTES - address);
	memcpy(flash + address, from, length);
	return TREBUCHET_STATUS_OK;
}

/* What lies in a slot is judged without a fault, whatever it is. */
static void check_slot(const struct image *image)
{
	struct slot slot = { 0, SLOT_BYTES };
	struct slot_state state;
	struct image found;

	memset(flash, 0xff, sizeof(flash));
	memcpy(flash + SLOT_BYTES - FLASH_SECTOR, image, sizeof(*image));
	if (slot_header(slot, "sim", &found) == TREBUCHET_STATUS_OK)
		slot_verify(slot, &found);
	state = slot_state(slot);
	require(state.trials == 0 && !state.confirmed && !state.bad);
	slot_count_trial(slot);
	require(slot_state(slot).trials == 1);
}

void fuzz_one(const char *data, size_t length)
{
	unsigned how = length > 0 ? (uint8_t)data[0] : 0;
	size_t size = length > 0 ? length - 1 : 0;
	struct image *image = malloc(size); /* in the firmware it is aligned, too */

	require(image != NULL || size == 0);
	if (size > 0)
		memcpy(image, data + 1, size);
	if (size >= IMAGE_HEADER) {
		if (how & RIGHT_CONTENTS) {
			image->length = (uint32_t)(size - IMAGE_HEADER);
			image->checksum = crc32_of(0, image + 1, image->length);
		}
		if (how & RIGHT_HEADER)
			image->header_checksum =
				crc32_of(0, image, offsetof(struct image, header_checksum));
		check_slot(image);
	}
	if (image_check(image, size, "sim") == TREBUCHET_STATUS_OK) {
		require(size == IMAGE_HEADER + image->length && image->length > 0);
		require(image->kind == IMAGE_FIRMWARE || image->kind == IMAGE_BITSTREAM);
		require(strncmp(image->board, "sim", IMAGE_BOARD) == 0);
	}
	free(image);
}
