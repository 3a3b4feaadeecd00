/*
 * The catalogue of a card: an index entry for each file, in the layout of models/http/image.py, which the web
 * service reads. No file is loaded by it (cache.h): no entry is `ready`.
 *
 * Paths are those on the card, in UTF-8. "index.html" is also the page of its folder, whose path ends with a slash.
 * Paths that are longer than an entry's are left out, as are those in folders that cannot be read.
 *
 * An entity tag is the volume's serial number and the CRC-32 of where the file begins, its size and its time: it
 * changes whenever somebody writes the file; `trebuchet store make` has the CRC of all contents as serial number.
 */
#ifndef TREBUCHET_STORE_CATALOGUE_H
#define TREBUCHET_STORE_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fat.h"

enum store_status {
	STORE_OK = 0,
	STORE_NO_CARD, /* none is there, or it is another one than the catalogue's */
	STORE_NO_VOLUME,
	STORE_READ_ERROR, /* the drive failed, or was removed */
	STORE_DAMAGED, /* the file's chain of clusters is wrong */
	STORE_NO_ROOM, /* for this file, or for so many, whatever is evicted */
	STORE_BUSY, /* later: memory is being sent from, or a file is being loaded */
	STORE_PENDING, /* not over yet: call again */
};

/* A file of the card. */
struct catalogue_file {
	uint32_t crc, alias_crc; /* of its path, and of its folder's if `alias` */
	uint32_t entry; /* number of its entry; an alias has the next one */
	uint32_t cluster, size, modified;
	uint16_t type; /* of its media, in store_types */
	bool alias;
	uint8_t state; /* enum cache_state */
	uint8_t failure; /* enum store_status of the last load (web_card.c) */
	uint32_t begin, end; /* of its memory, from `base` on */
	uint32_t next; /* the file that was loaded after it */
};

/* What a catalogue's next step is. */
enum catalogue_phase {
	CATALOGUE_LIST, /* walk for files */
	CATALOGUE_PLACE, /* choose a number of buckets */
	CATALOGUE_CLEAR, /* index and entries, up to `at` */
	CATALOGUE_FILL, /* the index, file `at` */
	CATALOGUE_PATHS, /* walk for paths, file `at` */
	CATALOGUE_DONE,
};

struct catalogue {
	/* Set by the caller. */
	uint8_t *memory; /* where the image's address is for the CPU; a multiple of 8 */
	uint32_t base, size; /* address for the gateware, a multiple of 4,096; bytes of the whole image */
	struct catalogue_file *list;
	uint32_t room; /* of the list */
	uint32_t buckets_wanted; /* a power of two; 0: as few as are enough */
	/* Results. */
	uint32_t files, entries, buckets;
	uint32_t index, first_entry, objects; /* offsets from `base`: the index, the entries, free memory */
	uint32_t left_out; /* paths that are too long */
	uint32_t largest; /* bytes of a file */
	uint32_t faults; /* folders that could not be read to their end */
	enum fat_status fault; /* why, the last of them */
	uint32_t serial; /* of the volume */
	uint32_t fingerprint; /* CRC-32 of all that it says of the volume; known when the phase is not LIST */
	/* Of the building. */
	enum catalogue_phase phase;
	uint32_t at;
};

/*
 * Walk over the volume and write prepared responses, index and entries. Nothing may be in flight from this memory.
 * After catalogue_start(), catalogue_step() does a part of it, until it returns another status than STORE_PENDING:
 * an entry of a folder, some files, or 1,024 bytes. The catalogue is empty (`files` 0, an index without entries)
 * unless that is STORE_OK. catalogue_build() does all of it at once, from a drive that has every block at once.
 */
enum store_status catalogue_start(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk);
enum store_status catalogue_step(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk);
enum store_status catalogue_build(struct catalogue *catalogue, struct fat *fat, struct fat_walk *walk);

/* The file with this path, as the gateware finds it, or NULL. */
struct catalogue_file *catalogue_find(const struct catalogue *catalogue, const char *path, size_t length);

/* The low and high word of the file's entity tag. */
uint32_t catalogue_tag(const struct catalogue_file *file);

/* The media type of a file name, as a place in store_types (generated; models/http/c_header.py). */
unsigned catalogue_type(const char *name);
const char *catalogue_type_name(unsigned type);

#endif
