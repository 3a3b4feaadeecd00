#include "catalogue.h"

#include <string.h>

#include <generated/trebuchet_store.h>

#include "../crc32.h"

#define INDEX_NAME "index.html"
#define PATH_BYTES (STORE_ENTRY_BYTES - STORE_PATH_OFFSET)
#define SLOT_BYTES 8
/* What a step does at most. */
#define STEP_BYTES 1024u
#define STEP_FILES 16u

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

unsigned catalogue_type(const char *name)
{
	const char *end;

	while (*name == '.') /* a name that begins with dots has no extension there */
		name++;
	end = strrchr(name, '.');
	for (unsigned i = 1; end != NULL && i < STORE_TYPES; i++) {
		const char *at = end + 1, *wanted = store_types[i].extension;

		while (*wanted != '\0' && lower(*at) == *wanted) {
			at++;
			wanted++;
		}
		if (*wanted == '\0' && *at == '\0')
			return i;
	}
	return 0;
}

const char *catalogue_type_name(unsigned type)
{
	return store_types[type].type;
}

uint32_t catalogue_tag(const struct catalogue_file *file)
{
	const uint32_t parts[3] = { file->cluster, file->size, file->modified };

	return crc32_of(0, parts, sizeof(parts));
}

/* Bytes of the path of the folder whose page this is, or 0. */
static size_t alias_length(const char *path, size_t length)
{
	size_t name = sizeof(INDEX_NAME) - 1;

	if (length <= name || strcmp(path + length - name, INDEX_NAME) != 0 || path[length - name - 1] != '/')
		return 0;
	return length - name;
}

static uint8_t *at_offset(const struct catalogue *catalogue, uint32_t offset)
{
	return catalogue->memory + offset;
}

static uint32_t word(const uint8_t *at)
{
	return fat_u32(at);
}

