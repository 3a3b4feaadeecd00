#include "update.h"

#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>

#ifdef TREBUCHET_FLASH_SIZE

#include <string.h>

#include "boot.h"
#include "flash.h"
#include "image.h"
#include "multiboot.h"

static const struct image *image;
static struct slot slot;
static uint32_t at; /* bytes of the contents that are in flash */
static bool replaced; /* the slot of bitstreams has not what runs */

uint8_t update_start(const void *data, size_t size)
{
	uint8_t status = image_check(data, size, TREBUCHET_BOARD);

	if (status != TREBUCHET_STATUS_OK)
		return status;
	image = data;
	if (image->kind == IMAGE_FIRMWARE)
		status = boot_check(image);
	if (status != TREBUCHET_STATUS_OK)
		return status;
	slot = boot_slot((enum image_kind)image->kind);
	if (slot.bytes == 0)
		return TREBUCHET_STATUS_NOT_BUILT_IN;
	if (image->length > slot.bytes - FLASH_SECTOR)
		return TREBUCHET_STATUS_TOO_LARGE;
	at = 0;
	replaced |= image->kind == IMAGE_BITSTREAM;
	return slot_erase(slot);
}

bool update_step(uint8_t *status)
{
	uint32_t left = image->length - at;
	uint32_t length = left < FLASH_SECTOR ? left : FLASH_SECTOR;
	const uint8_t *contents = (const uint8_t *)(image + 1);

	if (left == 0) {
		*status = flash_program(slot.offset + slot.bytes - FLASH_SECTOR, image, IMAGE_HEADER);
		return true;
	}
	*status = flash_erase(slot.offset + at, length);
	if (*status == TREBUCHET_STATUS_OK)
		*status = flash_program(slot.offset + at, contents + at, length);
	at += length;
	return *status != TREBUCHET_STATUS_OK;
}

bool update_starts(const void *data, size_t size)
{
#ifdef TREBUCHET_MULTIBOOT
	return image_check(data, size, TREBUCHET_BOARD) == TREBUCHET_STATUS_OK &&
		((const struct image *)data)->kind == IMAGE_BITSTREAM;
#else
	(void)data;
	(void)size;
	return false;
#endif
}

bool update_is_running(const void *data)
{
	struct image found;

	return multiboot_is_application() && !replaced &&
		slot_header(boot_slot(IMAGE_BITSTREAM), TREBUCHET_BOARD, &found) == TREBUCHET_STATUS_OK &&
		memcmp(&found, data, IMAGE_HEADER) == 0;
}

#else /* no flash */

bool update_starts(const void *data, size_t size)
{
	(void)data;
	(void)size;
	return false;
}

bool update_is_running(const void *data)
{
	(void)data;
	return false;
}

uint8_t update_start(const void *data, size_t size)
{
	(void)data;
	(void)size;
	return TREBUCHET_STATUS_NOT_BUILT_IN;
}

bool update_step(uint8_t *status)
{
	*status = TREBUCHET_STATUS_NOT_BUILT_IN;
	return true;
}

#endif
