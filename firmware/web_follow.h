/*
 * Responses of a file that is being loaded into memory: what is there of it is sent, job by job of the drive, and the
 * rest at once when all of it is there. Of files of more than one job; others are there at once.
 *
 * Nothing is copied: what is sent lies where the file stays. Parts that were sent belong to the epoch of their reply
 * as all that is looked up does, so that a load that fails is evicted (store/cache.h), and its memory is not written
 * before nothing of it is in flight.
 *
 * Any number of requests follow a file. When it is there, the next load waits a little for those that have not been
 * given the rest; one that comes too late, as its file was evicted, has it loaded again.
 */
#ifndef TREBUCHET_WEB_FOLLOW_H
#define TREBUCHET_WEB_FOLLOW_H

#include "store/cache.h"

/* A response; 0: none. */
struct web_follow {
	struct catalogue_file *file;
	uint32_t catalogue; /* which one its file is of */
	uint32_t first, left; /* what is to be sent next, from the file's beginning on */
};

/* A part of a response: `length` bytes, and `rest` bytes that follow them in memory. */
struct web_follow_part {
	uint32_t address, length, rest;
};

/* There is another catalogue: responses of files of the one before end. */
void web_follow_start(void);
/* Is this file being loaded, in several jobs, the first of which has ended? */
bool web_follow_may(const struct cache *cache, const struct catalogue_file *file);
/* A file is there, or failed. */
void web_follow_loaded(void);
/* Is the next load to wait? */
bool web_follow_holds(void);

/* Begin a response of `count` bytes from `first` on. */
void web_follow_open(struct web_follow *follow, struct catalogue_file *file, uint32_t first, uint32_t count);
/* Take what can be sent now, perhaps nothing; false: it will not go on. */
bool web_follow_take(struct web_follow *follow, struct web_follow_part *part);
/* It has ended. */
void web_follow_close(struct web_follow *follow);

#endif
