/* The drive of the targets `fat` and `cache`, made from an input. */
#ifndef TREBUCHET_FUZZ_DRIVE_H
#define TREBUCHET_FUZZ_DRIVE_H

#include "fuzz.h"

#include <string.h>

#include "store/fat.h"

/* The drive is zeros but for patches: block (3 bytes), offset in words (1 byte), length (1 byte), content. */
#define BLOCKS 80000u
#define STORED 48u

#define DRIVE_WORDS \
	"\x55\xaa", "\xff\xff", "\xf8\xff", "\xf7\xff", "\xff\xff\xff\x0f", "\xe5", "\x0f", "\x41", "\x01", \
	"\x02", "\x10", "\x08", ".", "\xeb"

static struct {
	uint32_t lba;
	uint8_t bytes[FAT_BLOCK];
} stored[STORED];
static unsigned count;

static uint8_t *block_of(uint32_t lba)
{
	for (unsigned i = 0; i < count; i++)
		if (stored[i].lba == lba)
			return stored[i].bytes;
	if (count == STORED)
		return NULL;
	stored[count].lba = lba;
	memset(stored[count].bytes, 0, FAT_BLOCK);
	return stored[count++].bytes;
}

/* A slow drive has a block only when it is asked for again; it keeps five. */
static bool slow;
static uint32_t kept[5];
static unsigned oldest;

static bool is_kept(uint32_t lba)
{
	for (unsigned i = 0; i < 5; i++)
		if (kept[i] == lba)
			return true;
	kept[oldest] = lba;
	oldest = (oldest + 1) % 5;
	return false;
}

static void set_slow(bool on)
{
	slow = on;
	memset(kept, 0xff, sizeof(kept));
}

static enum fat_block read_block(void *context, uint32_t lba, uint8_t *block)
{
	(void)context;
	require(lba < BLOCKS);
	if (slow && !is_kept(lba))
		return FAT_BLOCK_LATER;
	memset(block, 0, FAT_BLOCK);
	for (unsigned i = 0; i < count; i++)
		if (stored[i].lba == lba)
			memcpy(block, stored[i].bytes, FAT_BLOCK);
	return lba != 79999;
}

static void patch(const uint8_t *at, size_t length)
{
	count = 0;
	while (length >= 5) {
		uint32_t lba = fat_u16(at) | (uint32_t)at[2] << 16;
		size_t offset = at[3] % 128 * 4u, bytes = at[4];
		uint8_t *block = block_of(lba);

		at += 5;
		length -= 5;
		bytes = bytes < length ? bytes : length;
		if (block != NULL)
			memcpy(block + offset, at, bytes < FAT_BLOCK - offset ? bytes : FAT_BLOCK - offset);
		at += bytes;
		length -= bytes;
	}
}

#endif
