#include "console.h"

#include <stdbool.h>

#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "buffer.h"
#include "command.h"
#include "line.h"
#include "log.h"
#include "serial.h"

_Static_assert(LINE_MAX_BYTES == COMMAND_MAX_LINE, "the editor takes what commands take");

static struct line line;
/* Prompt and line are on the screen, so a log line has to go around them. */
static bool prompted;

static void print_log(const char *text, size_t length)
{
	if (prompted)
		line_hide(&line);
	serial_write(text, length);
	serial_string("\n");
	if (prompted)
		line_show(&line);
}

void console_log(void)
{
	log_print_with(print_log);
}

void console_start(void)
{
	line_start(&line, serial_write);
	line_prompt(&line);
	prompted = true;
}

static void run(void)
{
	struct text out = buffer_text();
	uint8_t status = command_run(line.text, line.length, &out);

	serial_write(out.start, out.length);
	if (status == TREBUCHET_STATUS_NO_ROOM)
		serial_string("\nerror: NO_ROOM: there is more\n");
}

void console_serve(void)
{
	enum line_event event;
	char byte;

	while (serial_read(&byte)) {
		event = line_byte(&line, byte);
		if (event == LINE_NONE)
			continue;
		prompted = false;
		if (event == LINE_DONE)
			run();
		else
			serial_string("error: TOO_LARGE: a line has at most 127 characters\n");
		line_prompt(&line);
		prompted = true;
		/*
		 * A line a turn: a terminal that echoes sends lines without end, and nobody feeds
		 * the watchdog here.
		 */
		board_wake();
		return;
	}
}
