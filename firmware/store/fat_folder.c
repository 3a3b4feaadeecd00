#include "fat.h"

#include <string.h>

#define ENTRY_BYTES 32
#define DELETED 0xe5
#define ATTRIBUTE_LABEL 0x08
#define ATTRIBUTE_FOLDER 0x10
#define ATTRIBUTE_LONG 0x0f
#define LONG_SLOTS 20 /* as those of fat_long_name */
#define SLOT_UNITS 13
#define LONG_UNITS 255

void fat_root(const struct fat *fat, struct fat_folder *folder)
{
	memset(folder, 0, sizeof(*folder));
	folder->first = fat->root_cluster;
	folder->lba = fat->root_lba;
	folder->blocks = fat->root_blocks;
	fat_chain_start(&folder->chain, fat->root_cluster);
}

enum fat_status fat_enter(const struct fat *fat, struct fat_folder *folder, const struct fat_entry *entry)
{
	if (!entry->folder || !fat_is_cluster(fat, entry->cluster))
		return FAT_DAMAGED;
	memset(folder, 0, sizeof(*folder));
	folder->first = entry->cluster;
	fat_chain_start(&folder->chain, entry->cluster);
	return FAT_OK;
}

/* The next 32 bytes of a folder. */
static enum fat_status next_slot(struct fat *fat, struct fat_folder *folder, const uint8_t **slot)
{
	uint32_t index = folder->entries % (FAT_BLOCK / ENTRY_BYTES);

	if (index == 0 && folder->loaded) {
		folder->loaded = false;
		folder->lba++;
		folder->blocks--;
	}
	if (folder->blocks == 0) {
		struct fat_run run;
		enum fat_status status;

		if (folder->first == 0)
			return FAT_END;
		status = fat_chain_next(fat, &folder->chain, &run);
		if (status != FAT_OK)
			return status;
		folder->lba = fat_cluster_lba(fat, run.cluster);
		folder->blocks = run.count * fat->cluster_blocks;
	}
	if (folder->entries >= FAT_FOLDER_ENTRIES)
		return FAT_DAMAGED;
	if (!fat_spend(fat, 1))
		return FAT_PENDING;
	if (!folder->loaded) {
		enum fat_block got = fat->read(fat->context, folder->lba, folder->block);

		if (got != FAT_BLOCK_READ)
			return got == FAT_BLOCK_LATER ? FAT_PENDING : FAT_READ_ERROR;
		folder->loaded = true;
	}
	folder->entries++;
	*slot = folder->block + index * ENTRY_BYTES;
	return FAT_OK;
}

/* Take a slot of a long name; one that does not continue what came before makes it unusable. */
static void take_slot(struct fat_long_name *name, const uint8_t *slot)
{
	static const uint8_t places[SLOT_UNITS] = { 1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30 };
	unsigned number = slot[0] & 0x3f;

	if (slot[0] & 0x40) {
		name->whole = false;
		name->slots = number <= LONG_SLOTS ? number : 0;
		name->next = name->slots;
		name->checksum = slot[13];
	}
	if (number == 0 || number != name->next || slot[13] != name->checksum) {
		name->next = name->slots = 0;
		name->whole = false;
		return;
	}
	name->next--;
	for (unsigned i = 0; i < SLOT_UNITS; i++)
		name->units[name->next * SLOT_UNITS + i] = (uint16_t)fat_u16(slot + places[i]);
	name->whole = name->next == 0;
}

static uint8_t checksum(const uint8_t *short_name)
{
	uint8_t sum = 0;

	for (unsigned i = 0; i < 11; i++)
		sum = (uint8_t)((sum << 7 | sum >> 1) + short_name[i]);
	return sum;
}

