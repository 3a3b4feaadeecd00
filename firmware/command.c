#include "command.h"

#include <string.h>

#include <generated/trebuchet_status_codes.h>

/* Of a failed command's text, so much is shown. */
#define REASON_BYTES 100

bool words_is(const struct words *words, unsigned index, const char *word)
{
	return index < words->count && strcmp(words->word[index], word) == 0;
}

/* The value of a digit; 16 if it is none. */
static uint32_t digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10 : 16;
}

bool words_number(const struct words *words, unsigned index, uint32_t *value)
{
	const char *at;
	uint32_t base = 10, result = 0;

	if (index >= words->count)
		return false;
	at = words->word[index];
	if (at[0] == '0' && (at[1] | 0x20) == 'x') {
		base = 16;
		at += 2;
	}
	if (*at == '\0')
		return false;
	for (; *at != '\0'; at++) {
		uint32_t digit = digit_value(*at);
		/* 10 and 16 times, without a multiplier. */
		uint32_t shifted = base == 16 ? result << 4 : (result << 3) + (result << 1);

		if (digit >= base || result > (base == 16 ? 0x0fffffffu : 429496729u))
			return false;
		result = shifted + digit;
		if (result < shifted)
			return false;
	}
	*value = result;
	return true;
}

/* Cut a line into words; OK, or why that cannot be. */
static uint8_t cut(const char *line, size_t length, struct words *words)
{
	bool inside = false;

	words->count = 0;
	while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
		length--;
	if (length > COMMAND_MAX_LINE)
		return TREBUCHET_STATUS_TOO_LARGE;
	for (size_t i = 0; i < length; i++) {
		bool blank = line[i] == ' ' || line[i] == '\t';

		if (!blank && (line[i] <= ' ' || line[i] > '~'))
			return TREBUCHET_STATUS_BAD_ARGUMENT;
		words->line[i] = blank ? '\0' : line[i];
		if (!blank && !inside) {
			if (words->count == COMMAND_MAX_WORDS)
				return TREBUCHET_STATUS_BAD_ARGUMENT;
			words->word[words->count++] = &words->line[i];
		}
		inside = !blank;
	}
	words->line[length] = '\0';
	return TREBUCHET_STATUS_OK;
}

static const struct command *find(const char *name)
{
	for (unsigned i = 0; i < command_count; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

const char *command_status_name(uint8_t status)
{
	static const char *const names[] = TREBUCHET_STATUS_NAMES;

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "?";
}

static void write_form(struct text *out, const struct command *command)
{
	text_plain(out, command->name);
	if (command->arguments[0] != '\0')
		text_char(out, ' ');
	text_plain(out, command->arguments);
}

/* Put `error: STATUS: ` before what was written from `start` on, or before the command's form. */
static void explain(struct text *out, size_t start, uint8_t status, const struct command *command)
{
	char reason[REASON_BYTES + 1];
	size_t length = out->length - start;

	if (length > REASON_BYTES)
		length = REASON_BYTES;
	memcpy(reason, out->start + start, length);
	while (length > 0 && reason[length - 1] == '\n')
		length--;
	reason[length] = '\0';
	out->length = start;
	out->overflow = false;
	text_plain(out, "error: ");
	text_plain(out, command_status_name(status));
	if (length > 0) {
		text_plain(out, ": ");
		text_plain(out, reason);
	} else if (command != NULL && status == TREBUCHET_STATUS_BAD_ARGUMENT) {
		text_plain(out, ": the form is: ");
		write_form(out, command);
	}
	text_char(out, '\n');
}

uint8_t command_run(const char *line, size_t length, struct text *out)
{
	struct words words;
	size_t start = out->length;
	uint8_t status = cut(line, length, &words);
	const struct command *command = NULL;

	if (status == TREBUCHET_STATUS_OK) {
		if (words.count == 0)
			return status;
		command = find(words.word[0]);
		if (command != NULL) {
			status = command->run(&words, out);
		} else {
			status = TREBUCHET_STATUS_UNKNOWN_COMMAND;
			text_plain(out, "'help' lists the commands");
		}
	}
	if (status != TREBUCHET_STATUS_OK)
		explain(out, start, status, command);
	else if (out->overflow)
		status = TREBUCHET_STATUS_NO_ROOM;
	return status;
}

uint8_t command_help(struct words *words, struct text *out)
{
	const struct command *command;

	if (words->count > 2)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (words->count == 2) {
		command = find(words->word[1]);
		if (command == NULL)
			return TREBUCHET_STATUS_UNKNOWN_COMMAND;
		write_form(out, command);
		text_plain(out, ": ");
		text_plain(out, command->help);
		text_char(out, '\n');
		return TREBUCHET_STATUS_OK;
	}
	for (unsigned i = 0; i < command_count; i++) {
		size_t start = out->length;

		write_form(out, &commands[i]);
		do
			text_char(out, ' ');
		while (out->length - start < 28 && !out->overflow);
		text_plain(out, commands[i].help);
		text_char(out, '\n');
	}
	return TREBUCHET_STATUS_OK;
}
