#include "web_card.h"

#ifdef WEB_CARD

#include <string.h>

#include <generated/trebuchet_status_codes.h>
#include <generated/trebuchet_store.h>

#include "board.h"
#include "bulk.h"
#include "drive.h"
#include "log.h"
#include "store/cache.h"
#include "web.h"
#include "web_blocks.h"
#include "web_follow.h"
#include "web_pieces.h"

/* Slots of folders and clusters of a turn. */
#define TURN_STEPS 32u
/* How long the other half is left to an image on its way since its last bytes came. */
#define QUIET_MS 2000u
/* Bytes that a file needs beside its content, and more. */
#define HEADERS 4096u
/* Share of a half that the list of files may take. */
#define LIST_SHARE 8u

enum state {
	OFF,
	NO_MEDIUM,
	MOUNTING,
	WAITING, /* for the other half */
	READING,
	SWITCHING,
	SERVING,
	FAULT, /* no volume that can be served */
	DISPLACED, /* by an image that was loaded */
};

/* A volume; one is served, the other one is read. */
struct volume {
	struct fat fat;
	struct catalogue catalogue;
	struct cache cache;
	uint32_t pieces; /* bytes behind the catalogue's for files that are sent in pieces, or 0 */
};

static BULK struct volume volumes[2];
static BULK struct fat_walk walk;
static struct volume *served; /* or NULL */
static struct volume *next = volumes;
static struct catalogue_file *wanted; /* of the one that is served */
static enum state state;
static enum store_status fault;
static bool yields; /* to an image on its way */
static bool moving; /* a job is under way: of the file that is loaded, or ... */
static bool piece_moves; /* ... of a piece, and then it is a file's turn */
static bool good; /* those before had success */
static bool stale; /* the medium went while the gateware switched */
static uint32_t yielded_ms;
static uint32_t changes;
static uint32_t loads, evictions, errors; /* ... evictions: of catalogues before */
static uint32_t faults; /* folders that cannot be read */

static bool drained(void *context)
{
	(void)context;
	return trebuchet_web_switching_read() == 0 && trebuchet_web_held_read() == 0;
}

/* The same image once more: what was looked up before belongs to the epoch before. */
static void step_epoch(void *context)
{
	(void)context;
	trebuchet_web_switch_write(1);
}

/* No file is wanted; those who wait ask again. */
static void forget_wanted(void)
{
	wanted = NULL;
	changes++;
}

uint32_t web_card_changes(void)
{
	return changes;
}

/* Is the catalogue that is served the one of the web service? */
static bool is_served(void)
{
	return served != NULL && served->catalogue.base == web_served()->base;
}

static void become(enum state which)
{
	state = which;
	board_wake();
}

static void fail(enum store_status why)
{
	fault = why;
	errors++;
	log_warn("card", web_card_fault_name(why));
	become(FAULT);
}

/* The medium went, or was another one in between. */
static void remove_medium(void)
{
	web_blocks_forget(true);
	if (served != NULL)
		cache_remove(&served->cache);
	if (state != OFF) {
		if (state != NO_MEDIUM)
			log_info("card", "the medium was removed");
		stale = state == SWITCHING;
		if (!stale)
			state = NO_MEDIUM;
	}
}

static void mount(void)
{
	uint64_t sectors = drive_sectors();
	enum fat_status status = fat_mount(&next->fat, web_blocks_read, NULL,
		sectors < UINT32_MAX ? (uint32_t)sectors : UINT32_MAX);

	if (status == FAT_OK)
		become(WAITING);
	else if (status != FAT_PENDING)
		fail(status == FAT_READ_ERROR ? STORE_READ_ERROR : STORE_NO_VOLUME);
}

/* Begin the catalogue when the half is free. */
static void begin_reading(void)
{
	struct catalogue *catalogue = &next->catalogue;
	uint32_t room;
	struct web_room half;

	/* The list of one that was displaced may lie there, or the file that is loaded. */
	if (moving || (served != NULL && !is_served()) || (yields && board_uptime_ms() - yielded_ms < QUIET_MS))
		return;
	if (!web_claim(&half))
		return;
	yields = false;
	room = half.bytes / LIST_SHARE / sizeof(struct catalogue_file);
	memset(catalogue, 0, sizeof(*catalogue));
	catalogue->base = half.base;
	catalogue->memory = (uint8_t *)(uintptr_t)half.base;
	catalogue->size = half.bytes - half.bytes / LIST_SHARE;
	catalogue->list = (struct catalogue_file *)(void *)(catalogue->memory + catalogue->size);
	catalogue->room = room;
	state = READING;
	if (catalogue_start(catalogue, &next->fat, &walk) != STORE_PENDING)
		fail(STORE_NO_ROOM);
}

