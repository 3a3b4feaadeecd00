#include "fat.h"

#include <string.h>

/* Fewer clusters are FAT12, which is not read; more are FAT32. */
#define FAT16_CLUSTERS 4085
#define FAT32_CLUSTERS 65525
#define FAT32_MOST_CLUSTERS 0x0ffffff5

static bool has_signature(const uint8_t *block)
{
	return block[510] == 0x55 && block[511] == 0xaa;
}

/* Could this be the first block of a FAT volume, rather than an MBR? */
static bool is_boot_block(const uint8_t *block)
{
	uint32_t cluster = block[13];

	return has_signature(block) && (block[0] == 0xeb || block[0] == 0xe9) &&
	       fat_u16(block + 11) == FAT_BLOCK && cluster != 0 && (cluster & (cluster - 1)) == 0 &&
	       fat_u16(block + 14) != 0 && block[16] != 0;
}

/* The FATs of FAT32: flags may name one that alone is kept (mirroring off). */
static bool choose_fat(struct fat *fat, const uint8_t *block, uint32_t first, uint32_t fat_blocks)
{
	uint32_t fats = block[16], active = 0;
	uint32_t flags = fat->wide ? fat_u16(block + 40) : 0;

	if (flags & 0x80)
		active = flags & 0x0f;
	if (active >= fats)
		return false;
	fat->fat_lba = first + active * fat_blocks;
	fat->mirror_lba = fats > 1 && !(flags & 0x80) ? first + fat_blocks : 0;
	return true;
}

/* Take the volume whose first block is `block` at `begin`, of which the drive has `room` blocks. */
static enum fat_status take_volume(struct fat *fat, const uint8_t *block, uint32_t begin, uint32_t room)
{
	uint32_t reserved = fat_u16(block + 14);
	uint32_t root_entries = fat_u16(block + 17);
	uint32_t total = fat_u16(block + 19) ? fat_u16(block + 19) : fat_u32(block + 32);
	uint32_t narrow = fat_u16(block + 22);
	uint32_t fat_blocks = narrow ? narrow : fat_u32(block + 36);
	uint64_t root, data;

	if (total > room || root_entries % (FAT_BLOCK / 32) != 0)
		return FAT_NO_VOLUME;
	root = reserved + (uint64_t)block[16] * fat_blocks;
	data = root + root_entries / (FAT_BLOCK / 32);
	if (data >= total)
		return FAT_NO_VOLUME;
	fat->cluster_blocks = block[13];
	fat->clusters = (total - (uint32_t)data) / fat->cluster_blocks;
	if (fat->clusters < FAT16_CLUSTERS || fat->clusters > FAT32_MOST_CLUSTERS)
		return FAT_NO_VOLUME;
	fat->wide = fat->clusters >= FAT32_CLUSTERS;
	/* Every cluster has an entry in the FAT; each type has its own kind of root. */
	if (fat->clusters + 2 > (uint64_t)fat_blocks * (FAT_BLOCK / (fat->wide ? 4 : 2)) ||
	    fat->wide != (root_entries == 0) || (fat->wide && narrow != 0) ||
	    !choose_fat(fat, block, begin + reserved, fat_blocks))
		return FAT_NO_VOLUME;
	fat->root_lba = begin + (uint32_t)root;
	fat->root_blocks = root_entries / (FAT_BLOCK / 32);
	fat->data_lba = begin + (uint32_t)data;
	fat->root_cluster = fat->wide ? fat_u32(block + 44) : 0;
	return fat->wide && !fat_is_cluster(fat, fat->root_cluster) ? FAT_NO_VOLUME : FAT_OK;
}

static bool is_fat_type(uint8_t type)
{
	return type == 0x04 || type == 0x06 || type == 0x0b || type == 0x0c || type == 0x0e;
}

enum fat_status fat_mount(struct fat *fat, fat_read read, void *context, uint32_t blocks)
{
	uint8_t first[FAT_BLOCK], block[FAT_BLOCK];

	memset(fat, 0, sizeof(*fat));
	fat->read = read;
	fat->context = context;
	if (blocks == 0 || !read(context, 0, first))
		return FAT_READ_ERROR;
	if (is_boot_block(first))
		return take_volume(fat, first, 0, blocks);
	if (!has_signature(first))
		return FAT_NO_VOLUME;
	for (const uint8_t *entry = first + 446; entry < first + 510; entry += 16) {
		uint32_t begin = fat_u32(entry + 8), count = fat_u32(entry + 12);

		if (!is_fat_type(entry[4]) || begin == 0 || begin >= blocks || count > blocks - begin)
			continue;
		if (!read(context, begin, block))
			return FAT_READ_ERROR;
		if (is_boot_block(block) && take_volume(fat, block, begin, count) == FAT_OK)
			return FAT_OK;
	}
	return FAT_NO_VOLUME;
}

