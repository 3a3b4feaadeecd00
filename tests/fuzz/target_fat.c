// firmware: store/fat store/fat_folder crc32
#include "drive.h"

#include "crc32.h"

const char *const fuzz_dictionary[] = { DRIVE_WORDS, NULL };

static struct fat fat;
static struct fat_walk walk;
static uint32_t said; /* CRC-32 of all that was answered */

static void note(const void *data, size_t length)
{
	said = crc32_of(said, data, length);
}

/* Steps of a call; a slow drive's are few. */
static void refill(void)
{
	fat.budget = slow ? 3 : FAT_UNLIMITED;
}

static enum fat_status next_extent(struct fat_file *file, struct fat_extent *extent)
{
	enum fat_status status;

	do {
		refill();
		status = fat_extent(&fat, file, extent);
	} while (slow && status == FAT_PENDING);
	return status;
}

static enum fat_status next_file(void)
{
	enum fat_status status;

	do {
		refill();
		status = fat_walk_next(&fat, &walk);
	} while (slow && status == FAT_PENDING);
	return status;
}

static void check_file(const struct fat_entry *entry)
{
	struct fat_file file;
	struct fat_extent extent;
	uint64_t blocks = 0;
	enum fat_status status = fat_open(&fat, &file, entry);

	while (status == FAT_OK && (status = next_extent(&file, &extent)) == FAT_OK) {
		require(extent.blocks > 0 && extent.lba < BLOCKS && extent.blocks <= BLOCKS - extent.lba);
		blocks += extent.blocks;
		require(blocks <= BLOCKS);
		note(&extent, sizeof(extent));
	}
	note(&status, sizeof(status));
	require(status == FAT_END || status == FAT_DAMAGED || status == FAT_READ_ERROR);
	if (status == FAT_END)
		require(blocks == ((uint64_t)entry->size + FAT_BLOCK - 1) / FAT_BLOCK);
}

/* What a drive has, from one that has every block at once or from a slow one; 0: no volume. */
static uint32_t read_all(bool on)
{
	enum fat_status status;
	unsigned files = 0;

	set_slow(on);
	said = 0;
	do
		status = fat_mount(&fat, read_block, NULL, BLOCKS);
	while (on && status == FAT_PENDING);
	if (status != FAT_OK)
		return 0;
	fat_walk_start(&fat, &walk);
	while ((status = next_file()) != FAT_END) {
		require(walk.depth <= FAT_DEPTH && strlen(walk.path) < FAT_PATH_ROOM);
		require(status != FAT_OK || (walk.path[0] == '/' && strlen(walk.entry.name) > 0));
		require(strchr(walk.entry.name, '/') == NULL);
		require(++files <= 2 * FAT_WALK_ENTRIES);
		note(&status, sizeof(status));
		note(walk.path, strlen(walk.path));
		if (status == FAT_OK)
			check_file(&walk.entry);
	}
	require(next_file() == FAT_END);
	return said + 1;
}

void fuzz_one(const char *data, size_t length)
{
	uint32_t at_once;

	patch((const uint8_t *)data, length);
	at_once = read_all(false);
	require(read_all(true) == at_once);
}
