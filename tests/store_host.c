/* Lists the volume in a file, for tests of firmware/store: `store_host IMAGE [BAD_BLOCK…]`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fat.h"

static FILE *image;
static const char *const *bad_blocks;

static enum fat_block read_block(void *context, uint32_t lba, uint8_t *block)
{
	(void)context;
	for (const char *const *bad = bad_blocks; *bad != NULL; bad++)
		if (strtoul(*bad, NULL, 10) == lba)
			return false;
	return fseek(image, (long)lba * FAT_BLOCK, SEEK_SET) == 0 &&
	       fread(block, 1, FAT_BLOCK, image) == FAT_BLOCK;
}

/* A line of a file: status of its extents, size, time, extents, path. */
static void print_file(struct fat *fat, const struct fat_walk *walk)
{
	struct fat_file file;
	struct fat_extent extent;
	enum fat_status status = fat_open(fat, &file, &walk->entry);

	printf("file\t%u\t%u\t", walk->entry.size, walk->entry.modified);
	while (status == FAT_OK) {
		status = fat_extent(fat, &file, &extent);
		if (status == FAT_OK)
			printf("%u:%u,", extent.lba, extent.blocks);
	}
	printf("\t%d\t%s\n", status, walk->path);
}

int main(int argc, char **argv)
{
	static struct fat fat;
	static struct fat_walk walk;
	enum fat_status status;

	image = argc > 1 ? fopen(argv[1], "rb") : NULL;
	if (image == NULL)
		return 2;
	bad_blocks = (const char *const *)argv + 2;
	fseek(image, 0, SEEK_END);
	status = fat_mount(&fat, read_block, NULL, (uint32_t)(ftell(image) / FAT_BLOCK));
	printf("volume\t%d\t%d\t%u\n", status, fat.wide ? 32 : 16, fat.clusters);
	if (status != FAT_OK)
		return 0;
	fat_walk_start(&fat, &walk);
	while ((status = fat_walk_next(&fat, &walk)) != FAT_END) {
		if (status == FAT_OK)
			print_file(&fat, &walk);
		else
			printf("folder\t%d\t%s\n", status, walk.path);
	}
	return 0;
}
