#include "web_body.h"

#include <string.h>

#include "web_chars.h"

enum web_progress web_body_start(struct web_body *body, const struct web_request *request)
{
	body->state = request->content == WEB_CHUNKED ? WEB_SIZE_LINE : WEB_LENGTH;
	body->left = body->total = body->trailers = body->length = 0;
	if (body->state == WEB_SIZE_LINE)
		return WEB_MORE;
	if (request->content_length > WEB_CONTENT)
		return WEB_TOO_LARGE;
	body->left = (uint32_t)request->content_length;
	return WEB_MORE;
}

static void skip_blanks(const uint8_t **at, const uint8_t *end)
{
	while (*at < end && web_is_blank(**at))
		++*at;
}

static bool skip_token(const uint8_t **at, const uint8_t *end)
{
	const uint8_t *begin = *at;

	while (*at < end && web_is_token(**at))
		++*at;
	return *at > begin;
}

/* RFC 9110, 5.6.4. */
static bool skip_quoted(const uint8_t **at, const uint8_t *end)
{
	if (*at == end || *(*at)++ != '"')
		return false;
	while (*at < end && web_is_value(**at)) {
		uint8_t c = *(*at)++;

		if (c == '"')
			return true;
		if (c == '\\') {
			if (*at == end || !web_is_value(**at))
				return false;
			++*at;
		}
	}
	return false;
}

/* RFC 9112, 7.1: at most eight digits, then extensions, which are ignored. */
static bool take_size(struct web_body *body)
{
	const uint8_t *at = body->line, *end = body->line + body->length;
	unsigned digits = 0;

	body->left = 0;
	for (; at < end && web_hex(*at) >= 0; at++, digits++)
		body->left = body->left << 4 | (uint32_t)web_hex(*at);
	if (digits == 0 || digits > 8)
		return false;
	while (at < end) {
		const uint8_t *before;

		skip_blanks(&at, end);
		if (at == end || *at++ != ';')
			return false;
		skip_blanks(&at, end);
		if (!skip_token(&at, end))
			return false;
		before = at;
		skip_blanks(&at, end);
		if (at == end || *at != '=') {
			at = before;
			continue;
		}
		at++;
		skip_blanks(&at, end);
		if (!skip_token(&at, end) && !skip_quoted(&at, end))
			return false;
	}
	return true;
}

static bool is_field(const uint8_t *at, const uint8_t *end)
{
	if (!skip_token(&at, end) || at == end || *at++ != ':')
		return false;
	while (at < end && web_is_value(*at))
		at++;
	return at == end;
}

/* A whole line, without its end. */
static enum web_progress take_line(struct web_body *body)
{
	switch (body->state) {
	case WEB_SIZE_LINE:
		if (!take_size(body))
			return WEB_INVALID;
		body->state = body->left != 0 ? WEB_DATA_END : WEB_TRAILER_LINE;
		if (body->left > WEB_CONTENT - body->total)
			return WEB_TOO_LARGE;
		body->total += body->left;
		return WEB_MORE;
	case WEB_DATA_END:
		body->state = WEB_SIZE_LINE;
		return WEB_MORE;
	default:
		if (body->length == 0)
			return WEB_DONE;
		body->trailers += body->length + 2;
		return is_field(body->line, body->line + body->length) && body->trailers <= WEB_TRAILERS ?
			WEB_MORE : WEB_INVALID;
	}
}

enum web_progress web_body_feed(struct web_body *body, uint8_t byte)
{
	enum web_progress progress;

	if (body->state == WEB_LENGTH)
		return --body->left == 0 ? WEB_DONE : WEB_MORE;
	if (body->left > 0) {
		body->left--;
		return WEB_MORE;
	}
	if (byte == '\n') {
		if (body->length == 0 || body->line[body->length - 1] != '\r')
			return WEB_INVALID;
		body->length--;
		progress = take_line(body);
		body->length = 0;
		return progress;
	}
	if (body->length > 0 && body->line[body->length - 1] == '\r')
		return WEB_INVALID;
	body->line[body->length++] = byte;
	if (body->length > WEB_LINE || (body->state == WEB_DATA_END && byte != '\r'))
		return WEB_INVALID;
	return WEB_MORE;
}