/* Leave room for pieces if there is a file that is larger than all memory. */
static void set_aside(struct volume *volume)
{
	struct catalogue *catalogue = &volume->catalogue;
	uint32_t bytes = web_pieces_share(TREBUCHET_WEB_HALF), room = catalogue->size - catalogue->objects;

	volume->pieces = 0;
	if ((uint64_t)catalogue->largest + HEADERS <= room || room < 2 * bytes)
		return;
	volume->pieces = bytes;
	catalogue->size -= bytes;
}

/* Is it the medium that was there before? Then what is in memory stays. */
static bool is_back(void)
{
	if (!is_served() || served->cache.fat != NULL || next->catalogue.phase == CATALOGUE_LIST ||
	    next->catalogue.fingerprint != served->catalogue.fingerprint || served->cache.loading != CACHE_NONE)
		return false;
	served->fat = next->fat;
	cache_return(&served->cache, &served->fat);
	log_info("card", "the same medium is back");
	become(SERVING);
	return true;
}

static void read_catalogue(void)
{
	enum store_status status = catalogue_step(&next->catalogue, &next->fat, &walk);
	const struct catalogue *catalogue = &next->catalogue;

	if (status == STORE_PENDING) {
		is_back();
		return;
	}
	if (status != STORE_OK) {
		fail(status);
		return;
	}
	faults = catalogue->faults;
	if (faults != 0)
		log_warn("card", "folders that cannot be read are left out");
	set_aside(next);
	web_switch_to(&(struct web_image){
		.base = catalogue->base, .length = catalogue->size, .index = catalogue->base + catalogue->index,
		.buckets = catalogue->buckets, .paths = catalogue->entries,
	});
	stale = false;
	become(SWITCHING);
}

static void finish_switch(void)
{
	const struct cache_epochs epochs = { .drained = drained, .step = step_epoch };
	struct volume *before = served;

	if (!web_step())
		return;
	if (before != NULL)
		evictions += before->cache.evictions;
	served = next;
	next = served == &volumes[0] ? &volumes[1] : &volumes[0];
	forget_wanted();
	web_follow_start();
	cache_start(&served->cache, &served->catalogue, stale ? NULL : &served->fat, epochs);
	web_pieces_place(served->catalogue.base, served->catalogue.base + served->catalogue.size, served->pieces);
	become(stale ? NO_MEDIUM : SERVING);
}

/* What there is to do for the catalogue. */
static void turn(void)
{
	switch (state) {
	case NO_MEDIUM:
		if (drive_ready())
			become(MOUNTING);
		break;
	case MOUNTING:
		next->fat.budget = FAT_UNLIMITED;
		mount();
		break;
	case WAITING:
		begin_reading();
		break;
	case READING:
		next->fat.budget = TURN_STEPS;
		read_catalogue();
		board_wake();
		break;
	case SWITCHING:
		finish_switch();
		break;
	default:
		break;
	}
}

/* How the load of the file that was wanted has ended. */
static void end_wanted(struct catalogue_file *file, enum store_status status)
{
	file->failure = (uint8_t)status;
	if (status != STORE_OK && !(status == STORE_NO_ROOM && web_pieces_any())) {
		errors++;
		log_warn("card", status == STORE_DAMAGED ? "a file's chain of clusters is damaged" : "a file could not be loaded");
	}
	forget_wanted();
}

static void end_load(bool loaded)
{
	struct catalogue_file *file = &served->catalogue.list[served->cache.loading];
	enum store_status status = cache_end(&served->cache, loaded);

	loads += status == STORE_OK;
	web_follow_loaded();
	end_wanted(file, status);
}

static void begin_load(void)
{
	enum store_status status = cache_begin(&served->cache, wanted);

	good = true;
	if (status == STORE_PENDING || status == STORE_BUSY || served->cache.loading != CACHE_NONE)
		return;
	end_wanted(wanted, status);
}

static void start(const struct cache_job *job, bool piece)
{
	drive_start(false, job->lba, job->count, job->address);
	moving = true;
	piece_moves = piece;
}

/* A part of a file is there; who waits for a long one may look now. */
static void end_file_job(bool read)
{
	struct cache *cache = &served->cache;
	bool first = cache->done == cache->content;

	good = good && read;
	if (!good || cache->loading == CACHE_NONE)
		return;
	cache_job_done(cache);
	if (first && web_follow_may(cache, &cache->catalogue->list[cache->loading]))
		changes++;
}

/* The end of a job; false: it is not over. */
static bool end_job(void)
{
	enum drive_status status;

	if (!drive_poll(&status))
		return false;
	moving = false;
	if (piece_moves)
		web_pieces_moved(status == DRIVE_OK);
	else
		end_file_job(status == DRIVE_OK);
	return true;
}

