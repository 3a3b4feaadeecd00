#include "text.h"

struct text text_in(char *buffer, size_t room)
{
	struct text text = { .start = buffer, .length = 0, .room = room, .overflow = false };

	return text;
}

void text_char(struct text *text, char c)
{
	if (text->length == text->room) {
		text->overflow = true;
		return;
	}
	text->start[text->length++] = c;
}

void text_plain(struct text *text, const char *string)
{
	char *at = text->start + text->length;
	const char *end = text->start + text->room;

	for (; *string != '\0'; string++) {
		if (at == end) {
			text->overflow = true;
			break;
		}
		*at++ = *string;
	}
	text->length = (size_t)(at - text->start);
}

/* How often `power` goes into `value`, which keeps the rest. */
static char digit_of(uint32_t *value, uint32_t power)
{
	char digit = '0';

	for (; *value >= power; digit++)
		*value -= power;
	return digit;
}

static char long_digit_of(uint64_t *value, uint64_t power)
{
	char digit = '0';

	for (; *value >= power; digit++)
		*value -= power;
	return digit;
}

/* Digit by digit from the top, by subtraction: the CPU has no divider, and a page has many numbers. */
void text_unsigned(struct text *text, uint64_t value)
{
	static const uint64_t long_powers[] = {
		10000000000000000000u, 1000000000000000000u, 100000000000000000u, 10000000000000000u,
		1000000000000000u, 100000000000000u, 10000000000000u, 1000000000000u, 100000000000u,
		10000000000u, 1000000000u,
	};
	static const uint32_t powers[] = {
		1000000000u, 100000000u, 10000000u, 1000000u, 100000u, 10000u, 1000u, 100u, 10u, 1u,
	};
	char digits[21];
	unsigned count = 0, first = 0;
	uint32_t rest;

	if (value >> 32) {
		for (unsigned i = 0; i < sizeof(long_powers) / sizeof(long_powers[0]); i++)
			digits[count++] = long_digit_of(&value, long_powers[i]);
		first = 1;
	}
	rest = (uint32_t)value;
	for (unsigned i = first; i < sizeof(powers) / sizeof(powers[0]); i++)
		if (count > 0 || rest >= powers[i] || powers[i] == 1)
			digits[count++] = digit_of(&rest, powers[i]);
	digits[count] = '\0';
	/* Those of a long number may begin with zeros. */
	for (first = 0; digits[first] == '0' && first + 1 < count;)
		first++;
	text_plain(text, digits + first);
}

void text_hex(struct text *text, uint32_t value, unsigned digits)
{
	while (digits > 0) {
		digits--;
		text_char(text, "0123456789abcdef"[(value >> (4 * digits)) & 15]);
	}
}

void text_seconds(struct text *text, uint32_t milliseconds, unsigned width)
{
	char buffer[12];
	struct text digits = text_in(buffer, sizeof(buffer));
	unsigned length;

	text_unsigned(&digits, milliseconds);
	/* At least 0.000. */
	length = digits.length < 4 ? 4 : (unsigned)digits.length;
	for (unsigned i = length + 1; i < width; i++)
		text_char(text, ' ');
	for (unsigned left = length; left > 0; left--) {
		if (left == 3)
			text_char(text, '.');
		text_char(text, left > digits.length ? '0' : buffer[digits.length - left]);
	}
}

const char *text_string(struct text *text)
{
	text->start[text->length] = '\0';
	return text->start;
}

void text_json(struct text *text, const char *string)
{
	text_char(text, '"');
	for (; *string != '\0'; string++) {
		if (*string == '"' || *string == '\\') {
			text_char(text, '\\');
			text_char(text, *string);
		} else if ((unsigned char)*string < 0x20) {
			text_plain(text, "\\u");
			text_hex(text, (unsigned char)*string, 4);
		} else {
			text_char(text, *string);
		}
	}
	text_char(text, '"');
}

void text_mac(struct text *text, uint64_t mac)
{
	for (int byte = 5; byte >= 0; byte--) {
		text_hex(text, (uint32_t)(mac >> (8 * byte)) & 0xff, 2);
		if (byte > 0)
			text_char(text, ':');
	}
}

void text_ip(struct text *text, uint32_t ip)
{
	for (int byte = 3; byte >= 0; byte--) {
		text_unsigned(text, (ip >> (8 * byte)) & 0xff);
		if (byte > 0)
			text_char(text, '.');
	}
}
