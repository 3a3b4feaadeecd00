// firmware: line
#include "fuzz.h"

#include <string.h>

#include "line.h"

const char *const fuzz_dictionary[] = {
	"\r\n", "\x1b[A", "\x1b[B", "\x1bOA", "\x1b[1;5C", "\x7f", "\b", "\x15", "\x03", "status", NULL,
};

/* What goes to the terminal is printable, or one of the few movements. */
static void put(const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++)
		require((data[i] >= ' ' && data[i] <= '~') || data[i] == '\r' || data[i] == '\n' ||
			data[i] == '\b' || data[i] == '\x1b');
}

static void check(const struct line *line)
{
	require(line->length <= LINE_MAX_BYTES);
	require(line->stored <= LINE_HISTORY && line->shown <= line->stored);
	if (line->length > 0) {
		char last = line->text[line->length - 1];

		require(last >= ' ' && last <= '~');
	}
}

void fuzz_one(const char *data, size_t length)
{
	static struct line line;

	line_start(&line, put);
	line_prompt(&line);
	for (size_t i = 0; i < length; i++) {
		enum line_event event = line_byte(&line, data[i]);

		check(&line);
		if (event == LINE_DONE)
			require(strlen(line.text) == line.length);
		if (event != LINE_NONE)
			line_prompt(&line);
	}
	line_hide(&line);
	line_show(&line);
}
