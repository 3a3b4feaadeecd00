// firmware: store/cache store/catalogue store/fat store/fat_folder crc32 text
#include "drive.h"

#include "store/cache.h"

#include <generated/trebuchet_store.h>

#define MEMORY 40000u
#define BASE 0x1000000u
#define FILES 40u

const char *const fuzz_dictionary[] = { DRIVE_WORDS, "INDEX   HTM", "index.html", NULL };

static uint64_t words[MEMORY / 8];
static struct catalogue_file list[FILES];
static struct catalogue catalogue;
static struct cache cache;
static struct fat fat;
static struct fat_walk walk;
static bool in_flight;
static uint32_t chance;

/* Choices depend on the input only. */
static uint32_t choose(uint32_t most)
{
	chance = chance * 1664525u + 1013904223u;
	return (chance >> 16) % most;
}

static bool drained(void *context)
{
	(void)context;
	return !in_flight;
}

static void step(void *context)
{
	(void)context;
	require(!in_flight);
}

static bool is_live(const struct catalogue_file *file)
{
	return file->state != CACHE_ABSENT && file->state != CACHE_FREE;
}

/* Files in memory are apart from each other, and an entry is ready if its file is. */
static void check_ring(void)
{
	for (uint32_t i = 0; i < catalogue.files; i++) {
		const struct catalogue_file *file = &list[i];

		for (unsigned k = 0; k <= file->alias; k++) {
			const uint8_t *entry = catalogue.memory + catalogue.first_entry +
					       (file->entry + k) * STORE_ENTRY_BYTES;

			require((entry[0] & 1) == (file->state == CACHE_READY));
		}
		if (!is_live(file))
			continue;
		require(file->begin >= catalogue.objects && file->begin < file->end && file->end <= MEMORY);
		for (uint32_t k = 0; k < i; k++)
			require(!is_live(&list[k]) || list[k].end <= file->begin || file->end <= list[k].begin);
	}
}

/* Write where the DMA would, which is nobody else's. */
static void transfer(const struct cache_job *job)
{
	uint32_t at = job->address - BASE, bytes = job->count * FAT_BLOCK;
	const struct catalogue_file *file = &list[cache.loading];

	require(job->count > 0 && job->count <= CACHE_JOB_BLOCKS && job->lba < BLOCKS);
	require(job->count <= BLOCKS - job->lba);
	require(at >= file->begin && at < file->end && bytes <= file->end - at);
	memset(catalogue.memory + at, 0xaa, bytes);
}

/* What may be sent of the file is what was loaded. */
static void show(const struct catalogue_file *file, uint32_t blocks)
{
	uint32_t offset, bytes, loaded = blocks * FAT_BLOCK;

	require(cache_content(&cache, file, &offset, &bytes));
	require(bytes == (loaded < file->size ? loaded : file->size));
	require(offset > file->begin && offset + bytes < file->end);
	for (uint32_t i = 0; i < bytes; i++)
		require(catalogue.memory[offset + i] == 0xaa);
}

static void load(struct catalogue_file *file)
{
	struct cache_job job;
	enum store_status status;
	enum cache_next next;
	uint32_t blocks = 0;

	do
		status = cache_begin(&cache, file);
	while (slow && status == STORE_PENDING);

	require(status <= STORE_BUSY);
	require(status != STORE_BUSY || in_flight || cache.loading != CACHE_NONE);
	if (status != STORE_OK || cache.loading == CACHE_NONE)
		return;
	check_ring();
	while ((next = cache_next_job(&cache, &job)) != CACHE_NO_JOB) {
		if (slow && next == CACHE_JOB_LATER)
			continue;
		transfer(&job);
		blocks += job.count;
		cache_job_done(&cache);
		if (choose(4) == 0)
			show(file, blocks);
	}
	require(blocks == file->size / FAT_BLOCK + (file->size % FAT_BLOCK != 0));
	if (choose(8) == 0)
		cache_remove(&cache);
	status = cache_end(&cache, choose(5) != 0);
	require((status == STORE_OK) == (file->state == CACHE_READY));
	if (status == STORE_OK)
		show(file, blocks);
	if (cache.fat == NULL) {
		bool was = slow;

		set_slow(false);
		if (choose(2))
			cache_return(&cache, &fat);
		else
			require(cache_insert(&cache, &fat, &walk) == STORE_OK);
		set_slow(was);
	}
}

void fuzz_one(const char *data, size_t length)
{
	const struct cache_epochs epochs = { .drained = drained, .step = step };

	chance = (uint32_t)length;
	for (size_t i = 0; i < length; i++)
		chance = chance * 31 + (uint8_t)data[i];
	patch((const uint8_t *)data, length);
	set_slow(false);
	if (fat_mount(&fat, read_block, NULL, BLOCKS) != FAT_OK)
		return;
	catalogue = (struct catalogue){ .memory = (uint8_t *)words, .base = BASE, .size = MEMORY, .list = list,
		.room = FILES, .buckets_wanted = choose(2) * 16 };
	in_flight = false;
	set_slow(choose(2));
	catalogue_build(&catalogue, &fat, &walk);
	require(catalogue.files <= FILES && catalogue.entries <= 2 * catalogue.files);
	require(catalogue.objects <= MEMORY);
	cache_start(&cache, &catalogue, &fat, epochs);
	for (unsigned i = 0; i < 3 * catalogue.files; i++) {
		struct catalogue_file *file = &list[choose(catalogue.files)];

		in_flight = choose(3) == 0;
		if (choose(6) == 0)
			cache_evict(&cache, file);
		else
			load(file);
		check_ring();
	}
}