/* What there is to do for a file that is wanted, and for those that are sent in pieces: in turn. */
static void load(void)
{
	struct cache_job job;
	enum cache_next what = CACHE_NO_JOB;

	if (moving && !end_job())
		return;
	served->fat.budget = TURN_STEPS;
	if (served->cache.fat == NULL || !is_served())
		web_pieces_cut();
	else if (!web_blocks_idle())
		return;
	else if (!piece_moves)
		what = web_pieces_job(&served->fat, &job);
	if (what == CACHE_JOB)
		start(&job, true);
	if (what != CACHE_NO_JOB)
		return;
	piece_moves = false;
	if (served->cache.loading == CACHE_NONE) {
		if (wanted != NULL && !web_follow_holds())
			begin_load();
		return;
	}
	if (!web_blocks_idle())
		return;
	what = good ? cache_next_job(&served->cache, &job) : CACHE_NO_JOB;
	if (what == CACHE_NO_JOB)
		end_load(good);
	else if (what == CACHE_JOB)
		start(&job, false);
}

struct cache *web_card_cache(void)
{
	return is_served() ? &served->cache : NULL;
}

bool web_card_want_file(struct catalogue_file *file)
{
	if (served->cache.fat == NULL || file->failure != STORE_OK)
		return false;
	if (wanted == NULL && served->cache.loading == CACHE_NONE) {
		web_blocks_forget(false);
		wanted = file;
	}
	return true;
}

enum web_card_file web_card_want(const uint8_t *path, size_t length, bool first, struct web_large *large)
{
	struct catalogue_file *file;

	if (!is_served() || served->cache.fat == NULL)
		return WEB_CARD_FAILED;
	file = catalogue_find(&served->catalogue, (const char *)path, length);
	if (file == NULL)
		return WEB_CARD_FAILED;
	*large = (struct web_large){ file, &served->fat, file->cluster, file->size, served->catalogue.serial,
		catalogue_tag(file), catalogue_type_name(file->type) };
	if (file->failure == STORE_NO_ROOM && web_pieces_any()) {
		if (first)
			web_blocks_forget(false);
		return WEB_CARD_LARGE;
	}
	if (first && file != wanted)
		file->failure = STORE_OK;
	if (web_follow_may(&served->cache, file))
		return WEB_CARD_FOLLOW;
	return web_card_want_file(file) ? WEB_CARD_WAIT : WEB_CARD_FAILED;
}

/* An image was loaded, and is served: what the catalogue says is of no use any more. */
static void be_displaced(void)
{
	cache_remove(&served->cache);
	if (moving)
		return;
	if (served->cache.loading != CACHE_NONE)
		end_load(false);
	evictions += served->cache.evictions;
	next = served;
	served = NULL;
	forget_wanted();
	if (state == SERVING) {
		log_info("card", "an image was loaded, and is served instead");
		state = DISPLACED;
	}
}

bool web_card_yield(void)
{
	if (state == SWITCHING || (moving && !is_served()))
		return false;
	if (state == READING)
		become(NO_MEDIUM);
	yields = true;
	yielded_ms = board_uptime_ms();
	return true;
}

void web_card_start(void)
{
	web_blocks_start();
	web_pieces_start();
	state = NO_MEDIUM;
	drive_changed(); /* what was before */
}

void web_card_serve(void)
{
	if (drive_changed())
		remove_medium();
	web_blocks_serve(!moving);
	turn();
	if (served != NULL)
		load();
	if (served != NULL && state != SWITCHING && !is_served())
		be_displaced();
	/* None of them has an interrupt. */
	if (moving || wanted != NULL || web_pieces_streams() != 0 || !web_blocks_idle() || state == MOUNTING || state == READING || state == SWITCHING)
		board_wake();
}

const char *web_card_state(void)
{
	static const char *const names[] = {
		"off", "empty", "mounting", "waiting", "reading", "switching", "serving", "fault", "displaced",
	};

	return names[state];
}

const char *web_card_fault(void)
{
	return state == FAULT ? web_card_fault_name(fault) : NULL;
}

struct web_card_numbers web_card_numbers(void)
{
	struct web_card_numbers numbers = {
		.bad_folders = faults, .loads = loads, .evictions = evictions, .errors = errors,
		.streams = web_pieces_streams(), .pieces = web_pieces_free(),
	};
	const struct cache *cache;
	const struct catalogue *catalogue;

	if (served == NULL)
		return numbers;
	cache = &served->cache;
	catalogue = cache->catalogue;
	for (uint32_t i = cache->oldest; i != CACHE_NONE; i = catalogue->list[i].next) {
		numbers.loaded += catalogue->list[i].state == CACHE_READY;
		numbers.bytes += catalogue->list[i].end - catalogue->list[i].begin;
	}
	numbers.files = catalogue->files;
	numbers.left_out = catalogue->left_out;
	numbers.room = catalogue->size - catalogue->objects;
	numbers.evictions += cache->evictions;
	return numbers;
}

uint8_t web_card_turn(bool on)
{
	if (state == SWITCHING)
		return TREBUCHET_STATUS_BUSY;
	if (served != NULL)
		cache_remove(&served->cache);
	become(on ? NO_MEDIUM : OFF);
	return TREBUCHET_STATUS_OK;
}

#endif
