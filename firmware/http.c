#include "http.h"

#include <stdbool.h>
#include <string.h>

/* A piece of the request: bytes from `at` to before `end`. */
struct slice {
	const char *at;
	const char *end;
};

/*
 * Cut the next line off `rest`; its end is CRLF, for the mailbox looks for the head's end like that.
 * A line with a bare CR or LF is shown as one that nothing can be (RFC 9112, 2.2): a space.
 */
static bool next_line(struct slice *rest, struct slice *line)
{
	const char *end = memchr(rest->at, '\n', (size_t)(rest->end - rest->at));

	if (end == NULL)
		return false;
	line->at = rest->at;
	line->end = memchr(rest->at, '\r', (size_t)(end - rest->at));
	rest->at = end + 1;
	if (line->end == NULL || line->end + 1 != end) {
		line->at = " ";
		line->end = line->at + 1;
	}
	return true;
}

static bool equals(struct slice piece, const char *string)
{
	size_t length = strlen(string);

	return (size_t)(piece.end - piece.at) == length && memcmp(piece.at, string, length) == 0;
}

static bool starts_with(struct slice piece, const char *string)
{
	size_t length = strlen(string);

	return (size_t)(piece.end - piece.at) >= length && memcmp(piece.at, string, length) == 0;
}

/* Cut the word before the next `separator` off `rest`; false when there is none. */
static bool cut(struct slice *rest, char separator, struct slice *word)
{
	const char *at = memchr(rest->at, separator, (size_t)(rest->end - rest->at));

	if (at == NULL)
		return false;
	word->at = rest->at;
	word->end = at;
	rest->at = at + 1;
	return true;
}

/* RFC 9110, 5.6.2: the characters of a method and of a field name. */
static bool is_token(struct slice piece)
{
	if (piece.at == piece.end)
		return false;
	for (const char *at = piece.at; at < piece.end; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
		bool digit = *at >= '0' && *at <= '9';

		if (!letter && !digit && (*at == '\0' || strchr("!#$%&'*+-.^_`|~", *at) == NULL))
			return false;
	}
	return true;
}

/* Printable ASCII only. (A char may be signed on the host; on the CPU it is not.) */
static bool is_visible(struct slice piece)
{
	for (const char *at = piece.at; at < piece.end; at++)
		if (*at <= 0x20 || *at >= 0x7f)
			return false;
	return piece.at < piece.end;
}

/* The path of a request target in origin form (/path?query) or absolute form (http://host/path). */
static bool path_of(struct slice target, struct slice *path)
{
	struct slice query;

	if (starts_with(target, "http://")) {
		target.at += strlen("http://");
		target.at = memchr(target.at, '/', (size_t)(target.end - target.at));
		if (target.at == NULL)
			return false;
	}
	if (target.at == target.end || *target.at != '/')
		return false;
	*path = target;
	if (cut(&target, '?', &query))
		*path = query;
	return true;
}

static bool is_name(struct slice piece, const char *lower)
{
	size_t length = strlen(lower);

	if ((size_t)(piece.end - piece.at) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((piece.at[i] | 0x20) != lower[i])
			return false;
	return true;
}

static enum http_status judge_request_line(struct slice line, bool *needs_host)
{
	struct slice method, target, path;

	if (!cut(&line, ' ', &method) || !is_token(method))
		return HTTP_BAD_REQUEST;
	if (!cut(&line, ' ', &target) || !is_visible(target))
		return HTTP_BAD_REQUEST;
	if (!equals(line, "HTTP/1.1") && !equals(line, "HTTP/1.0"))
		return HTTP_BAD_REQUEST;
	*needs_host = equals(line, "HTTP/1.1");
	if (!equals(method, "GET"))
		return HTTP_METHOD_NOT_ALLOWED;
	if (!path_of(target, &path))
		return HTTP_BAD_REQUEST;
	return equals(path, "/status") ? HTTP_OK : HTTP_NOT_FOUND;
}

enum http_status http_judge(const char *data, size_t length)
{
	struct slice rest = { data, data + length };
	struct slice line, name;
	bool needs_host = false;
	unsigned hosts = 0;
	enum http_status status;

	do { /* RFC 9112, 2.2: an empty line before the request line is ignored; two end a request */
		if (!next_line(&rest, &line))
			return length > HTTP_MAX_HEAD ? HTTP_HEAD_TOO_LARGE : HTTP_INCOMPLETE;
	} while (line.at == line.end);
	status = judge_request_line(line, &needs_host);
	if (status == HTTP_BAD_REQUEST)
		return status;
	while (next_line(&rest, &line)) {
		if ((size_t)(rest.at - data) > HTTP_MAX_HEAD)
			return HTTP_HEAD_TOO_LARGE;
		if (line.at == line.end)
			return needs_host && hosts != 1 ? HTTP_BAD_REQUEST : status;
		if (!cut(&line, ':', &name) || !is_token(name))
			return HTTP_BAD_REQUEST;
		hosts += is_name(name, "host");
	}
	return length > HTTP_MAX_HEAD ? HTTP_HEAD_TOO_LARGE : HTTP_INCOMPLETE;
}

static const char *reason(enum http_status status)
{
	switch (status) {
	case HTTP_OK:
		return "OK";
	case HTTP_BAD_REQUEST:
		return "Bad Request";
	case HTTP_NOT_FOUND:
		return "Not Found";
	case HTTP_METHOD_NOT_ALLOWED:
		return "Method Not Allowed";
	case HTTP_HEAD_TOO_LARGE:
		return "Request Header Fields Too Large";
	default:
		return "Internal Server Error";
	}
}

const char *http_error_body(enum http_status status)
{
	switch (status) {
	case HTTP_BAD_REQUEST:
		return "{\"error\":\"this is not an HTTP/1.1 request\"}\n";
	case HTTP_NOT_FOUND:
		return "{\"error\":\"there is nothing here; ask for /status\"}\n";
	case HTTP_METHOD_NOT_ALLOWED:
		return "{\"error\":\"only GET is allowed\"}\n";
	case HTTP_HEAD_TOO_LARGE:
		return "{\"error\":\"the request head is too large\"}\n";
	default:
		return "{\"error\":\"the status does not fit its buffer\"}\n";
	}
}

void http_head(struct text *out, enum http_status status, size_t length)
{
	char buffer[20];
	struct text digits = text_in(buffer, sizeof(buffer));

	text_plain(out, "HTTP/1.1 ");
	text_unsigned(out, status);
	text_char(out, ' ');
	text_plain(out, reason(status));
	text_plain(out, "\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n");
	if (status == HTTP_METHOD_NOT_ALLOWED)
		text_plain(out, "Allow: GET\r\n");
	text_plain(out, "Connection: close\r\nContent-Length:");
	text_unsigned(&digits, length);
	/* RFC 9110, 5.5: any number of spaces may stand before a value. */
	do
		text_char(out, ' ');
	while ((out->length + digits.length + 4) % 4 != 0);
	text_unsigned(out, length);
	text_plain(out, "\r\n\r\n");
}
