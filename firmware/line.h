/*
 * A line editor for a terminal: backspace or DEL, ^U and ^C clear, arrows up and down go through
 * the last lines. Enter is CR, LF or CRLF.
 */
#ifndef TREBUCHET_LINE_H
#define TREBUCHET_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_MAX_BYTES 127
#define LINE_HISTORY 4
#define LINE_PROMPT "trebuchet> "

enum line_event {
	LINE_NONE,
	LINE_DONE,     /* `text` is a line of `length` bytes; line_prompt() goes on to the next */
	LINE_TOO_LONG, /* the line had more than LINE_MAX_BYTES and is gone; likewise */
};

struct line {
	char text[LINE_MAX_BYTES + 1];
	uint8_t length;
	bool too_long;
	bool after_cr;
	uint8_t escape; /* how much of an escape sequence has come */
	uint8_t stored; /* lines in the history */
	uint8_t shown;  /* 0: a line of its own; else so many lines back in the history */
	char history[LINE_HISTORY][LINE_MAX_BYTES + 1]; /* the newest first */
	void (*put)(const char *data, size_t length);
};

/* An empty line and history; `put` writes to the terminal. No prompt yet. */
void line_start(struct line *line, void (*put)(const char *data, size_t length));
/* Begin an empty line. */
void line_prompt(struct line *line);
/* Write prompt and line on a terminal line that is empty, or after line_hide(). */
void line_show(const struct line *line);
/* Take prompt and line off the terminal, to write something else in their place. */
void line_hide(const struct line *line);
/* A byte from the terminal. */
enum line_event line_byte(struct line *line, char byte);

#endif
