/*
 * FAT16 and FAT32, read only, with long names: where files lie on a drive (extents), not their contents.
 * The volume begins at block 0, or is the first FAT partition of an MBR. Blocks are 512 bytes.
 *
 * Nothing on the drive is trusted: all arithmetic is checked, a chain that ends early, leaves the volume
 * or loops is FAT_DAMAGED, no loop is without a bound, and there is no recursion. Of two FATs that differ
 * the first (or the active one of FAT32) is right; a second is read where the first has a bad block.
 *
 * Nothing waits: a block that the drive does not give at once is FAT_PENDING, and so is whatever needs more
 * steps than `budget` has left. The same call again goes on from there, if `read` keeps the last five blocks,
 * those that cannot be read included.
 */
#ifndef TREBUCHET_STORE_FAT_H
#define TREBUCHET_STORE_FAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAT_BLOCK 512
/* Bytes of a name in UTF-8: 255 UTF-16 units at most, and a NUL. */
#define FAT_NAME_ROOM (255 * 3 + 1)
/* Levels of folders below the root. */
#define FAT_DEPTH 16
/* Bytes of a path with its NUL. */
#define FAT_PATH_ROOM 1024
/* Entries of a folder, those that are free included; the format allows no more. */
#define FAT_FOLDER_ENTRIES 65536
/* Entries of folders that a walk reads, those that are free included. */
#define FAT_WALK_ENTRIES 1000000

enum fat_status {
	FAT_OK = 0,
	FAT_END, /* no further entry or extent */
	FAT_READ_ERROR, /* the drive did not give a block */
	FAT_NO_VOLUME, /* neither FAT16 nor FAT32, or beyond the drive's end */
	FAT_DAMAGED, /* a chain or an entry is wrong, or there are too many */
	FAT_TOO_DEEP, /* more than FAT_DEPTH levels, or a longer path than FAT_PATH_ROOM */
	FAT_PENDING, /* call again */
};

enum fat_block {
	FAT_BLOCK_FAILED = 0,
	FAT_BLOCK_READ = 1,
	FAT_BLOCK_LATER,
};

/* Read block `lba` of the drive into `block`, at a multiple of 4, or ask for it and have it later. */
typedef enum fat_block (*fat_read)(void *context, uint32_t lba, uint8_t *block);

/* A long name as its slots come, the last part first; `next` is the number of the slot that must follow. */
struct fat_long_name {
	uint16_t units[20 * 13];
	unsigned slots, next;
	uint8_t checksum;
	bool whole;
};

/* Without a limit to the steps of a call. */
#define FAT_UNLIMITED 0xffffffffu

struct fat {
	fat_read read;
	void *context;
	uint32_t fat_lba; /* of the active FAT */
	uint32_t mirror_lba; /* of another FAT with the same content, or 0 */
	uint32_t root_lba, root_blocks; /* FAT16: the root folder */
	uint32_t root_cluster; /* FAT32: the root folder */
	uint32_t data_lba; /* of cluster 2 */
	uint32_t clusters; /* numbers are 2 to clusters + 1 */
	uint32_t cluster_blocks;
	uint32_t serial; /* of the volume */
	bool wide; /* FAT32 */
	uint32_t budget; /* slots, runs and eighths of their clusters until FAT_PENDING; fat_mount sets FAT_UNLIMITED */
	struct fat_long_name name; /* of the folder that is `within` an entry */
	bool cached; /* `table` has block `table_lba` */
	uint32_t table_lba;
	_Alignas(4) uint8_t table[FAT_BLOCK];
};

/* Consecutive clusters. */
struct fat_run {
	uint32_t cluster, count;
};

/*
 * A position in a chain of clusters, which is followed run by run. Where a run ends depends on its first cluster
 * alone, so that a chain loops exactly if the first cluster of a run comes again; Brent's algorithm finds that.
 */
struct fat_chain {
	uint32_t cluster; /* the next one; 0: not yet read from its predecessor */
	uint32_t previous;
	uint32_t mark, steps, power;
};

