/* Kinds of characters in HTTP (models/http/grammar.py). */
#ifndef TREBUCHET_WEB_CHARS_H
#define TREBUCHET_WEB_CHARS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline bool web_is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static inline bool web_is_alphanumeric(uint8_t c)
{
	return web_is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

static inline bool web_is_among(uint8_t c, const char *characters)
{
	return c != '\0' && strchr(characters, c) != NULL;
}

static inline bool web_is_blank(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* RFC 9110, 5.6.2. */
static inline bool web_is_token(uint8_t c)
{
	return web_is_alphanumeric(c) || web_is_among(c, "!#$%&'*+-.^_`|~");
}

/* RFC 9110, 5.5: characters of a field's value, with blanks. */
static inline bool web_is_value(uint8_t c)
{
	return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static inline int web_hex(uint8_t c)
{
	if (web_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
