#include "web_blocks.h"

#include "web_card.h"

#ifdef WEB_CARD

#include <string.h>

#include "bulk.h"
#include "drive.h"

/* At least the five that fat.h asks for. */
#define KEPT 8u
#define NONE KEPT

static BULK uint32_t data[KEPT][FAT_BLOCK / 4] __attribute__((aligned(8)));
static struct {
	uint32_t lba, used; /* ... when, or 0: empty */
	bool failed;
} kept[KEPT];
static uint32_t now;
static uint32_t wanted_lba;
static bool wants;
static unsigned reading = NONE; /* the block that is on its way */
static bool drops; /* it is of a medium that is gone */

void web_blocks_forget(bool all)
{
	for (unsigned k = 0; k < KEPT; k++)
		if (all || kept[k].failed)
			kept[k].used = 0;
	if (all) {
		wants = false;
		drops = reading != NONE;
	}
}

void web_blocks_start(void)
{
	web_blocks_forget(true);
}

static void copy(uint8_t *to, const uint32_t *from)
{
	for (unsigned i = 0; i < FAT_BLOCK; i += 4) /* by words: the library's function copies by bytes */
		memcpy(__builtin_assume_aligned(to + i, 4), &from[i / 4], 4);
}

enum fat_block web_blocks_read(void *context, uint32_t lba, uint8_t *block)
{
	(void)context;
	for (unsigned k = 0; k < KEPT; k++) {
		if (kept[k].used == 0 || kept[k].lba != lba || k == reading)
			continue;
		kept[k].used = ++now;
		if (kept[k].failed)
			return FAT_BLOCK_FAILED;
		copy(block, data[k]);
		return FAT_BLOCK_READ;
	}
	wanted_lba = lba;
	wants = true;
	return FAT_BLOCK_LATER;
}

static unsigned least_used(void)
{
	unsigned least = 0;

	for (unsigned k = 1; k < KEPT; k++)
		if (kept[k].used < kept[least].used)
			least = k;
	return least;
}

void web_blocks_serve(bool may)
{
	enum drive_status status;

	if (reading != NONE) {
		if (!drive_poll(&status))
			return;
		kept[reading].used = drops ? 0 : ++now;
		kept[reading].failed = status != DRIVE_OK;
		reading = NONE;
		drops = false;
	}
	if (!wants || !may)
		return;
	wants = false;
	reading = least_used();
	kept[reading].lba = wanted_lba;
	kept[reading].used = 0;
	drive_start(false, wanted_lba, 1, (uintptr_t)data[reading]);
}

bool web_blocks_idle(void)
{
	return reading == NONE && !wants;
}

#endif
