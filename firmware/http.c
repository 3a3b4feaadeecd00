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

/* Does the piece begin with the string? With `fold` 0x20 in either case; the string is then in lower case. */
static bool starts_with(struct slice piece, const char *string, char fold)
{
	for (; *string != '\0'; string++)
		if (piece.at == piece.end || (*piece.at++ | fold) != *string)
			return false;
	return true;
}

static bool equals(struct slice piece, const char *string, char fold)
{
	return (size_t)(piece.end - piece.at) == strlen(string) && starts_with(piece, string, fold);
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* RFC 9110, 5.6.2: the characters of a method and of a field name. */
static bool is_token(struct slice piece)
{
	if (piece.at == piece.end)
		return false;
	for (const char *at = piece.at; at < piece.end; at++) {
		bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');

		if (!letter && !is_digit(*at) && (*at == '\0' || strchr("!#$%&'*+-.^_`|~", *at) == NULL))
			return false;
	}
	return true;
}

/* Printable ASCII only, without those `refused`. (A char may be signed on the host; on the CPU it is not.) */
static bool is_visible(struct slice piece, const char *refused)
{
	for (const char *at = piece.at; at < piece.end; at++)
		if (*at <= 0x20 || *at >= 0x7f || strchr(refused, *at) != NULL)
			return false;
	return true;
}

/* RFC 9110, 5.5: a field value has no control characters but tabs. */
static bool is_value(struct slice piece)
{
	for (const char *at = piece.at; at < piece.end; at++)
		if (((unsigned char)*at < 0x20 && *at != '\t') || *at == 0x7f)
			return false;
	return true;
}

/* RFC 3986, 6.2.2.2: compare a path, its percent-encoded octets decoded, with those of the pages. */
static enum http_status judge_path(struct slice path, enum http_page *page)
{
	char decoded[sizeof("/status")];
	size_t length = 0;

	while (path.at < path.end) {
		unsigned octet = (unsigned char)*path.at++;

		if (octet == '%') {
			int high = path.end - path.at < 2 ? -1 : text_digit_value(path.at[0]);
			int low = high < 0 ? -1 : text_digit_value(path.at[1]);

			if (low < 0)
				return HTTP_BAD_REQUEST;
			octet = (unsigned)(high << 4 | low);
			path.at += 2;
		}
		if (length < sizeof(decoded))
			decoded[length++] = (char)octet;
	}
	/* An empty path is that of the front page (RFC 9110, 4.2.3). */
	if (length == 0 || (length == 1 && decoded[0] == '/'))
		*page = HTTP_PAGE_FRONT;
	else if (length != sizeof("/status") - 1 || memcmp(decoded, "/status", length) != 0)
		return HTTP_NOT_FOUND;
	return HTTP_OK;
}

/*
 * RFC 9112, 3.2: a target in origin form (/path?query) or absolute form (http://host/path?query, the
 * scheme in either case). An empty path is "/" (RFC 9110, 4.2.3); without a host, or with user
 * information, a target is invalid (4.2.1, 4.2.4).
 */
static enum http_status judge_target(struct slice target, enum http_page *page)
{
	struct slice path = target, authority;

	cut(&target, '?', &path);
	if (starts_with(path, "http://", 0x20)) {
		path.at += strlen("http://");
		authority = path;
		path.at = memchr(path.at, '/', (size_t)(path.end - path.at));
		if (path.at == NULL)
			path.at = path.end;
		authority.end = path.at;
		if (authority.at == authority.end || *authority.at == ':' || !is_visible(authority, "@"))
			return HTTP_BAD_REQUEST;
		if (path.at == path.end)
			return judge_path(path, page);
	}
	if (path.at == path.end || *path.at != '/')
		return HTTP_BAD_REQUEST;
	return judge_path(path, page);
}

/* RFC 9110, 9.1: a method that exists, but not for the page, is not an unknown one. */
static enum http_status judge_method(struct slice method)
{
	/* Those of RFC 9110, 9.3 and RFC 5789, each ended by a NUL. */
	static const char refused[] = "POST\0PUT\0DELETE\0CONNECT\0OPTIONS\0TRACE\0PATCH\0";

	if (equals(method, "GET", 0) || equals(method, "HEAD", 0))
		return HTTP_OK;
	for (const char *name = refused; *name != '\0'; name += strlen(name) + 1)
		if (equals(method, name, 0))
			return HTTP_METHOD_NOT_ALLOWED;
	return HTTP_NOT_IMPLEMENTED;
}

static enum http_status judge_request_line(struct slice line, bool *needs_host, enum http_page *page)
{
	struct slice method, target;
	enum http_status status;

	if (!cut(&line, ' ', &method) || !is_token(method))
		return HTTP_BAD_REQUEST;
	if (!cut(&line, ' ', &target) || target.at == target.end || !is_visible(target, "#"))
		return HTTP_BAD_REQUEST;
	/* RFC 9110, 2.5: of a higher minor version are answered as those of 1.1. */
	if (line.end - line.at != sizeof("HTTP/1.1") - 1 || !starts_with(line, "HTTP/1.", 0) ||
	    !is_digit(line.end[-1]))
		return HTTP_BAD_REQUEST;
	*needs_host = line.end[-1] != '0';
	status = judge_method(method);
	return status == HTTP_OK ? judge_target(target, page) : status;
}

/* Judge a field's value, and count lines of Host. */
static bool take_field(struct slice name, struct slice value, unsigned *hosts)
{
	while (value.at < value.end && (*value.at == ' ' || *value.at == '\t'))
		value.at++;
	while (value.at < value.end && (value.end[-1] == ' ' || value.end[-1] == '\t'))
		value.end--;
	if (equals(name, "host", 0x20)) {
		++*hosts;
		return is_visible(value, "/?#@"); /* RFC 9112, 3.2: what no host and port has; or nothing */
	}
	if (equals(name, "content-length", 0x20)) { /* RFC 9112, 6.3 */
		if (value.at == value.end)
			return false;
		for (; value.at < value.end; value.at++)
			if (!is_digit(*value.at))
				return false;
	}
	return is_value(value);
}

enum http_status http_judge(const char *data, size_t length, enum http_page *page)
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
	*page = HTTP_PAGE_STATUS;
	status = judge_request_line(line, &needs_host, page);
	if (status == HTTP_BAD_REQUEST)
		return status;
	while (next_line(&rest, &line)) {
		if ((size_t)(rest.at - data) > HTTP_MAX_HEAD)
			return HTTP_HEAD_TOO_LARGE;
		if (line.at == line.end)
			return hosts > 1 || hosts < needs_host ? HTTP_BAD_REQUEST : status;
		if (!cut(&line, ':', &name) || !is_token(name) || !take_field(name, line, &hosts))
			return HTTP_BAD_REQUEST;
	}
	return length > HTTP_MAX_HEAD ? HTTP_HEAD_TOO_LARGE : HTTP_INCOMPLETE;
}

