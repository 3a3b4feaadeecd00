#include "log.h"

#include <string.h>

#include "board.h"
#include "noinit.h"

#define LOG_BYTES 1024
#define LOG_MAGIC 0x10631063u

/* Lines, each with its line break; the oldest begins at `first`. */
struct ring {
	uint32_t magic;
	uint32_t first;
	uint32_t used;
	char bytes[LOG_BYTES];
};

static struct ring ring NOINIT;
static enum log_level limit = LOG_INFO;
static void (*print)(const char *line, size_t length);
static const char *const names[] = { "error", "warn", "info", "debug" };

static uint32_t wrapped(uint32_t position)
{
	return position & (LOG_BYTES - 1);
}

void log_start(void)
{
	if (ring.magic == LOG_MAGIC && ring.first < LOG_BYTES && ring.used <= LOG_BYTES)
		return;
	ring.magic = LOG_MAGIC;
	ring.first = ring.used = 0;
}

void log_print_with(void (*function)(const char *line, size_t length))
{
	print = function;
}

enum log_level log_level(void)
{
	return limit;
}

const char *log_level_name(enum log_level level)
{
	return names[level];
}

bool log_set_level(const char *name)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) == 0) {
			limit = (enum log_level)i;
			return true;
		}
	}
	return false;
}

/* Forget the oldest line. */
static void forget(void)
{
	char byte;

	do {
		byte = ring.bytes[ring.first];
		ring.first = wrapped(ring.first + 1);
		ring.used--;
	} while (byte != '\n' && ring.used > 0);
}

static void keep(const char *line, size_t length)
{
	while (ring.used + length + 1 > LOG_BYTES)
		forget();
	for (size_t i = 0; i < length; i++)
		ring.bytes[wrapped(ring.first + ring.used++)] = line[i];
	ring.bytes[wrapped(ring.first + ring.used++)] = '\n';
}

void log_write(enum log_level level, const char *part, const char *text)
{
	char buffer[LOG_MAX_LINE];
	struct text line = text_in(buffer, sizeof(buffer));

	text_char(&line, '[');
	text_seconds(&line, board_uptime_ms(), 9);
	text_plain(&line, "] ");
	text_plain(&line, names[level]);
	text_char(&line, ' ');
	text_plain(&line, part);
	text_plain(&line, ": ");
	text_plain(&line, text);
	/* Nobody shall write on a terminal, or a second line, by what a text quotes. */
	for (size_t i = 0; i < line.length; i++)
		if (buffer[i] < ' ' || buffer[i] > '~')
			buffer[i] = '?';
	keep(buffer, line.length);
	if (level <= limit && print != NULL)
		print(buffer, line.length);
}

void log_show(struct text *out)
{
	for (uint32_t i = 0; i < ring.used; i++)
		text_char(out, ring.bytes[wrapped(ring.first + i)]);
}
