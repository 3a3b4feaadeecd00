/* Text into a buffer of fixed size, without printf. */
#ifndef TREBUCHET_TEXT_H
#define TREBUCHET_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *start;
	size_t length;   /* characters written */
	size_t room;     /* size of the buffer */
	bool overflow;   /* something did not fit; it was left out whole */
};

struct text text_in(char *buffer, size_t room);
void text_char(struct text *text, char c);
void text_plain(struct text *text, const char *string);
void text_unsigned(struct text *text, uint64_t value);
void text_hex(struct text *text, uint32_t value, unsigned digits);
/* Milliseconds as seconds with three decimals; blanks before them make up `width` characters. */
void text_seconds(struct text *text, uint32_t milliseconds, unsigned width);
/* The text as a C string; the byte after its room must be the buffer's, too. */
const char *text_string(struct text *text);
/* A JSON string with its quotes; control characters, quotes and backslashes are escaped. */
void text_json(struct text *text, const char *string);
/* "02:00:00:00:00:01"; the first byte on the wire is the most significant one. */
void text_mac(struct text *text, uint64_t mac);
/* "192.0.2.2" */
void text_ip(struct text *text, uint32_t ip);

/* The value of a hexadecimal digit in either case, or -1. */
static inline int text_digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
