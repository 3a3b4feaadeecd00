/*
 * Files of a volume on the drive, served by the web service (docs/web.md, "File store"). Of a board with both;
 * others have nothing of it.
 *
 * A medium that comes is mounted, and its catalogue is written into the half of the web service's memory that is
 * not served; then the gateware switches to it. No file is in memory yet: a request for one that is not goes to
 * the firmware (web_slow.c), which has it loaded (store/cache.h) and answers then. A medium that goes takes
 * nothing with it but what was not loaded.
 *
 * web_card_serve() is called in each turn of the event loop and does little: 32 slots of folders, 256 clusters,
 * 1,024 bytes of the index, or the headers of a file. It never waits for the drive.
 */
#ifndef TREBUCHET_WEB_CARD_H
#define TREBUCHET_WEB_CARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>

#include "command.h"
#include "store/catalogue.h"

#if defined(TREBUCHET_WEB_BASE) && defined(TREBUCHET_DRIVE_BASE)
#define WEB_CARD

enum web_card_file {
	WEB_CARD_WAIT, /* it is being loaded, or will be: ask again */
	WEB_CARD_FAILED, /* it cannot be loaded now */
	WEB_CARD_LARGE, /* it is larger than the memory, and sent in pieces (web_pieces.h) */
	WEB_CARD_FOLLOW, /* it is being loaded, and what is there of it can be sent (web_follow.h) */
};

void web_card_start(void);
void web_card_serve(void);
struct web_large;
/*
 * Have the file of this path loaded, which is in the index and not ready. `first`: the request asks for the first
 * time, so that what failed before is tried again. WEB_CARD_LARGE, WEB_CARD_FOLLOW: its chain of clusters is right,
 * and `large` set.
 */
enum web_card_file web_card_want(const uint8_t *path, size_t length, bool first, struct web_large *large);
/* For web_follow.c: the files of the catalogue that is served, or NULL; have one of them loaded. */
struct cache;
struct cache *web_card_cache(void);
bool web_card_want_file(struct catalogue_file *file);
/* Changes whenever it may be of use to look for files that are waited for again. */
uint32_t web_card_changes(void);
/* Another image comes into the half that is not served: give it up, for a while. False: it cannot be had now. */
bool web_card_yield(void);
/* For web_card_rows.c: the state; why it is a fault, or NULL; and numbers. */
struct web_card_numbers {
	uint32_t files, left_out, bad_folders; /* of the catalogue */
	uint32_t loaded, bytes, room; /* files in memory, their bytes, bytes that there are */
	uint32_t loads, evictions, errors; /* since the start */
	uint32_t streams, pieces; /* under way; free (web_pieces.h) */
};
const char *web_card_state(void);
const char *web_card_fault(void);
struct web_card_numbers web_card_numbers(void);
/* Of web_card_rows.c: why a volume is not served. */
const char *web_card_fault_name(enum store_status fault);
/* Give the medium up, or look for it again. */
uint8_t web_card_turn(bool on);
/* The member "card" of the status page, with a comma behind it. */
void web_card_status(struct text *out);
/* The row `card` of the table of commands. */
uint8_t web_card_command(struct words *words, struct text *out);

#endif

#endif
