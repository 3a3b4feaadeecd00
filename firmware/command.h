/*
 * Commands: a line of text in, a status and text out. The console, the management service and the
 * documentation have the same ones; the table is in commands.c.
 */
#ifndef TREBUCHET_COMMAND_H
#define TREBUCHET_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* A longer line is refused with TOO_LARGE. */
#define COMMAND_MAX_LINE 127
/* The name is one of them; a line with more is refused with BAD_ARGUMENT. */
#define COMMAND_MAX_WORDS 8

/* A line cut into words at blanks; word[0] is the command's name. */
struct words {
	unsigned count;
	const char *word[COMMAND_MAX_WORDS];
	char line[COMMAND_MAX_LINE + 1];
};

struct command {
	const char *name;
	const char *arguments; /* as in help: "ADDRESS [COUNT]" */
	const char *help;      /* one line */
	/*
	 * Returns a status of models/status.py. With another than OK the text is the reason, no longer
	 * than a line; none is needed where the status says it all.
	 */
	uint8_t (*run)(struct words *words, struct text *out);
};

extern const struct command commands[];
extern const unsigned command_count;

/*
 * Carry out a line. The text is the command's output, or `error: STATUS: reason`. A line without
 * words does nothing; one with bytes that are not printable ASCII is refused with BAD_ARGUMENT.
 * Output that did not fit is cut, and told by NO_ROOM.
 */
uint8_t command_run(const char *line, size_t length, struct text *out);

/* The row `help` of the table. */
uint8_t command_help(struct words *words, struct text *out);

/* Name of a status, as in models/status.py. */
const char *command_status_name(uint8_t status);

/* Is there a word `index`, and is it this one? */
bool words_is(const struct words *words, unsigned index, const char *word);
/* A number of 32 bits, decimal or 0x and hexadecimal; false if the word is none, or missing. */
bool words_number(const struct words *words, unsigned index, uint32_t *value);

#endif
