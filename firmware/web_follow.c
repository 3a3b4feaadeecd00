#include "web_follow.h"

#include "web_card.h"

#ifdef WEB_CARD

#include "board.h"

/* Bytes of a descriptor; the gateware divides the rest. */
#define MOST_BYTES 0x10000u
/* How long a load waits for those who follow the file before. */
#define HOLD_MS 200u

static uint32_t catalogue;
static unsigned followers;
static uint32_t loaded_ms;

void web_follow_start(void)
{
	catalogue++;
}

bool web_follow_may(const struct cache *cache, const struct catalogue_file *file)
{
	return file->state == CACHE_LOADING && !cache->removed && cache->done > cache->content &&
	       file->size > CACHE_JOB_BLOCKS * FAT_BLOCK;
}

void web_follow_loaded(void)
{
	loaded_ms = board_uptime_ms();
}

bool web_follow_holds(void)
{
	return followers != 0 && board_uptime_ms() - loaded_ms < HOLD_MS;
}

void web_follow_open(struct web_follow *follow, struct catalogue_file *file, uint32_t first, uint32_t count)
{
	*follow = (struct web_follow){ file, catalogue, first, count };
	followers++;
}

bool web_follow_take(struct web_follow *follow, struct web_follow_part *part)
{
	struct cache *cache = web_card_cache();
	uint32_t offset, bytes;

	*part = (struct web_follow_part){ .length = 0 };
	if (cache == NULL || follow->catalogue != catalogue)
		return false;
	if (!cache_content(cache, follow->file, &offset, &bytes))
		return web_card_want_file(follow->file);
	bytes = bytes > follow->first ? bytes - follow->first : 0;
	if (bytes > follow->left)
		bytes = follow->left;
	part->address = cache->catalogue->base + offset + follow->first;
	part->length = bytes < MOST_BYTES ? bytes : MOST_BYTES;
	part->rest = bytes - part->length;
	follow->first += bytes;
	follow->left -= bytes;
	return true;
}

void web_follow_close(struct web_follow *follow)
{
	if (follow->file != NULL)
		followers--;
	follow->file = NULL;
}

#endif
