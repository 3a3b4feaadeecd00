#include "cache.h"

#include <string.h>

#include "../crc32.h"
#include "../text.h"

/* Where the parts of a file's responses are, from the catalogue's `base` on. */
struct places {
	uint32_t found, content, close, same;
	uint64_t end;
};

enum { FOUND, CLOSE, SAME, SAME_CLOSE };

static void put_etag(struct text *text, const struct cache *cache, const struct catalogue_file *file)
{
	text_plain(text, "ETag: \"");
	text_hex(text, cache->catalogue->serial, 8);
	text_hex(text, catalogue_tag(file), 8);
	text_plain(text, "\"\r\n");
}

static void write_headers(struct cache_headers *headers, const struct cache *cache, const struct catalogue_file *file)
{
	struct text *texts = headers->texts;

	texts[FOUND] = text_in(headers->found, sizeof(headers->found));
	texts[CLOSE] = text_in(headers->close, sizeof(headers->close));
	texts[SAME] = text_in(headers->same, sizeof(headers->same));
	texts[SAME_CLOSE] = text_in(headers->same_close, sizeof(headers->same_close));
	for (unsigned i = FOUND; i <= SAME_CLOSE; i++) {
		if (i <= CLOSE) {
			text_plain(&texts[i], "HTTP/1.1 200 OK\r\nContent-Type: ");
			text_plain(&texts[i], catalogue_type_name(file->type));
			text_plain(&texts[i], "\r\nContent-Length: ");
			text_unsigned(&texts[i], file->size);
			text_plain(&texts[i], "\r\n");
		} else {
			text_plain(&texts[i], "HTTP/1.1 304 Not Modified\r\n");
		}
		put_etag(&texts[i], cache, file);
		text_plain(&texts[i], i == CLOSE || i == SAME_CLOSE ? "Connection: close\r\n\r\n" : "\r\n");
	}
}