/* Append a code point as UTF-8. `at` stays so far below FAT_NAME_ROOM, as a unit makes 3 bytes at most. */
static size_t put_utf8(char *at, uint32_t code)
{
	if (code < 0x80) {
		at[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		at[0] = (char)(0xc0 | code >> 6);
		at[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		at[0] = (char)(0xe0 | code >> 12);
		at[1] = (char)(0x80 | (code >> 6 & 0x3f));
		at[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	at[0] = (char)(0xf0 | code >> 18);
	at[1] = (char)(0x80 | (code >> 12 & 0x3f));
	at[2] = (char)(0x80 | (code >> 6 & 0x3f));
	at[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* UTF-16 to UTF-8; false for what no name may have: half a pair, a control character, a slash. */
static bool put_long(char *name, const struct fat_long_name *source)
{
	unsigned count = 0;
	size_t length = 0;

	while (count < source->slots * SLOT_UNITS && source->units[count] != 0)
		count++;
	if (count == 0 || count > LONG_UNITS)
		return false;
	for (unsigned i = 0; i < count; i++) {
		uint32_t code = source->units[i];

		if (code >= 0xd800 && code < 0xdc00 && i + 1 < count && source->units[i + 1] >= 0xdc00 &&
		    source->units[i + 1] < 0xe000)
			code = 0x10000 + ((code - 0xd800) << 10) + (source->units[++i] - 0xdc00u);
		else if (code >= 0xd800 && code < 0xe000)
			return false;
		if (code < 0x20 || code == 0x7f || code == '/' || code == '\\')
			return false;
		length += put_utf8(name + length, code);
	}
	name[length] = '\0';
	return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* 8.3 with the case that Windows NT notes. Octets of a code page, which is unknown, become '_'. */
static void put_short(char *name, const uint8_t *slot)
{
	size_t length = 0;

	for (unsigned i = 0; i < 11; i++) {
		uint8_t octet = slot[i];
		bool lower = slot[12] & (i < 8 ? 0x08 : 0x10);

		if (octet == ' ')
			continue;
		if (i >= 8 && (length == 0 || memchr(name, '.', length) == NULL))
			name[length++] = '.';
		if (octet <= ' ' || octet >= 0x7f || strchr("\"*+,./:;<=>?[\\]|", octet) != NULL)
			octet = '_';
		if (lower && octet >= 'A' && octet <= 'Z')
			octet |= 0x20;
		name[length++] = (char)octet;
	}
	name[length] = '\0';
}

/* Forget what came of a long name: the entry that it belongs to is not there. */
static void drop(struct fat_long_name *name)
{
	name->whole = false;
	name->next = 0;
}

static enum fat_status find_next(struct fat *fat, struct fat_folder *folder, struct fat_entry *entry)
{
	struct fat_long_name *name = &fat->name;
	const uint8_t *slot;
	enum fat_status status;

	if (!folder->within)
		*name = (struct fat_long_name){ .whole = false };
	while ((status = next_slot(fat, folder, &slot)) == FAT_OK) {
		uint8_t attributes = slot[11];

		if (slot[0] == 0)
			return FAT_END;
		if (slot[0] != DELETED && (attributes & 0x3f) == ATTRIBUTE_LONG) {
			take_slot(name, slot);
			continue;
		}
		if (slot[0] == DELETED || attributes & ATTRIBUTE_LABEL || slot[0] == '.') {
			drop(name);
			continue;
		}
		if (!name->whole || name->checksum != checksum(slot) || !put_long(entry->name, name))
			put_short(entry->name, slot);
		entry->folder = attributes & ATTRIBUTE_FOLDER;
		entry->cluster = fat_u16(slot + 26) | (fat->wide ? fat_u16(slot + 20) << 16 : 0);
		entry->size = entry->folder ? 0 : fat_u32(slot + 28);
		entry->modified = fat_u16(slot + 24) << 16 | fat_u16(slot + 22);
		if (entry->name[0] == '\0') { /* a name of spaces */
			drop(name);
			continue;
		}
		return FAT_OK;
	}
	return status;
}

enum fat_status fat_next(struct fat *fat, struct fat_folder *folder, struct fat_entry *entry)
{
	enum fat_status status = folder->ended ? FAT_END : find_next(fat, folder, entry);

	folder->within = status == FAT_PENDING;
	folder->ended = status != FAT_OK && status != FAT_PENDING;
	return status;
}

void fat_walk_start(const struct fat *fat, struct fat_walk *walk)
{
	walk->depth = 0;
	walk->entries = 0;
	walk->lengths[0] = 0;
	walk->path[0] = '\0';
	fat_root(fat, &walk->folders[0]);
}

/* A folder that is one of those that it lies in makes a walk without end. */
static bool is_inside_itself(const struct fat_walk *walk, const struct fat_entry *entry)
{
	for (unsigned i = 0; i <= walk->depth; i++)
		if (walk->folders[i].first == entry->cluster)
			return true;
	return false;
}

static enum fat_status descend(const struct fat *fat, struct fat_walk *walk)
{
	if (is_inside_itself(walk, &walk->entry))
		return FAT_DAMAGED;
	if (walk->depth == FAT_DEPTH)
		return FAT_TOO_DEEP;
	if (fat_enter(fat, &walk->folders[walk->depth + 1], &walk->entry) != FAT_OK)
		return FAT_DAMAGED;
	walk->depth++;
	walk->lengths[walk->depth] = strlen(walk->path);
	return FAT_OK;
}

enum fat_status fat_walk_next(struct fat *fat, struct fat_walk *walk)
{
	for (;;) {
		struct fat_folder *folder = &walk->folders[walk->depth];
		size_t length = walk->lengths[walk->depth], more;
		uint32_t before = folder->entries;
		enum fat_status status = fat_next(fat, folder, &walk->entry);

		walk->entries += folder->entries - before;
		if (walk->entries > FAT_WALK_ENTRIES) {
			walk->entries = 0;
			walk->depth = 0;
			walk->folders[0].ended = true;
			return FAT_DAMAGED;
		}
		if (status != FAT_OK) {
			walk->path[length] = '\0';
			if (status == FAT_PENDING)
				return status;
			if (walk->depth > 0)
				walk->depth--;
			else if (status == FAT_END)
				return FAT_END;
			if (status == FAT_END)
				continue;
			return status;
		}
		more = strlen(walk->entry.name);
		walk->path[length] = '\0';
		if (length + 1 + more >= FAT_PATH_ROOM)
			return FAT_TOO_DEEP;
		walk->path[length] = '/';
		memcpy(walk->path + length + 1, walk->entry.name, more + 1);
		if (!walk->entry.folder)
			return FAT_OK;
		status = descend(fat, walk);
		if (status != FAT_OK)
			return status;
	}
}