static void put_word(uint8_t *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* Take what the walk is at as file number `files`; false: there is no room. */
static bool take_file(struct catalogue *catalogue, const struct fat_walk *walk)
{
	size_t length = strlen(walk->path);
	struct catalogue_file *file = &catalogue->list[catalogue->files];
	size_t alias = alias_length(walk->path, length);

	if (length > PATH_BYTES) {
		catalogue->left_out++;
		return true;
	}
	if (catalogue->files == catalogue->room)
		return false;
	*file = (struct catalogue_file){
		.crc = crc32_of(0, walk->path, length),
		.alias_crc = crc32_of(0, walk->path, alias),
		.entry = catalogue->entries,
		.cluster = walk->entry.cluster,
		.size = walk->entry.size,
		.modified = walk->entry.modified,
		.type = (uint16_t)catalogue_type(strrchr(walk->path, '/') + 1),
		.alias = alias != 0,
	};
	catalogue->files++;
	catalogue->entries += 1 + file->alias;
	if (catalogue->largest < file->size)
		catalogue->largest = file->size;
	catalogue->fingerprint = crc32_of(catalogue->fingerprint, walk->path, length);
	catalogue->fingerprint = crc32_of(catalogue->fingerprint, &file->cluster, 3 * sizeof(uint32_t));
	return true;
}

/* Take the next file of the walk. */
static enum store_status list_file(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	enum fat_status status = fat_walk_next(fat, walk);

	if (status == FAT_PENDING)
		return STORE_PENDING;
	if (status == FAT_OK)
		return take_file(catalogue, walk) ? STORE_PENDING : STORE_NO_ROOM;
	if (status != FAT_END) {
		catalogue->faults++;
		catalogue->fault = status;
		return STORE_PENDING;
	}
	if (catalogue->files == 0 && catalogue->fault == FAT_READ_ERROR)
		return STORE_READ_ERROR;
	catalogue->buckets = catalogue->buckets_wanted != 0 ? catalogue->buckets_wanted : 1;
	catalogue->phase = CATALOGUE_PLACE;
	return STORE_PENDING;
}

/* Put an entry's pointer behind its CRC: the gateware may look meanwhile. */
static bool put_pointer(const struct catalogue *catalogue, uint32_t crc, uint32_t entry)
{
	uint32_t bucket = crc & (catalogue->buckets - 1);
	uint8_t *slot = at_offset(catalogue, catalogue->index + bucket * STORE_BUCKET_BYTES);

	for (unsigned i = 0; i < STORE_BUCKET_BYTES / SLOT_BYTES; i++, slot += SLOT_BYTES) {
		if (word(slot + 4) != 0)
			continue;
		put_word(slot, crc);
		put_word(slot + 4, catalogue->base + catalogue->first_entry + entry * STORE_ENTRY_BYTES);
		return true;
	}
	return false;
}

/* Place index and entries for this number of buckets; false: that is more than there is memory. */
static bool place(struct catalogue *catalogue, uint32_t buckets)
{
	uint64_t end;

	catalogue->buckets = buckets;
	catalogue->index = STORE_INDEX_OFFSET;
	end = catalogue->index + (uint64_t)buckets * STORE_BUCKET_BYTES;
	end = (end + STORE_ENTRY_BYTES - 1) / STORE_ENTRY_BYTES * STORE_ENTRY_BYTES;
	if (end + (uint64_t)catalogue->entries * STORE_ENTRY_BYTES > catalogue->size)
		return false;
	catalogue->first_entry = (uint32_t)end;
	catalogue->objects = catalogue->first_entry + catalogue->entries * STORE_ENTRY_BYTES;
	return true;
}

/* Clear the next bytes of index and entries. */
static void clear(struct catalogue *catalogue)
{
	uint32_t left = catalogue->objects - catalogue->at;
	uint32_t count = left < STEP_BYTES ? left : STEP_BYTES;

	memset(at_offset(catalogue, catalogue->at), 0, count);
	catalogue->at += count;
	if (count == left) {
		catalogue->phase = CATALOGUE_FILL;
		catalogue->at = 0;
	}
}

/* Fill the index with the next files; false: more paths fall into a bucket than it has slots. */
static bool fill(struct catalogue *catalogue)
{
	for (unsigned k = 0; k < STEP_FILES && catalogue->at < catalogue->files; k++, catalogue->at++) {
		const struct catalogue_file *file = &catalogue->list[catalogue->at];

		if (!put_pointer(catalogue, file->crc, file->entry) ||
		    (file->alias && !put_pointer(catalogue, file->alias_crc, file->entry + 1)))
			return false;
	}
	return true;
}

/* Begin with an index of at least `buckets`: as few as are enough, half full at most. */
static enum store_status place_index(struct catalogue *catalogue, uint32_t buckets)
{
	uint32_t slots = STORE_BUCKET_BYTES / SLOT_BYTES;
	bool chosen = catalogue->buckets_wanted != 0;

	for (; place(catalogue, buckets); buckets *= 2) {
		if (catalogue->entries <= (uint64_t)buckets * slots / 2 || chosen) {
			catalogue->phase = CATALOGUE_CLEAR;
			catalogue->at = catalogue->index;
			return STORE_PENDING;
		}
	}
	return STORE_NO_ROOM;
}

static enum store_status fill_index(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	if (!fill(catalogue)) {
		if (catalogue->buckets_wanted != 0 || catalogue->buckets > 64 * catalogue->entries + 64)
			return STORE_NO_ROOM;
		return place_index(catalogue, 2 * catalogue->buckets);
	}
	if (catalogue->at == catalogue->files) {
		catalogue->phase = CATALOGUE_PATHS;
		catalogue->at = 0;
		fat_walk_start(fat, walk);
	}
	return STORE_PENDING;
}

static void put_path(const struct catalogue *catalogue, uint32_t entry, const char *path, size_t length)
{
	uint8_t *at = at_offset(catalogue, catalogue->first_entry + entry * STORE_ENTRY_BYTES);

	memcpy(at + STORE_PATH_OFFSET, path, length);
	put_word(at, (uint32_t)length << STORE_PATH_LENGTH_SHIFT);
}

/* The next path of a second walk; what is not as it was before is a card that was changed. */
static enum store_status write_path(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	enum fat_status status = fat_walk_next(fat, walk);
	const struct catalogue_file *file = &catalogue->list[catalogue->at];
	size_t length = status == FAT_OK ? strlen(walk->path) : PATH_BYTES + 1;

	if (status == FAT_END)
		return catalogue->at == catalogue->files ? STORE_OK : STORE_READ_ERROR;
	if (length > PATH_BYTES)
		return STORE_PENDING;
	if (catalogue->at == catalogue->files || file->crc != crc32_of(0, walk->path, length))
		return STORE_READ_ERROR;
	put_path(catalogue, file->entry, walk->path, length);
	if (file->alias)
		put_path(catalogue, file->entry + 1, walk->path, alias_length(walk->path, length));
	catalogue->at++;
	return STORE_PENDING;
}

/* Nothing is found. */
static void make_empty(struct catalogue *catalogue)
{
	catalogue->files = catalogue->entries = 0;
	place(catalogue, 1);
	memset(at_offset(catalogue, catalogue->index), 0, catalogue->objects - catalogue->index);
}

enum store_status catalogue_start(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	catalogue->phase = CATALOGUE_DONE;
	if (catalogue->size < STORE_INDEX_OFFSET + STORE_BUCKET_BYTES + STORE_ENTRY_BYTES)
		return STORE_NO_ROOM;
	memcpy(catalogue->memory, store_prepared, sizeof(store_prepared));
	memset(catalogue->memory + sizeof(store_prepared), 0, STORE_INDEX_OFFSET - sizeof(store_prepared));
	catalogue->files = catalogue->entries = catalogue->left_out = catalogue->faults = 0;
	catalogue->largest = 0;
	catalogue->fault = FAT_OK;
	catalogue->serial = fat->serial;
	catalogue->fingerprint = crc32_of(0, &fat->serial, sizeof(fat->serial));
	catalogue->phase = CATALOGUE_LIST;
	fat_walk_start(fat, walk);
	return STORE_PENDING;
}

enum store_status catalogue_step(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	enum store_status status = STORE_PENDING;

	switch (catalogue->phase) {
	case CATALOGUE_LIST:
		status = list_file(catalogue, fat, walk);
		break;
	case CATALOGUE_PLACE:
		status = place_index(catalogue, catalogue->buckets);
		break;
	case CATALOGUE_CLEAR:
		clear(catalogue);
		break;
	case CATALOGUE_FILL:
		status = fill_index(catalogue, fat, walk);
		break;
	case CATALOGUE_PATHS:
		status = write_path(catalogue, fat, walk);
		break;
	case CATALOGUE_DONE:
		return catalogue->files != 0 ? STORE_OK : STORE_NO_ROOM;
	}
	if (status != STORE_PENDING) {
		catalogue->phase = CATALOGUE_DONE;
		if (status != STORE_OK)
			make_empty(catalogue);
	}
	return status;
}

enum store_status catalogue_build(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk)
{
	enum store_status status = catalogue_start(catalogue, fat, walk);

	while (status == STORE_PENDING)
		status = catalogue_step(catalogue, fat, walk);
	return status;
}

/* The file that has an entry; files are in the order of theirs. */
static struct catalogue_file *file_of(const struct catalogue *catalogue, uint32_t entry)
{
	uint32_t low = 0, high = catalogue->files;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (catalogue->list[middle].entry <= entry)
			low = middle;
		else
			high = middle;
	}
	return &catalogue->list[low];
}

struct catalogue_file *catalogue_find(const struct catalogue *catalogue, const char *path, size_t length)
{
	uint32_t crc = crc32_of(0, path, length);
	uint32_t bucket = crc & (catalogue->buckets - 1);
	const uint8_t *slot = at_offset(catalogue, catalogue->index + bucket * STORE_BUCKET_BYTES);

	for (unsigned i = 0; i < STORE_BUCKET_BYTES / SLOT_BYTES; i++, slot += SLOT_BYTES) {
		uint32_t offset = word(slot + 4) - catalogue->base;
		const uint8_t *entry = at_offset(catalogue, offset);

		if (word(slot) != crc || word(slot + 4) == 0)
			continue;
		if (((word(entry) >> STORE_PATH_LENGTH_SHIFT) & 0x7f) == length &&
		    memcmp(entry + STORE_PATH_OFFSET, path, length) == 0)
			return file_of(catalogue, (offset - catalogue->first_entry) / STORE_ENTRY_BYTES);
	}
	return NULL;
}
