/*
 * Catalogue and cache of firmware/store, for tests: reads commands from standard input, a line each, and answers
 * with a line. The DMA copies from the image at once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/cache.h"

#define MOST_FILES 4000u

static FILE *card;
static long bad_block = -1;
static struct fat fat;
static struct fat_walk walk;
static struct catalogue_file list[MOST_FILES];
static struct catalogue catalogue = { .list = list, .room = MOST_FILES };
static struct cache cache;
static bool in_flight;
static unsigned epoch;

static enum fat_block read_block(void *context, uint32_t lba, uint8_t *block)
{
	(void)context;
	return card != NULL && lba != bad_block && fseek(card, (long)lba * FAT_BLOCK, SEEK_SET) == 0 &&
	       fread(block, 1, FAT_BLOCK, card) == FAT_BLOCK;
}

static bool drained(void *context)
{
	(void)context;
	return !in_flight;
}

static void step(void *context)
{
	(void)context;
	if (in_flight)
		abort();
	epoch++;
}

static enum fat_status mount(const char *path)
{
	card = fopen(path, "rb");
	if (card == NULL)
		exit(2);
	fseek(card, 0, SEEK_END);
	return fat_mount(&fat, read_block, NULL, (uint32_t)(ftell(card) / FAT_BLOCK));
}

static void build(void)
{
	enum store_status status = catalogue_build(&catalogue, &fat, &walk);
	const struct cache_epochs epochs = { .drained = drained, .step = step };

	cache_start(&cache, &catalogue, &fat, epochs);
	printf("%d %u %u %u %u %u %u %u %u\n", status, catalogue.files, catalogue.entries, catalogue.buckets,
		catalogue.index, catalogue.objects, catalogue.left_out, catalogue.faults, catalogue.fault);
}

static bool copy(const struct cache_job *job)
{
	uint8_t *to = catalogue.memory + (job->address - catalogue.base);

	if (job->address < catalogue.base + catalogue.objects ||
	    (uint64_t)job->address + (uint64_t)job->count * FAT_BLOCK > (uint64_t)catalogue.base + catalogue.size)
		abort();
	for (uint32_t i = 0; i < job->count; i++)
		if (!read_block(NULL, job->lba + i, to + i * FAT_BLOCK))
			return false;
	return true;
}

/* Jobs until there are no more, or `most` of them. */
static bool run(unsigned most)
{
	struct cache_job job;
	bool good = true;

	while (most-- > 0 && cache_next_job(&cache, &job)) {
		printf("%u:%u:%u,", job.lba, job.count, job.address);
		good = good && copy(&job);
	}
	return good;
}

static void load(struct catalogue_file *file)
{
	enum store_status status = cache_begin(&cache, file);

	if (status == STORE_OK && cache.loading != CACHE_NONE) {
		bool good = run(~0u);

		status = cache_end(&cache, good);
	}
	printf(" %d %d\n", status, file->state);
}

static void print_files(void)
{
	for (uint32_t i = 0; i < catalogue.files; i++)
		printf("%u %u %u %08x%08x %u %u %u,", list[i].entry, list[i].alias, list[i].size, catalogue.serial,
			catalogue_tag(&list[i]), list[i].state, list[i].begin, list[i].end);
	printf("\n");
}

static void dump(const char *path)
{
	FILE *out = fopen(path, "wb");

	if (out == NULL || fwrite(catalogue.memory, 1, catalogue.size, out) != catalogue.size)
		exit(2);
	fclose(out);
	printf("\n");
}

static void obey(const char *name, char *rest)
{
	size_t length = strlen(rest);
	struct catalogue_file *file = catalogue.files > 0 ? catalogue_find(&catalogue, rest, length) : NULL;

	if (strcmp(name, "memory") == 0) {
		sscanf(rest, "%u %u %u", &catalogue.base, &catalogue.size, &catalogue.buckets_wanted);
		free(catalogue.memory);
		catalogue.memory = calloc(1, catalogue.size);
		printf("\n");
	} else if (strcmp(name, "mount") == 0) {
		printf("%d\n", mount(rest));
	} else if (strcmp(name, "build") == 0) {
		build();
	} else if (strcmp(name, "files") == 0) {
		print_files();
	} else if (strcmp(name, "load") == 0 && file != NULL) {
		load(file);
	} else if (strcmp(name, "begin") == 0 && file != NULL) {
		printf("%d\n", cache_begin(&cache, file));
	} else if (strcmp(name, "jobs") == 0) {
		printf("%d\n", run((unsigned)atoi(rest)));
	} else if (strcmp(name, "end") == 0) {
		printf("%d\n", cache_end(&cache, rest[0] == '1'));
	} else if (strcmp(name, "evict") == 0 && file != NULL) {
		cache_evict(&cache, file);
		printf("\n");
	} else if (strcmp(name, "flight") == 0) {
		in_flight = rest[0] == '1';
		printf("\n");
	} else if (strcmp(name, "serve") == 0) {
		bool waits = cache_serve(&cache);

		printf("%d %u\n", waits, epoch);
	} else if (strcmp(name, "remove") == 0) {
		fclose(card);
		card = NULL;
		cache_remove(&cache);
		printf("\n");
	} else if (strcmp(name, "insert") == 0) {
		enum fat_status status = mount(rest);

		printf("%d\n", status == FAT_OK ? (int)cache_insert(&cache, &fat, &walk) : -(int)status);
	} else if (strcmp(name, "bad") == 0) {
		bad_block = atol(rest);
		printf("\n");
	} else if (strcmp(name, "type") == 0) {
		printf("%u\n", catalogue_type(rest));
	} else if (strcmp(name, "dump") == 0) {
		dump(rest);
	} else {
		printf("none\n");
	}
}

int main(void)
{
	static char line[4096];

	while (fgets(line, sizeof(line), stdin) != NULL) {
		char *rest = line + strcspn(line, " \n");

		line[strcspn(line, "\n")] = '\0';
		if (*rest != '\0')
			*rest++ = '\0';
		obey(line, rest);
		fflush(stdout);
	}
	free(catalogue.memory);
	return 0;
}
