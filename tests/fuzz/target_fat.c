// firmware: store/fat store/fat_folder
#include "fuzz.h"

#include <string.h>

#include "store/fat.h"

/* The drive is zeros but for patches: block (3 bytes), offset in words (1 byte), length (1 byte), content. */
#define BLOCKS 80000u
#define STORED 48u

const char *const fuzz_dictionary[] = {
	"\x55\xaa", "\xff\xff", "\xf8\xff", "\xf7\xff", "\xff\xff\xff\x0f", "\xe5", "\x0f", "\x41", "\x01",
	"\x02", "\x10", "\x08", ".", "\xeb", NULL,
};

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

static bool read_block(void *context, uint32_t lba, uint8_t *block)
{
	(void)context;
	require(lba < BLOCKS);
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

static void check_file(struct fat *fat, const struct fat_entry *entry)
{
	struct fat_file file;
	struct fat_extent extent;
	uint64_t blocks = 0;
	enum fat_status status = fat_open(fat, &file, entry);

	while (status == FAT_OK && (status = fat_extent(fat, &file, &extent)) == FAT_OK) {
		require(extent.blocks > 0 && extent.lba < BLOCKS && extent.blocks <= BLOCKS - extent.lba);
		blocks += extent.blocks;
		require(blocks <= BLOCKS);
	}
	if (status == FAT_END)
		require(blocks == ((uint64_t)entry->size + FAT_BLOCK - 1) / FAT_BLOCK);
}

void fuzz_one(const char *data, size_t length)
{
	static struct fat fat;
	static struct fat_walk walk;
	enum fat_status status;
	unsigned files = 0;

	patch((const uint8_t *)data, length);
	if (fat_mount(&fat, read_block, NULL, BLOCKS) != FAT_OK)
		return;
	fat_walk_start(&fat, &walk);
	while ((status = fat_walk_next(&fat, &walk)) != FAT_END) {
		require(walk.depth <= FAT_DEPTH && strlen(walk.path) < FAT_PATH_ROOM);
		require(status != FAT_OK || (walk.path[0] == '/' && strlen(walk.entry.name) > 0));
		require(strchr(walk.entry.name, '/') == NULL);
		require(++files <= 2 * FAT_WALK_ENTRIES);
		if (status == FAT_OK)
			check_file(&fat, &walk.entry);
	}
	require(fat_walk_next(&fat, &walk) == FAT_END);
}