struct fat_folder {
	struct fat_chain chain;
	uint32_t first; /* cluster; 0: the root folder of FAT16 */
	uint32_t lba, blocks; /* blocks that are left of the current run */
	uint32_t entries; /* seen so far */
	bool ended; /* nothing follows */
	bool loaded; /* `block` is that of `lba` */
	bool within; /* an entry: goes on with fat.name; one folder of a volume at a time */
	_Alignas(4) uint8_t block[FAT_BLOCK];
};

struct fat_entry {
	char name[FAT_NAME_ROOM];
	bool folder;
	uint32_t cluster; /* the first; 0: none */
	uint32_t size; /* bytes of a file */
	uint32_t modified; /* date << 16 | time, as FAT has them */
};

struct fat_extent {
	uint32_t lba, blocks;
};

/* The extents of a file that are still to come. */
struct fat_file {
	struct fat_chain chain;
	uint32_t blocks; /* left */
	struct fat_run held; /* clusters of the chain behind those of `run` */
	uint32_t most; /* an extent is handed out when it has so many blocks, though more may follow */
	struct fat_extent run; /* the extent as far as it is known */
};

/* A walk over all files of a volume; `path` begins with a slash. */
struct fat_walk {
	struct fat_folder folders[FAT_DEPTH + 1];
	size_t lengths[FAT_DEPTH + 1]; /* of the path of each */
	unsigned depth;
	uint32_t entries;
	char path[FAT_PATH_ROOM];
	struct fat_entry entry;
};

/* Find the volume of a drive with `blocks` blocks. */
enum fat_status fat_mount(struct fat *fat, fat_read read, void *context, uint32_t blocks);

/* Begin to list the root folder, or the folder of an entry. */
void fat_root(const struct fat *fat, struct fat_folder *folder);
enum fat_status fat_enter(const struct fat *fat, struct fat_folder *folder, const struct fat_entry *entry);

/* The next file or folder; FAT_END when there is none, and after any other status. Labels, "." and ".." are left out. */
enum fat_status fat_next(struct fat *fat, struct fat_folder *folder, struct fat_entry *entry);

/* Begin with a file's extents; the last block of the last one may be used in part. */
enum fat_status fat_open(const struct fat *fat, struct fat_file *file, const struct fat_entry *entry);
/* The same of a file of which only this is known: an entry is large, and a stack has little room. */
enum fat_status fat_open_at(const struct fat *fat, struct fat_file *file, uint32_t cluster, uint32_t size);

/* The next extent, as long as it can be; FAT_END after the last. Extents are within the drive. */
enum fat_status fat_extent(struct fat *fat, struct fat_file *file, struct fat_extent *extent);

/*
 * Walk over all files: `walk->path` and `walk->entry` are those of the next one. Any status but FAT_OK, FAT_END and
 * FAT_PENDING is that of a folder, `walk->path`, which is left; the walk may go on, and comes to its end.
 */
void fat_walk_start(const struct fat *fat, struct fat_walk *walk);
enum fat_status fat_walk_next(struct fat *fat, struct fat_walk *walk);

/*
 * For fat_folder.c: the next run of a chain, or FAT_END: clusters that follow one another, as far as one block of
 * the FAT tells. All of them are within the volume.
 */
void fat_chain_start(struct fat_chain *chain, uint32_t cluster);
enum fat_status fat_chain_next(struct fat *fat, struct fat_chain *chain, struct fat_run *run);
/* Some steps less of the budget; false: it is spent. */
bool fat_spend(struct fat *fat, uint32_t steps);
bool fat_is_cluster(const struct fat *fat, uint32_t cluster);
uint32_t fat_cluster_lba(const struct fat *fat, uint32_t cluster);

static inline uint32_t fat_u16(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t fat_u32(const uint8_t *at)
{
	return fat_u16(at) | fat_u16(at + 2) << 16;
}

#endif
