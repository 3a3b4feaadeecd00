#include "fat.h"

#include <string.h>

/* Fewer clusters are FAT12, which is not read; more are FAT32. */
#define FAT16_CLUSTERS 4085
#define FAT32_CLUSTERS 65525
#define FAT32_MOST_CLUSTERS 0x0ffffff5
/* Clusters of a run that cost as much time as beginning one. */
#define CLUSTERS_OF_STEP 8
/* Bytes of the table of partitions. */
#define PARTS 64

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
	fat->serial = fat_u32(block + (fat->wide ? 67 : 39));
	return fat->wide && !fat_is_cluster(fat, fat->root_cluster) ? FAT_NO_VOLUME : FAT_OK;
}

static bool is_fat_type(uint8_t type)
{
	return type == 0x04 || type == 0x06 || type == 0x0b || type == 0x0c || type == 0x0e;
}

static enum fat_status read_status(enum fat_block got)
{
	return got == FAT_BLOCK_READ ? FAT_OK : got == FAT_BLOCK_LATER ? FAT_PENDING : FAT_READ_ERROR;
}

/* The first FAT partition of an MBR, whose table is `parts`. */
static enum fat_status mount_partition(struct fat *fat, const uint8_t parts[PARTS], uint32_t blocks)
{
	for (const uint8_t *entry = parts; entry < parts + PARTS; entry += 16) {
		uint32_t begin = fat_u32(entry + 8), count = fat_u32(entry + 12);
		enum fat_status status;

		if (!is_fat_type(entry[4]) || begin == 0 || begin >= blocks || count > blocks - begin)
			continue;
		status = read_status(fat->read(fat->context, begin, fat->table));
		if (status != FAT_OK)
			return status;
		if (is_boot_block(fat->table) && take_volume(fat, fat->table, begin, count) == FAT_OK)
			return FAT_OK;
	}
	return FAT_NO_VOLUME;
}

enum fat_status fat_mount(struct fat *fat, fat_read read, void *context, uint32_t blocks)
{
	uint8_t parts[PARTS];
	enum fat_status status;

	memset(fat, 0, sizeof(*fat));
	fat->read = read;
	fat->context = context;
	fat->budget = FAT_UNLIMITED;
	/* `table` is of no other use yet: a stack has little room. */
	status = blocks == 0 ? FAT_READ_ERROR : read_status(read(context, 0, fat->table));
	if (status != FAT_OK)
		return status;
	if (is_boot_block(fat->table))
		return take_volume(fat, fat->table, 0, blocks);
	if (!has_signature(fat->table))
		return FAT_NO_VOLUME;
	memcpy(parts, fat->table + 446, PARTS);
	return mount_partition(fat, parts, blocks);
}

bool fat_spend(struct fat *fat, uint32_t steps)
{
	if (fat->budget == 0)
		return false;
	if (fat->budget != FAT_UNLIMITED)
		fat->budget -= steps < fat->budget ? steps : fat->budget;
	return true;
}

bool fat_is_cluster(const struct fat *fat, uint32_t cluster)
{
	return cluster >= 2 && cluster - 2 < fat->clusters;
}

uint32_t fat_cluster_lba(const struct fat *fat, uint32_t cluster)
{
	return fat->data_lba + (cluster - 2) * fat->cluster_blocks;
}

static uint32_t entries_of_block(const struct fat *fat)
{
	return FAT_BLOCK / (fat->wide ? 4 : 2);
}

/* Have the block of the FAT with the entry of a cluster in `table`. */
static enum fat_status load_table(struct fat *fat, uint32_t cluster)
{
	uint32_t offset = cluster / entries_of_block(fat);
	enum fat_status status;

	if (fat->cached && fat->table_lba == offset)
		return FAT_OK;
	status = read_status(fat->read(fat->context, fat->fat_lba + offset, fat->table));
	if (status == FAT_READ_ERROR && fat->mirror_lba != 0)
		status = read_status(fat->read(fat->context, fat->mirror_lba + offset, fat->table));
	fat->cached = status == FAT_OK;
	fat->table_lba = offset;
	return status;
}

/* The entry of a cluster, in `table`, with a single load: memory may be slow. */
static inline uint32_t table_entry(const struct fat *fat, uint32_t index)
{
	uint16_t narrow;
	uint32_t wide;

	if (fat->wide) {
		memcpy(&wide, __builtin_assume_aligned(fat->table + 4 * index, 4), sizeof(wide));
		return wide & 0x0fffffff;
	}
	memcpy(&narrow, __builtin_assume_aligned(fat->table + 2 * index, 2), sizeof(narrow));
	return narrow;
}

/* How many clusters follow one another from this one on, as far as the block in `table` tells. */
static uint32_t count_run(const struct fat *fat, uint32_t cluster)
{
	uint32_t index = cluster % entries_of_block(fat), begin = index;
	uint32_t most = fat->clusters + 1 - cluster; /* behind it */
	uint32_t end = entries_of_block(fat);

	if (end - index > most)
		end = index + most;
	while (index < end && table_entry(fat, index) == ++cluster)
		index++;
	return index - begin + 1;
}