static uint64_t round_up(uint64_t value, uint32_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Header and content fit a segment: they are stored once more, with `Connection: close`. */
static bool is_whole_close(const struct cache_headers *headers, const struct catalogue_file *file)
{
	return headers->texts[CLOSE].length + (uint64_t)file->size <= STORE_SEGMENT;
}

/* The DMA writes whole blocks: what follows the content ends behind the last one of it, however short it is. */
#define LEAST_CLOSE \
	"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 1\r\n" LEAST_ETAG "Connection: close\r\n\r\n"
#define LEAST_ETAG "ETag: \"0123456789abcdef\"\r\n"
#define LEAST_SAME "HTTP/1.1 304 Not Modified\r\n" LEAST_ETAG "Connection: close\r\n\r\n"
_Static_assert((64 + sizeof(LEAST_CLOSE) - 1 + 63) / 64 * 64 + STORE_SAME_ROOM + sizeof(LEAST_SAME) - 1 >= FAT_BLOCK,
	"the last block of a content");

/* Place a file's responses from `begin` on, as models/http/image.py does; false: beyond `limit`. */
static bool place(struct places *places, const struct cache_headers *headers, const struct catalogue_file *file,
	uint32_t begin, uint32_t limit)
{
	const struct text *texts = headers->texts;
	uint64_t content = round_up((uint64_t)begin + texts[FOUND].length, FAT_BLOCK);
	uint64_t close = round_up(content + file->size, 64);
	uint64_t copied = is_whole_close(headers, file) ? file->size : 0;
	uint64_t same = round_up(close + texts[CLOSE].length + copied, 64);

	places->end = same + STORE_SAME_ROOM + texts[SAME_CLOSE].length;
	if (places->end > limit)
		return false;
	places->content = (uint32_t)content;
	places->found = (uint32_t)(content - texts[FOUND].length);
	places->close = (uint32_t)close;
	places->same = (uint32_t)same;
	return true;
}

static uint8_t *entry_of(const struct cache *cache, uint32_t number)
{
	const struct catalogue *catalogue = cache->catalogue;

	return catalogue->memory + catalogue->first_entry + number * STORE_ENTRY_BYTES;
}

/* A 64-bit word of an entry; its low half, which has `ready`, last. */
static void publish(uint8_t *entry, unsigned number, uint64_t value)
{
	volatile uint32_t *at = (volatile uint32_t *)(void *)(entry + 8 * number);

	at[1] = (uint32_t)(value >> 32);
	at[0] = (uint32_t)value;
}

static void unpublish(const struct cache *cache, const struct catalogue_file *file)
{
	for (unsigned k = 0; k <= file->alias; k++) {
		volatile uint32_t *at = (volatile uint32_t *)(void *)entry_of(cache, file->entry + k);

		*at &= ~(1u << STORE_READY_SHIFT);
	}
}

void cache_start(struct cache *cache, struct catalogue *catalogue, struct fat *fat, struct cache_epochs epochs)
{
	*cache = (struct cache){
		.catalogue = catalogue,
		.fat = fat,
		.epochs = epochs,
		.oldest = CACHE_NONE,
		.newest = CACHE_NONE,
		.loading = CACHE_NONE,
		.checking = CACHE_NONE,
	};
	for (uint32_t i = 0; i < catalogue->files; i++)
		catalogue->list[i].state = CACHE_ABSENT;
}

static struct catalogue_file *oldest(const struct cache *cache)
{
	return cache->oldest == CACHE_NONE ? NULL : &cache->catalogue->list[cache->oldest];
}

/*
 * Take the files whose memory is free out of the ring. Those between others leave a gap, which is used again when
 * the files before it are gone, too.
 */
static void drop_free(struct cache *cache)
{
	struct catalogue_file *list = cache->catalogue->list;
	uint32_t before = CACHE_NONE, next;

	for (uint32_t i = cache->oldest; i != CACHE_NONE; i = next) {
		next = list[i].next;
		if (list[i].state != CACHE_FREE) {
			before = i;
			continue;
		}
		list[i].state = CACHE_ABSENT;
		if (before == CACHE_NONE)
			cache->oldest = next;
		else
			list[before].next = next;
	}
	cache->newest = before;
}

bool cache_serve(struct cache *cache)
{
	bool drained = cache->epochs.drained(cache->epochs.context), waits = false, step = false;

	for (uint32_t i = cache->oldest; i != CACHE_NONE; i = cache->catalogue->list[i].next) {
		struct catalogue_file *file = &cache->catalogue->list[i];

		if (file->state == CACHE_DRAINING && drained)
			file->state = CACHE_FREE;
		if (file->state == CACHE_EVICTED && drained) {
			file->state = CACHE_DRAINING;
			step = true;
		}
		waits = waits || file->state == CACHE_EVICTED || file->state == CACHE_DRAINING;
	}
	if (step)
		cache->epochs.step(cache->epochs.context);
	drop_free(cache);
	return waits;
}

/* Free what can be: the first turn begins an epoch, the second ends one of which nothing is in flight. */
static void settle(struct cache *cache)
{
	cache_serve(cache);
	cache_serve(cache);
}

void cache_evict(struct cache *cache, struct catalogue_file *file)
{
	if (file->state != CACHE_READY)
		return;
	unpublish(cache, file);
	file->state = CACHE_EVICTED;
	cache->evictions++;
}

/* The free bytes that follow the newest file, and whether others precede the oldest. */
static bool place_in_ring(struct cache *cache, struct places *places, const struct cache_headers *headers,
	const struct catalogue_file *file, uint32_t *begin)
{
	const struct catalogue *catalogue = cache->catalogue;
	const struct catalogue_file *first = oldest(cache);
	uint32_t from = first == NULL ? catalogue->objects : catalogue->list[cache->newest].end;

	*begin = from;
	if (first == NULL || from > first->begin) {
		if (place(places, headers, file, from, catalogue->size))
			return true;
		*begin = catalogue->objects;
	}
	return first != NULL && place(places, headers, file, *begin, first->begin);
}

/* Evict the oldest files, of so many bytes together; those that drain already count. */
static void evict_oldest(struct cache *cache, uint64_t bytes)
{
	uint64_t freed = 0;

	for (uint32_t i = cache->oldest; i != CACHE_NONE && freed < bytes; i = cache->catalogue->list[i].next) {
		struct catalogue_file *file = &cache->catalogue->list[i];

		cache_evict(cache, file);
		freed += file->end - file->begin;
	}
}

/* Evict files until there is a place, or until the memory of some must drain. */
static enum store_status make_room(struct cache *cache, struct places *places, const struct cache_headers *headers,
	const struct catalogue_file *file, uint32_t *begin)
{
	uint64_t bytes = (uint64_t)file->size + STORE_HEADER_ROOM;

	if (!place(places, headers, file, cache->catalogue->objects, cache->catalogue->size))
		return STORE_NO_ROOM;
	while (!place_in_ring(cache, places, headers, file, begin)) {
		uint32_t before = cache->oldest;

		evict_oldest(cache, bytes);
		settle(cache);
		if (cache->oldest == before)
			return STORE_BUSY;
		bytes = 1; /* gaps and the ring's end may have cost some: one more file at a time */
	}
	return STORE_OK;
}

static enum store_status of_fat(enum fat_status status)
{
	return status == FAT_OK || status == FAT_END ? STORE_OK :
	       status == FAT_READ_ERROR ? STORE_READ_ERROR : STORE_DAMAGED;
}

static enum fat_status open_file(const struct cache *cache, struct fat_file *extents,
	const struct catalogue_file *file)
{
	return fat_open_at(cache->fat, extents, file->cluster, file->size);
}

/* Follow the whole chain, once. */
static enum store_status check_chain(struct cache *cache, const struct catalogue_file *file)
{
	uint32_t number = (uint32_t)(file - cache->catalogue->list);
	enum fat_status status = FAT_OK;

	if (cache->checking != number) {
		cache->checking = number;
		cache->checked = false;
		status = open_file(cache, &cache->file, file);
	}
	while (status == FAT_OK && !cache->checked)
		status = fat_extent(cache->fat, &cache->file, &cache->extent);
	if (status == FAT_PENDING)
		return STORE_PENDING;
	cache->checked = status == FAT_END || cache->checked;
	if (!cache->checked)
		cache->checking = CACHE_NONE;
	return of_fat(status);
}

enum store_status cache_begin(struct cache *cache, struct catalogue_file *file)
{
	struct cache_headers *headers = &cache->headers;
	struct places places;
	uint32_t number = (uint32_t)(file - cache->catalogue->list), begin;
	enum store_status status;

	if (file->state == CACHE_READY)
		return STORE_OK;
	if (cache->fat == NULL)
		return STORE_NO_CARD;
	/* One that was evicted keeps its memory until that has drained. */
	if (cache->loading == CACHE_NONE && file->state != CACHE_ABSENT)
		settle(cache);
	if (cache->loading != CACHE_NONE || file->state != CACHE_ABSENT)
		return STORE_BUSY;
	status = check_chain(cache, file);
	if (status != STORE_OK)
		return status;
	write_headers(headers, cache, file);
	status = make_room(cache, &places, headers, file, &begin);
	if (status == STORE_NO_ROOM)
		cache->checking = CACHE_NONE;
	if (status != STORE_OK)
		return status;
	cache->checking = CACHE_NONE;
	file->begin = begin;
	file->end = (uint32_t)places.end;
	file->next = CACHE_NONE;
	file->state = CACHE_LOADING;
	if (cache->newest != CACHE_NONE)
		cache->catalogue->list[cache->newest].next = number;
	else
		cache->oldest = number;
	cache->newest = cache->loading = number;
	cache->removed = false;
	cache->content = cache->done = cache->at = places.content;
	cache->shown = false;
	cache->extent.blocks = 0;
	open_file(cache, &cache->file, file);
	return STORE_OK;
}

enum cache_next cache_next_job(struct cache *cache, struct cache_job *job)
{
	const struct catalogue_file *file;

	if (cache->loading == CACHE_NONE || cache->removed)
		return CACHE_NO_JOB;
	file = &cache->catalogue->list[cache->loading];
	if (cache->extent.blocks == 0) {
		enum fat_status status = fat_extent(cache->fat, &cache->file, &cache->extent);

		if (status == FAT_PENDING)
			return CACHE_JOB_LATER;
		if (status == FAT_END)
			return CACHE_NO_JOB;
		/* The drive gave other blocks than before. */
		if (status != FAT_OK || cache->extent.blocks > (file->end - cache->at) / FAT_BLOCK) {
			cache->removed = true;
			return CACHE_NO_JOB;
		}
	}
	job->lba = cache->extent.lba;
	job->count = cache->extent.blocks < CACHE_JOB_BLOCKS ? cache->extent.blocks : CACHE_JOB_BLOCKS;
	job->address = cache->catalogue->base + cache->at;
	cache->extent.lba += job->count;
	cache->extent.blocks -= job->count;
	cache->at += job->count * FAT_BLOCK;
	return CACHE_JOB;
}

void cache_job_done(struct cache *cache)
{
	cache->done = cache->at;
}

bool cache_content(struct cache *cache, const struct catalogue_file *file, uint32_t *offset, uint32_t *bytes)
{
	const uint8_t *entry = entry_of(cache, file->entry);

	*bytes = file->size;
	if (file->state == CACHE_READY) {
		/* The header ends where the content's first block begins. */
		*offset = ((fat_u32(entry + 8) - cache->catalogue->base) / FAT_BLOCK + 1) * FAT_BLOCK;
		return true;
	}
	if (file->state != CACHE_LOADING || cache->removed)
		return false;
	*offset = cache->content;
	if (*bytes > cache->done - cache->content)
		*bytes = cache->done - cache->content;
	cache->shown = true;
	return true;
}

static void put_text(const struct cache *cache, uint32_t offset, const struct text *text)
{
	memcpy(cache->catalogue->memory + offset, text->start, text->length);
}

static void write_responses(struct cache *cache, const struct catalogue_file *file)
{
	uint8_t *memory = cache->catalogue->memory;
	uint32_t base = cache->catalogue->base, tail;
	struct cache_headers *headers = &cache->headers;
	struct places places;
	bool whole;

	write_headers(headers, cache, file);
	whole = is_whole_close(headers, file);
	place(&places, headers, file, file->begin, file->end);
	tail = places.content + file->size;
	/* What the last block and files before have left between the parts. */
	memset(memory + tail, 0, file->end - tail);
	put_text(cache, places.found, &headers->texts[FOUND]);
	put_text(cache, places.close, &headers->texts[CLOSE]);
	if (whole)
		memcpy(memory + places.close + headers->texts[CLOSE].length, memory + places.content, file->size);
	put_text(cache, places.same, &headers->texts[SAME]);
	put_text(cache, places.same + STORE_SAME_ROOM, &headers->texts[SAME_CLOSE]);
	for (unsigned k = 0; k <= file->alias; k++) {
		uint8_t *entry = entry_of(cache, file->entry + k);
		uint64_t first = entry[1] & 0x7f;

		first <<= STORE_PATH_LENGTH_SHIFT;
		first |= 1u << STORE_READY_SHIFT | (uint64_t)whole << STORE_WHOLE_CLOSE_SHIFT;
		first |= (uint64_t)headers->texts[FOUND].length << STORE_FOUND_HEADER_SHIFT;
		first |= (uint64_t)headers->texts[CLOSE].length << STORE_CLOSE_HEADER_SHIFT;
		first |= (uint64_t)headers->texts[SAME].length << STORE_SAME_HEADER_SHIFT;
		first |= (uint64_t)headers->texts[SAME_CLOSE].length << STORE_SAME_CLOSE_HEADER_SHIFT;
		publish(entry, 1, (base + places.found) | (uint64_t)(base + places.close) << 32);
		publish(entry, 2, file->size | (uint64_t)(base + places.same) << 32);
		publish(entry, 3, catalogue_tag(file) | (uint64_t)cache->catalogue->serial << 32);
		publish(entry, 0, first);
	}
}

_Static_assert(STORE_PATH_LENGTH_SHIFT == 8 && STORE_FOUND_SHIFT == 64 && STORE_CLOSE_SHIFT == 96 &&
	STORE_LENGTH_SHIFT == 128 && STORE_SAME_SHIFT == 160 && STORE_TAG_SHIFT == 192, "the words of an entry");

enum store_status cache_end(struct cache *cache, bool loaded)
{
	struct catalogue_file *file;

	if (cache->loading == CACHE_NONE)
		return STORE_NO_CARD;
	file = &cache->catalogue->list[cache->loading];
	cache->loading = CACHE_NONE;
	if (!loaded || cache->removed) {
		/* What was shown is evicted as others are. */
		file->state = cache->shown ? CACHE_EVICTED : CACHE_FREE;
		drop_free(cache);
		return STORE_READ_ERROR;
	}
	write_responses(cache, file);
	file->state = CACHE_READY;
	return STORE_OK;
}

void cache_remove(struct cache *cache)
{
	cache->fat = NULL;
	cache->removed = true;
	cache->checking = CACHE_NONE;
}

void cache_return(struct cache *cache, struct fat *fat)
{
	cache->fat = fat;
	cache->checking = CACHE_NONE;
}

/* The CRC-32 of what a catalogue of this volume would say. */
static uint32_t fingerprint_of(struct fat *fat, struct fat_walk *walk)
{
	uint32_t crc = crc32_of(0, &fat->serial, sizeof(fat->serial));
	enum fat_status status;

	fat_walk_start(fat, walk);
	while ((status = fat_walk_next(fat, walk)) != FAT_END) {
		size_t length = status == FAT_OK ? strlen(walk->path) : 0;
		const uint32_t parts[3] = { walk->entry.cluster, walk->entry.size, walk->entry.modified };

		if (length == 0 || length > STORE_ENTRY_BYTES - STORE_PATH_OFFSET)
			continue;
		crc = crc32_of(crc, walk->path, length);
		crc = crc32_of(crc, parts, sizeof(parts));
	}
	return crc;
}

enum store_status cache_insert(struct cache *cache, struct fat *fat, struct fat_walk *walk)
{
	if (cache->loading != CACHE_NONE)
		return STORE_BUSY;
	if (fingerprint_of(fat, walk) == cache->catalogue->fingerprint) {
		cache_return(cache, fat);
		return STORE_OK;
	}
	cache->fat = NULL;
	for (uint32_t i = 0; i < cache->catalogue->files; i++)
		cache_evict(cache, &cache->catalogue->list[i]);
	cache_serve(cache);
	return STORE_NO_CARD;
}