bool fat_is_cluster(const struct fat *fat, uint32_t cluster)
{
	return cluster >= 2 && cluster - 2 < fat->clusters;
}

uint32_t fat_cluster_lba(const struct fat *fat, uint32_t cluster)
{
	return fat->data_lba + (cluster - 2) * fat->cluster_blocks;
}

/* The FAT's entry of a cluster, through a cache of one block. */
static enum fat_status table_entry(struct fat *fat, uint32_t cluster, uint32_t *value)
{
	uint32_t each = FAT_BLOCK / (fat->wide ? 4 : 2);
	uint32_t offset = cluster / each;
	const uint8_t *at;

	if (!fat->cached || fat->table_lba != offset) {
		fat->cached = fat->read(fat->context, fat->fat_lba + offset, fat->table) ||
			      (fat->mirror_lba != 0 &&
			       fat->read(fat->context, fat->mirror_lba + offset, fat->table));
		fat->table_lba = offset;
		if (!fat->cached)
			return FAT_READ_ERROR;
	}
	at = fat->table + cluster % each * (fat->wide ? 4 : 2);
	*value = fat->wide ? fat_u32(at) & 0x0fffffff : fat_u16(at);
	return FAT_OK;
}

void fat_chain_start(struct fat_chain *chain, uint32_t cluster)
{
	*chain = (struct fat_chain){ .cluster = cluster, .power = 1 };
}

enum fat_status fat_chain_next(struct fat *fat, struct fat_chain *chain, uint32_t *cluster)
{
	if (chain->cluster == 0) {
		uint32_t value;
		enum fat_status status = table_entry(fat, chain->previous, &value);

		if (status != FAT_OK)
			return status;
		if (value >= (fat->wide ? 0x0ffffff8 : 0xfff8))
			return FAT_END;
		chain->cluster = value;
	}
	/* Free, reserved or bad, beyond the volume, or seen before. */
	if (!fat_is_cluster(fat, chain->cluster) || chain->cluster == chain->mark)
		return FAT_DAMAGED;
	if (++chain->steps == chain->power) {
		chain->mark = chain->cluster;
		chain->steps = 0;
		chain->power *= 2; /* at most twice the number of clusters: a longer chain loops */
	}
	*cluster = chain->previous = chain->cluster;
	chain->cluster = 0;
	return FAT_OK;
}

enum fat_status fat_open(const struct fat *fat, struct fat_file *file, const struct fat_entry *entry)
{
	file->blocks = entry->size / FAT_BLOCK + (entry->size % FAT_BLOCK != 0);
	file->held = 0;
	fat_chain_start(&file->chain, entry->cluster);
	if (file->blocks == 0)
		return FAT_OK;
	return entry->folder || !fat_is_cluster(fat, entry->cluster) ? FAT_DAMAGED : FAT_OK;
}

/* A chain may be longer than its file. If it loops beyond the file's end, it does so before that, too. */
static enum fat_status check_rest(struct fat *fat, struct fat_chain *chain)
{
	uint32_t cluster;
	enum fat_status status;

	do
		status = fat_chain_next(fat, chain, &cluster);
	while (status == FAT_OK);
	return status == FAT_END ? FAT_OK : status;
}

enum fat_status fat_extent(struct fat *fat, struct fat_file *file, struct fat_extent *extent)
{
	extent->blocks = 0;
	while (file->blocks > 0) {
		uint32_t cluster = file->held, count;

		if (cluster == 0) {
			enum fat_status status = fat_chain_next(fat, &file->chain, &cluster);

			if (status == FAT_END) /* the size is beyond the chain */
				return FAT_DAMAGED;
			if (status != FAT_OK)
				return status;
		}
		file->held = 0;
		if (extent->blocks == 0) {
			extent->lba = fat_cluster_lba(fat, cluster);
		} else if (fat_cluster_lba(fat, cluster) != extent->lba + extent->blocks) {
			file->held = cluster;
			return FAT_OK;
		}
		count = file->blocks < fat->cluster_blocks ? file->blocks : fat->cluster_blocks;
		extent->blocks += count;
		file->blocks -= count;
	}
	return extent->blocks == 0 ? FAT_END : check_rest(fat, &file->chain);
}
