/*
 * The files of a catalogue in memory: loaded from the card by DMA, evicted in the order in which they were loaded.
 *
 * Memory behind the entries is a ring: a file takes the next free bytes, and the oldest files give way. What the
 * web service sends is never changed in place: a file that is evicted is not found any more, but its memory is
 * used again only when nothing of it can be in flight. That is told by epochs: whoever looks an entry up, and all
 * that is sent in consequence, belongs to the epoch at the look-up's begin. There are two, the current one and the
 * one before, and the next one begins when all of the one before is answered:
 *
 *     evicted in epoch e -> e + 1 begins -> nothing of e is in flight -> the memory is free
 *
 * One file is loaded at a time: cache_begin() until it is not STORE_PENDING, then a DMA job for each of
 * cache_next_job(), then cache_end(). Before that its chain of clusters was followed to its end. An
 * entry becomes `ready` there, as the last word that is written; the CPU's data cache must have been flushed after
 * the last job. The DMA writes whole blocks, which the file's memory has room for.
 *
 * Whatever the card holds, nothing outside of [catalogue.objects, catalogue.size) is given to the DMA.
 */
#ifndef TREBUCHET_STORE_CACHE_H
#define TREBUCHET_STORE_CACHE_H

#include <generated/trebuchet_store.h>

#include "../text.h"
#include "catalogue.h"

enum cache_state {
	CACHE_ABSENT = 0,
	CACHE_LOADING,
	CACHE_READY,
	CACHE_EVICTED, /* in the current epoch */
	CACHE_DRAINING, /* in the epoch before */
	CACHE_FREE, /* its memory is; it leaves the ring */
};

/* What counts the epochs; the web service's registers. */
struct cache_epochs {
	void *context;
	bool (*drained)(void *context); /* is nothing of the epoch before in flight? */
	void (*step)(void *context); /* begin the next one; only while `drained` */
};

/* A job of the drive's DMA (cores/drive/to_memory.py): from the drive to memory. */
struct cache_job {
	uint32_t lba, count; /* blocks, at most CACHE_JOB_BLOCKS */
	uint32_t address; /* of external memory */
};

/* 64 KiB: what is loaded is sent job by job (web_follow.h), and files that are sent in pieces have their turn. */
#ifndef CACHE_JOB_BLOCKS
#define CACHE_JOB_BLOCKS 128u
#endif
#define CACHE_NONE 0xffffffffu

/* Headers of a file's responses, as models/http/response.py has them: with and without close, twice. */
struct cache_headers {
	char found[STORE_HEADER_ROOM], close[STORE_HEADER_ROOM];
	char same[STORE_SAME_ROOM], same_close[STORE_SAME_ROOM];
	struct text texts[4];
};

struct cache {
	struct catalogue *catalogue;
	struct fat *fat; /* of the card; NULL: there is none */
	struct cache_epochs epochs;
	uint32_t oldest, newest; /* files, or CACHE_NONE */
	uint32_t loading; /* file, or CACHE_NONE */
	bool removed; /* while it was loaded */
	uint32_t evictions; /* since cache_start() */
	uint32_t checking; /* file whose chain is followed, or was to its end if `checked`, or CACHE_NONE */
	bool checked;
	struct fat_file file; /* its extents */
	struct fat_extent extent; /* what is left of one */
	uint32_t content; /* offset of the content of the file that is being loaded */
	uint32_t done, at; /* ... of what is not loaded yet, and of the next job */
	bool shown; /* some of it may have been sent */
	struct cache_headers headers; /* of the file that is being loaded; a stack has no room */
};

/* An empty cache of a catalogue that was built; nothing may be in flight. `fat` may be NULL. */
void cache_start(struct cache *cache, struct catalogue *catalogue, struct fat *fat, struct cache_epochs epochs);

/*
 * Begin to load a file that is not ready. STORE_DAMAGED: its chain is wrong, which is known before a job is made.
 * STORE_BUSY: memory must drain, or a file is being loaded; files were evicted, ask again. STORE_PENDING: the chain
 * is being followed, ask again.
 */
enum store_status cache_begin(struct cache *cache, struct catalogue_file *file);

enum cache_next {
	CACHE_NO_JOB = 0,
	CACHE_JOB,
	CACHE_JOB_LATER, /* the drive must first give a block of the FAT: call again */
};

/* The next job of the file; CACHE_NO_JOB: there are no more. */
enum cache_next cache_next_job(struct cache *cache, struct cache_job *job);

/* The last job has ended, with success. */
void cache_job_done(struct cache *cache);

/*
 * The content of a file that is ready, or of the file that is being loaded, as far as it is there: its offset from
 * the catalogue's `base` on, and how many bytes of it may be sent in the current epoch; they do not change before
 * the file is evicted. False: it is neither.
 */
bool cache_content(struct cache *cache, const struct catalogue_file *file, uint32_t *offset, uint32_t *bytes);

/*
 * All jobs have ended, or need not be made; `loaded`: each with success. Then the file is ready. Else it is evicted:
 * some of it may be in flight.
 */
enum store_status cache_end(struct cache *cache, bool loaded);

/* Evict a file that is ready, as one that nobody may see any more. */
void cache_evict(struct cache *cache, struct catalogue_file *file);

/* Free what has drained; begin the next epoch if something waits for it. Does something still drain? */
bool cache_serve(struct cache *cache);

/* The card is gone: what is ready stays so, a load that was begun fails, and no other begins. */
void cache_remove(struct cache *cache);

/* The catalogue's card is there again, mounted as `fat`; nothing is being loaded. */
void cache_return(struct cache *cache, struct fat *fat);

/*
 * A card is there whose drive gives every block at once, mounted as `fat`. STORE_OK: it is the catalogue's, which
 * goes on as before. STORE_NO_CARD: it is another one; all files are evicted. When cache_serve() returns false,
 * catalogue_build() and cache_start() may follow. STORE_BUSY: a load has not ended.
 */
enum store_status cache_insert(struct cache *cache, struct fat *fat, struct fat_walk *walk);

#endif
