/* What the command `card` and the status page say of the files of a card. */
#include "web_card.h"

#ifdef WEB_CARD

#include <generated/trebuchet_status_codes.h>

#include "text.h"

#define ROWS 11u

const char *web_card_fault_name(enum store_status fault)
{
	switch (fault) {
	case STORE_NO_VOLUME:
		return "no FAT16 or FAT32 volume";
	case STORE_READ_ERROR:
		return "the drive cannot be read";
	case STORE_NO_ROOM:
		return "the volume has more files than the memory has room for";
	default:
		return "the volume is damaged";
	}
}

/* Numbers of the state; the names are those of the command and of the status page. */
struct row {
	const char *name;
	uint32_t value;
};

static void list(struct row rows[ROWS])
{
	struct web_card_numbers numbers = web_card_numbers();

	rows[0] = (struct row){ "files", numbers.files };
	rows[1] = (struct row){ "left_out", numbers.left_out };
	rows[2] = (struct row){ "bad_folders", numbers.bad_folders };
	rows[3] = (struct row){ "loaded", numbers.loaded };
	rows[4] = (struct row){ "bytes", numbers.bytes };
	rows[5] = (struct row){ "room", numbers.room };
	rows[6] = (struct row){ "loads", numbers.loads };
	rows[7] = (struct row){ "evictions", numbers.evictions };
	rows[8] = (struct row){ "errors", numbers.errors };
	rows[9] = (struct row){ "streams", numbers.streams };
	rows[10] = (struct row){ "pieces", numbers.pieces };
}

void web_card_status(struct text *out)
{
	struct row rows[ROWS];

	list(rows);
	text_plain(out, "\"card\":{\"state\":");
	text_json(out, web_card_state());
	for (unsigned i = 0; i < ROWS; i++) {
		text_char(out, ',');
		text_json(out, rows[i].name);
		text_char(out, ':');
		text_unsigned(out, rows[i].value);
	}
	text_plain(out, "},");
}

static void write_line(struct text *out, const char *name, const char *value)
{
	text_plain(out, name);
	text_char(out, ' ');
	text_plain(out, value);
	text_char(out, '\n');
}

uint8_t web_card_command(struct words *words, struct text *out)
{
	bool on = words_is(words, 1, "on");
	struct row rows[ROWS];

	if (words->count > 2 || (words->count == 2 && !on && !words_is(words, 1, "off")))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (words->count == 2)
		return web_card_turn(on);
	list(rows);
	write_line(out, "state", web_card_state());
	if (web_card_fault() != NULL)
		write_line(out, "fault", web_card_fault());
	for (unsigned i = 0; i < ROWS; i++) {
		text_plain(out, rows[i].name);
		text_char(out, ' ');
		text_unsigned(out, rows[i].value);
		text_char(out, '\n');
	}
	return TREBUCHET_STATUS_OK;
}

#endif
