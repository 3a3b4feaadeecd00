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
	while (*string != '\0')
		text_char(text, *string++);
}

/* Digit by digit from the top, by subtraction: the CPU has no divider, and a page has many numbers. */
void text_unsigned(struct text *text, uint64_t value)
{
	static const uint64_t powers[] = {
		10000000000000000000u, 1000000000000000000u, 100000000000000000u, 10000000000000000u,
		1000000000000000u, 100000000000000u, 10000000000000u, 1000000000000u, 100000000000u,
		10000000000u, 1000000000u, 100000000u, 10000000u, 1000000u, 100000u, 10000u, 1000u,
		100u, 10u,
	};
	/* The first ten are above 32 bits. */
	unsigned first = value >> 32 ? 0 : 10;
	bool shown = false;

	for (unsigned i = first; i < sizeof(powers) / sizeof(powers[0]); i++) {
		char digit = '0';

		while (value >= powers[i]) {
			value -= powers[i];
			digit++;
		}
		shown |= digit != '0';
		if (shown)
			text_char(text, digit);
	}
	text_char(text, (char)('0' + value));
}

void text_hex(struct text *text, uint32_t value, unsigned digits)
{
	while (digits > 0) {
		digits--;
		text_char(text, "0123456789abcdef"[(value >> (4 * digits)) & 15]);
	}
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
