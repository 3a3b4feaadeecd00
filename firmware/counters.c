#include "counters.h"

#include <generated/soc.h>
#include <generated/trebuchet_build.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>
#include <generated/trebuchet_status_table.h>

#include "board.h"
#include "memory.h"
#include "restart.h"
#include "status.h"
#include "web_card.h"

void counters_status(struct text *out)
{
	const struct status_info info = {
		.version = TREBUCHET_VERSION,
		.board = TREBUCHET_BOARD,
		.uptime_ms = board_uptime_ms(),
		.start = restart_cause_name(),
		.restarts = restart_count(),
		.memory_test = memory_test(),
		.registers = TREBUCHET_REGISTER_MAP,
#ifdef WEB_CARD
		.more = web_card_status,
#endif
	};

	status_write(out, &info, status_table, STATUS_TABLE_COUNT, trebuchet_read32);
}

uint8_t counters_status_command(struct words *words, struct text *out)
{
	if (words->count > 1)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	counters_status(out);
	return TREBUCHET_STATUS_OK;
}

/* One block's, or of all blocks those that are not 0: all are more than the text has room for. */
uint8_t counters_command(struct words *words, struct text *out)
{
	bool found = words->count == 1;

	if (words->count > 2)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	for (const struct status_entry *entry = status_table; entry->words != 0; entry++) {
		uint64_t value;

		if (words->count == 2 && !words_is(words, 1, entry->block))
			continue;
		found = true;
		value = status_value(entry, trebuchet_read32);
		if (words->count == 1 && value == 0)
			continue;
		text_plain(out, entry->block);
		text_char(out, '.');
		text_plain(out, entry->name);
		text_char(out, ' ');
		text_unsigned(out, value);
		text_char(out, '\n');
	}
	if (found)
		return TREBUCHET_STATUS_OK;
	text_plain(out, "no block of this name has counters");
	return TREBUCHET_STATUS_BAD_ARGUMENT;
}