bool http_is_head(const char *data, size_t length)
{
	struct slice rest = { data, data + length };

	while (starts_with(rest, "\r\n", 0))
		rest.at += 2;
	return starts_with(rest, "HEAD ", 0);
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
	case HTTP_REQUEST_TIMEOUT:
		return "Request Timeout";
	case HTTP_HEAD_TOO_LARGE:
		return "Request Header Fields Too Large";
	case HTTP_NOT_IMPLEMENTED:
		return "Not Implemented";
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
		return "{\"error\":\"only GET and HEAD are allowed\"}\n";
	case HTTP_REQUEST_TIMEOUT:
		return "{\"error\":\"the rest of the request did not come in time\"}\n";
	case HTTP_HEAD_TOO_LARGE:
		return "{\"error\":\"the request head is too large\"}\n";
	case HTTP_NOT_IMPLEMENTED:
		return "{\"error\":\"the method is unknown\"}\n";
	default:
		return "{\"error\":\"the status does not fit its buffer\"}\n";
	}
}

void http_head(struct text *out, enum http_status status, enum http_page page, size_t length)
{
	char buffer[20];
	struct text digits = text_in(buffer, sizeof(buffer));

	text_plain(out, "HTTP/1.1 ");
	text_unsigned(out, status);
	text_char(out, ' ');
	text_plain(out, reason(status));
	text_plain(out, "\r\nContent-Type: ");
	text_plain(out, status == HTTP_OK && page == HTTP_PAGE_FRONT ? "text/html" : "application/json");
	text_plain(out, "\r\nCache-Control: no-store\r\n");
	if (status == HTTP_METHOD_NOT_ALLOWED)
		text_plain(out, "Allow: GET, HEAD\r\n");
	text_plain(out, "Connection: close\r\nContent-Length:");
	text_unsigned(&digits, length);
	/* RFC 9110, 5.5: any number of spaces may stand before a value. */
	do
		text_char(out, ' ');
	while ((out->length + digits.length + 4) % 4 != 0);
	text_unsigned(out, length);
	text_plain(out, "\r\n\r\n");
}
