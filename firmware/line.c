#include "line.h"

#include <string.h>

#define BACKSPACE '\b'
#define DELETE 0x7f
#define ESCAPE 0x1b
#define CTRL_C 0x03
#define CTRL_U 0x15

/* States of `escape`: nothing; ESC has come; ESC [ or ESC O, of which only arrows are known. */
enum { PLAIN, AFTER_ESCAPE, IN_SEQUENCE };

static void put(const struct line *line, const char *string)
{
	line->put(string, strlen(string));
}

static void clear(struct line *line)
{
	line->length = 0;
	line->too_long = false;
	line->shown = 0;
}

void line_start(struct line *line, void (*write)(const char *data, size_t length))
{
	memset(line, 0, sizeof(*line));
	line->put = write;
}

void line_show(const struct line *line)
{
	put(line, LINE_PROMPT);
	line->put(line->text, line->length);
}

void line_hide(const struct line *line)
{
	put(line, "\r\x1b[K");
}

void line_prompt(struct line *line)
{
	clear(line);
	line_show(line);
}

/* Keep a line unless it is empty or the same as the last. */
static void remember(struct line *line)
{
	if (line->length == 0 || (line->stored > 0 && strcmp(line->history[0], line->text) == 0))
		return;
	memmove(line->history[1], line->history[0], sizeof(line->history) - sizeof(line->history[0]));
	memcpy(line->history[0], line->text, line->length + 1u);
	if (line->stored < LINE_HISTORY)
		line->stored++;
}

/* Show a line of the history, or with 0 an empty one. */
static void recall(struct line *line, uint8_t back)
{
	line_hide(line);
	clear(line);
	line->shown = back;
	if (back > 0) {
		line->length = (uint8_t)strlen(line->history[back - 1]);
		memcpy(line->text, line->history[back - 1], line->length);
	}
	line_show(line);
}

static void escape_byte(struct line *line, char byte)
{
	if (line->escape == AFTER_ESCAPE) {
		line->escape = byte == '[' || byte == 'O' ? IN_SEQUENCE : PLAIN;
		return;
	}
	/* ECMA-48, 5.4: parameters and intermediate bytes, then a final byte. */
	if (byte >= 0x20 && byte < 0x40)
		return;
	line->escape = PLAIN;
	if (byte == 'A' && line->shown < line->stored)
		recall(line, line->shown + 1);
	else if (byte == 'B' && line->shown > 0)
		recall(line, line->shown - 1);
}

static enum line_event enter(struct line *line)
{
	put(line, "\r\n");
	if (line->too_long)
		return LINE_TOO_LONG;
	line->text[line->length] = '\0';
	remember(line);
	return LINE_DONE;
}

static void control(struct line *line, char byte)
{
	if (byte == BACKSPACE || byte == DELETE) {
		if (line->length > 0) {
			line->length--;
			put(line, "\b \b");
		}
	} else if (byte == CTRL_U) {
		recall(line, 0);
	} else if (byte == CTRL_C) {
		put(line, "^C\r\n");
		line_prompt(line);
	} else if (byte == ESCAPE) {
		line->escape = AFTER_ESCAPE;
	}
}

enum line_event line_byte(struct line *line, char byte)
{
	bool second = byte == '\n' && line->after_cr;

	line->after_cr = byte == '\r';
	if (second)
		return LINE_NONE;
	if (byte == '\r' || byte == '\n') {
		line->escape = PLAIN;
		return enter(line);
	}
	if (line->escape != PLAIN) {
		escape_byte(line, byte);
	} else if (byte == '\t' || (byte >= ' ' && byte <= '~')) {
		if (line->length == LINE_MAX_BYTES) {
			line->too_long = true;
			return LINE_NONE;
		}
		line->text[line->length] = byte == '\t' ? ' ' : byte;
		line->put(&line->text[line->length], 1);
		line->length++;
	} else {
		control(line, byte);
	}
	return LINE_NONE;
}