void fat_chain_start(struct fat_chain *chain, uint32_t cluster)
{
	*chain = (struct fat_chain){ .cluster = cluster, .power = 1 };
}

enum fat_status fat_chain_next(struct fat *fat, struct fat_chain *chain, struct fat_run *run)
{
	enum fat_status status;

	if (!fat_spend(fat, 1))
		return FAT_PENDING;
	if (chain->cluster == 0) {
		uint32_t value;

		status = load_table(fat, chain->previous);
		if (status != FAT_OK)
			return status;
		value = table_entry(fat, chain->previous % entries_of_block(fat));
		if (value >= (fat->wide ? 0x0ffffff8 : 0xfff8))
			return FAT_END;
		if (!fat_is_cluster(fat, value)) /* free, reserved or bad, or beyond the volume */
			return FAT_DAMAGED;
		chain->cluster = value;
	}
	if (!fat_is_cluster(fat, chain->cluster) || chain->cluster == chain->mark)
		return FAT_DAMAGED;
	status = load_table(fat, chain->cluster);
	if (status == FAT_PENDING)
		return status;
	/* A block that cannot be read is an error of the clusters behind this one. */
	*run = (struct fat_run){ chain->cluster, status == FAT_OK ? count_run(fat, chain->cluster) : 1 };
	if (++chain->steps == chain->power) {
		chain->mark = chain->cluster;
		chain->steps = 0;
		chain->power *= 2; /* at most twice the number of clusters: a longer chain loops */
	}
	chain->previous = chain->cluster + (run->count - 1);
	chain->cluster = 0;
	fat_spend(fat, run->count / CLUSTERS_OF_STEP);
	return FAT_OK;
}

enum fat_status fat_open_at(const struct fat *fat, struct fat_file *file, uint32_t cluster, uint32_t size)
{
	file->blocks = size / FAT_BLOCK + (size % FAT_BLOCK != 0);
	file->held.count = 0;
	file->most = UINT32_MAX;
	file->run.blocks = 0;
	fat_chain_start(&file->chain, cluster);
	return file->blocks == 0 || fat_is_cluster(fat, cluster) ? FAT_OK : FAT_DAMAGED;
}

enum fat_status fat_open(const struct fat *fat, struct fat_file *file, const struct fat_entry *entry)
{
	enum fat_status status = fat_open_at(fat, file, entry->cluster, entry->size);

	return entry->folder && file->blocks != 0 ? FAT_DAMAGED : status;
}

/* A chain may be longer than its file. If it loops beyond the file's end, it does so before that, too. */
static enum fat_status check_rest(struct fat *fat, struct fat_chain *chain)
{
	struct fat_run run;
	enum fat_status status;

	do
		status = fat_chain_next(fat, chain, &run);
	while (status == FAT_OK);
	return status == FAT_END ? FAT_OK : status;
}

static enum fat_status hand_out(struct fat_file *file, struct fat_extent *extent)
{
	*extent = file->run;
	file->run.blocks = 0;
	return FAT_OK;
}

/* Append clusters that are held to the extent, as many as are wanted. */
static void append(const struct fat *fat, struct fat_file *file)
{
	uint32_t most = file->most - file->run.blocks, each = fat->cluster_blocks;
	uint32_t clusters = most / each + (most % each != 0), blocks;

	if (clusters > file->held.count)
		clusters = file->held.count;
	blocks = clusters * each; /* of a run in a block of the FAT: few */
	if (blocks > file->blocks)
		blocks = file->blocks;
	file->run.blocks += blocks;
	file->blocks -= blocks;
	file->held.cluster += clusters;
	file->held.count -= clusters;
}

enum fat_status fat_extent(struct fat *fat, struct fat_file *file, struct fat_extent *extent)
{
	struct fat_extent *run = &file->run;
	enum fat_status status;

	extent->blocks = 0;
	while (file->blocks > 0) {
		uint32_t lba;

		if (file->held.count == 0) {
			status = fat_chain_next(fat, &file->chain, &file->held);
			if (status == FAT_END) /* the size is beyond the chain */
				return FAT_DAMAGED;
			if (status != FAT_OK)
				return status;
		}
		lba = fat_cluster_lba(fat, file->held.cluster);
		if (run->blocks == 0)
			run->lba = lba;
		else if (lba != run->lba + run->blocks)
			return hand_out(file, extent);
		append(fat, file);
		if (run->blocks >= file->most && file->blocks > 0)
			return hand_out(file, extent);
	}
	status = run->blocks == 0 ? FAT_END : check_rest(fat, &file->chain);
	return status == FAT_OK ? hand_out(file, extent) : status;
}
