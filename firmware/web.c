#include "web.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "command.h"
#include "crc32.h"
#include "log.h"
#include "web_card.h"

#ifdef TREBUCHET_WEB_BASE

#define CHECKED offsetof(struct web_image, checksum)

static struct web_image next;     /* the header of the image on its way */
static uint8_t refusal;           /* the status that it will be answered with, unless OK */
static uint32_t checksum;         /* of what has come */
static struct web_image served;   /* of the one that is served; or 0 */
static bool steps;                /* to the next one; web_step() has not said that it is served */

/* Where the next image goes. */
static struct web_room next_room(void)
{
	struct web_room room = {
		TREBUCHET_WEB_LAYOUT, TREBUCHET_WEB_MEMORY, TREBUCHET_WEB_HALF,
	};

	if (served.base == TREBUCHET_WEB_MEMORY)
		room.base += TREBUCHET_WEB_HALF;
	return room;
}

bool web_begins(const void *data, size_t length)
{
	return length >= sizeof(next) && memcmp(data, "TBWI", sizeof(next.magic)) == 0;
}

/* Whether the half that is not served is the image's that is on its way. */
static bool may_write(void)
{
#ifdef WEB_CARD
	return web_card_yield();
#else
	return true;
#endif
}

static void begin(const void *data)
{
	struct web_room room = next_room();

	memcpy(&next, data, sizeof(next));
	checksum = crc32_of(0, data, CHECKED);
	refusal = web_judge(&next, sizeof(next) + next.length, &room);
	if (refusal == TREBUCHET_STATUS_OK && (trebuchet_web_held_read() != 0 || !may_write()))
		refusal = TREBUCHET_STATUS_BUSY;
}

/* By words where that can be: the library's function copies by bytes. */
static void copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0)
		for (; length >= 4; length -= 4, to += 4, from += 4)
			*(uint32_t *)to = *(const uint32_t *)from;
	memcpy(to, from, length);
}

void web_take(uint32_t at, const void *data, size_t length)
{
	const uint8_t *from = data;

	if (at == 0) {
		begin(data);
		at = sizeof(next);
		from += sizeof(next);
		length -= sizeof(next);
	}
	at -= sizeof(next);
	/* What is longer than it says is refused in the end. */
	if (refusal != TREBUCHET_STATUS_OK || at > next.length || next.length - at < length)
		return;
	may_write(); /* and stays it */
	checksum = crc32_of(checksum, from, length);
	copy((uint8_t *)(uintptr_t)next.base + at, from, length);
}

static void show_next(void)
{
	trebuchet_web_base_write(next.base);
	trebuchet_web_index_write(next.index);
	trebuchet_web_mask_write(next.buckets - 1);
	trebuchet_web_switch_write(1);
	steps = true;
}

uint8_t web_finish(size_t size)
{
	struct web_room room = next_room();

	if (refusal == TREBUCHET_STATUS_OK)
		refusal = web_judge(&next, size, &room);
	if (refusal == TREBUCHET_STATUS_OK && checksum != next.checksum)
		refusal = TREBUCHET_STATUS_BAD_CHECKSUM;
	if (refusal == TREBUCHET_STATUS_OK)
		show_next();
	return refusal;
}

bool web_claim(struct web_room *room)
{
	if (trebuchet_web_switching_read() != 0 || trebuchet_web_held_read() != 0)
		return false;
	refusal = TREBUCHET_STATUS_BUSY;
	*room = next_room();
	return true;
}

void web_switch_to(const struct web_image *image)
{
	next = *image;
	show_next();
}

bool web_step(void)
{
	if (trebuchet_web_switching_read() != 0)
		return false;
	served = next;
	steps = false;
	trebuchet_web_slow_write(1);
	trebuchet_web_enable_write(1);
	log_info("web", "serves another image");
	return true;
}

bool web_switched(void)
{
	return steps && trebuchet_web_switching_read() == 0;
}

const struct web_image *web_served(void)
{
	return &served;
}

static void row(struct text *out, const char *name, uint32_t value)
{
	text_plain(out, name);
	text_char(out, ' ');
	text_unsigned(out, value);
	text_char(out, '\n');
}

uint8_t web_command(struct words *words, struct text *out)
{
	struct web_room room = next_room();
	bool on = words_is(words, 1, "on");

	if (words->count > 2 || (words->count == 2 && !on && !words_is(words, 1, "off")))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (on && served.base == 0) {
		text_plain(out, "no image was loaded");
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	}
	if (words->count == 2)
		trebuchet_web_enable_write(on);
	row(out, "port", TREBUCHET_WEB_PORT);
	row(out, "enabled", trebuchet_web_enable_read());
	row(out, "paths", served.paths);
	row(out, "bytes", served.length);
	row(out, "address", served.base);
	row(out, "held", trebuchet_web_held_read());
	row(out, "next", room.base);
	row(out, "room", room.bytes);
	row(out, "layout", room.layout);
	return TREBUCHET_STATUS_OK;
}

#else /* no web service */

bool web_begins(const void *data, size_t length)
{
	(void)data;
	(void)length;
	return false;
}

void web_take(uint32_t at, const void *data, size_t length)
{
	(void)at;
	(void)data;
	(void)length;
}

uint8_t web_finish(size_t size)
{
	(void)size;
	return TREBUCHET_STATUS_NOT_BUILT_IN;
}

bool web_step(void)
{
	return true;
}

#endif
