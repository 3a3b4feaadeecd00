#include "web_request.h"

#include <string.h>

#include "web_chars.h"

/* More digits than this are a number that is larger than all others. */
#define DIGITS 18u
#define LARGEST 1000000000000000000u

static size_t length_of(struct web_slice slice)
{
	return (size_t)(slice.end - slice.at);
}

static bool equals(struct web_slice slice, const char *string)
{
	size_t length = strlen(string);

	return length_of(slice) == length && memcmp(slice.at, string, length) == 0;
}

/* Compare with a string in lower case, in either case. */
static bool equals_folded(struct web_slice slice, const char *string)
{
	if (length_of(slice) != strlen(string))
		return false;
	for (; slice.at < slice.end; slice.at++, string++) {
		uint8_t c = *slice.at;

		if (c >= 'A' && c <= 'Z')
			c |= 0x20;
		if (c != (uint8_t)*string)
			return false;
	}
	return true;
}

static struct web_slice trimmed(struct web_slice slice)
{
	while (slice.at < slice.end && web_is_blank(*slice.at))
		slice.at++;
	while (slice.at < slice.end && web_is_blank(slice.end[-1]))
		slice.end--;
	return slice;
}

/* Cut what stands before the first `c` off `rest`, and `c`; all of it if there is none. */
static struct web_slice cut(struct web_slice *rest, uint8_t c)
{
	struct web_slice first = *rest;
	const uint8_t *at = memchr(rest->at, c, length_of(*rest));

	if (at != NULL)
		first.end = at;
	rest->at = at == NULL ? rest->end : at + 1;
	return first;
}

/* Cut the next line, without its end, off `rest`; false: there is none. */
static bool next_line(struct web_slice *rest, struct web_slice *line)
{
	if (rest->at == rest->end)
		return false;
	*line = cut(rest, '\n');
	if (line->at < line->end && line->end[-1] == '\r')
		line->end--;
	return true;
}

/* The next value of the field `name` from `rest` on; false: there is none. */
static bool next_value(struct web_slice *rest, const char *name, struct web_slice *value)
{
	while (next_line(rest, value))
		if (equals_folded(cut(value, ':'), name)) {
			*value = trimmed(*value);
			return true;
		}
	return false;
}

static bool has_close(struct web_slice fields)
{
	struct web_slice value;

	while (next_value(&fields, "connection", &value))
		while (value.at < value.end)
			if (equals_folded(trimmed(cut(&value, ',')), "close"))
				return true;
	return false;
}

static uint64_t number(struct web_slice digits)
{
	uint64_t value = 0;

	while (digits.at < digits.end && *digits.at == '0')
		digits.at++;
	if (length_of(digits) > DIGITS)
		return LARGEST;
	for (; digits.at < digits.end; digits.at++)
		value = (value << 3) + (value << 1) + (uint64_t)(*digits.at - '0');
	return value;
}

static bool is_number(struct web_slice slice)
{
	for (; slice.at < slice.end; slice.at++)
		if (!web_is_digit(*slice.at))
			return false;
	return true;
}

static void find_content(struct web_request *request)
{
	struct web_slice fields = request->fields, value;

	if (next_value(&fields, "transfer-encoding", &value)) {
		request->content = WEB_CHUNKED;
		return;
	}
	fields = request->fields;
	if (next_value(&fields, "content-length", &value)) {
		request->valid = is_number(value) && value.at < value.end;
		request->content_length = request->valid ? number(value) : 0;
		if (request->content_length != 0)
			request->content = WEB_SIZED;
	}
}

void web_parse(struct web_request *request, const uint8_t *head, size_t length)
{
	struct web_slice rest = { head, head + length };
	struct web_slice line, method;

	*request = (struct web_request){ 0 };
	if (length >= 2 && memcmp(head, "\r\n", 2) == 0)
		rest.at += 2;
	if (!next_line(&rest, &line))
		return;
	request->fields = rest;
	method = cut(&line, ' ');
	request->get = equals(method, "GET");
	request->head = equals(method, "HEAD");
	request->target = cut(&line, ' ');
	request->valid = request->target.at < request->target.end;
	request->close = equals(line, "HTTP/1.0") || has_close(rest);
	find_content(request);
}

/* --- paths ------------------------------------------------------------------------------------- */

/* RFC 9110, 7.2: host and port. */
static bool is_host(struct web_slice host)
{
	const char *others = "-._~!$&'()*+;=";
	const uint8_t *begin = host.at;
	bool literal = host.at < host.end && *host.at == '[';

	if (literal) {
		begin = ++host.at;
		while (host.at < host.end && (web_is_alphanumeric(*host.at) || *host.at == ':' ||
		       web_is_among(*host.at, others)))
			host.at++;
		if (host.at == begin || host.at == host.end || *host.at++ != ']')
			return false;
	} else {
		while (host.at < host.end) {
			if (*host.at == '%' && host.end - host.at >= 3 && web_hex(host.at[1]) >= 0 &&
			    web_hex(host.at[2]) >= 0)
				host.at += 3;
			else if (web_is_alphanumeric(*host.at) || web_is_among(*host.at, others))
				host.at++;
			else
				break;
		}
		if (host.at == begin)
			return false;
	}
	if (host.at < host.end && *host.at++ != ':')
		return false;
	return is_number(host);
}

/* The path of a target, still encoded; false: the target is invalid. */
static bool find_path(struct web_slice target, struct web_slice *path)
{
	struct web_slice host;
	const uint8_t *slash;

	*path = cut(&target, '?');
	if (path->at < path->end && *path->at == '/')
		return true;
	host = *path;
	if (length_of(host) < 7)
		return false;
	host.end = host.at + 7;
	if (!equals_folded(host, "http://"))
		return false;
	host.at = host.end;
	host.end = path->end;
	slash = memchr(host.at, '/', length_of(host));
	path->at = slash == NULL ? path->end : slash;
	host.end = path->at;
	return is_host(host);
}

/* Decode a segment to `out`; its length. `nul`: it has a NUL. */
static size_t decode(struct web_slice segment, uint8_t *out, bool *nul)
{
	size_t length = 0;

	while (segment.at < segment.end) {
		uint8_t c = *segment.at++;

		if (c == '%' && segment.end - segment.at >= 2 && web_hex(segment.at[0]) >= 0 &&
		    web_hex(segment.at[1]) >= 0) {
			c = (uint8_t)(web_hex(segment.at[0]) << 4 | web_hex(segment.at[1]));
			segment.at += 2;
			*nul |= c == '\0';
			if (c == '/') { /* it is part of a name */
				memcpy(out + length, "%2F", 3);
				length += 3;
				continue;
			}
		}
		out[length++] = c;
	}
	return length;
}

size_t web_path(struct web_slice target, uint8_t *path)
{
	struct web_slice rest;
	size_t length = 0; /* of whole segments, each with a slash before it */
	bool folder = false, nul = false, more;

	if (!find_path(target, &rest))
		return 0;
	if (rest.at < rest.end)
		rest.at++;
	do {
		struct web_slice segment = rest;
		const uint8_t *slash = memchr(rest.at, '/', length_of(rest));
		uint8_t *at = path + length + 1;
		size_t octets;

		more = slash != NULL;
		if (more) {
			segment.end = slash;
			rest.at = slash + 1;
		}
		octets = decode(segment, at, &nul);
		folder = octets == 0 || (octets == 1 && at[0] == '.');
		if (octets == 2 && at[0] == '.' && at[1] == '.') {
			folder = true;
			while (length > 0 && path[--length] != '/')
				;
		} else if (!folder) {
			at[-1] = '/';
			length += octets + 1;
		}
	} while (more);
	if (nul)
		return 0;
	if (folder || length == 0)
		path[length++] = '/';
	return length;
}

/* --- conditions -------------------------------------------------------------------------------- */

/* The values of all lines of a field, with a comma between them, byte by byte. */
struct list {
	struct web_slice rest, value;
	const char *name;
	bool begun;
};

/* The next byte without taking it; -1 at the end. */
static int peek(struct list *list)
{
	struct web_slice rest = list->rest, value;

	if (list->value.at < list->value.end)
		return *list->value.at;
	if (!next_value(&rest, list->name, &value))
		return -1;
	return ',';
}

static void take(struct list *list)
{
	if (list->value.at < list->value.end)
		list->value.at++;
	else
		next_value(&list->rest, list->name, &list->value);
}

static struct list open_list(struct web_slice fields, const char *name)
{
	struct list list = { .rest = fields, .name = name };

	list.begun = next_value(&list.rest, name, &list.value);
	return list;
}

/* Whether the field has one line, and that is `*`. */
static bool is_any(struct web_slice fields, const char *name)
{
	struct web_slice value;

	return next_value(&fields, name, &value) && equals(value, "*") &&
	       !next_value(&fields, name, &value);
}

/* Take an entity tag off the list; false: there is none. `same`: it is this one. */
static bool take_tag(struct list *list, const uint8_t etag[WEB_ETAG], bool *same)
{
	size_t length = 0;
	int c;

	*same = true;
	for (;;) {
		c = peek(list);
		if (length == 0 ? c != '"' : c < 0x21 || c == 0x7f)
			return false;
		take(list);
		*same = *same && length < WEB_ETAG && (uint8_t)c == etag[length];
		length++;
		if (c == '"' && length > 1) {
			*same = *same && length == WEB_ETAG;
			return true;
		}
	}
}

/* Whether a tag is in a list of them; weak ones count with `weak`. In an invalid list none is. */
static bool has_tag(struct list list, const uint8_t etag[WEB_ETAG], bool weak)
{
	bool found = false;

	for (;;) {
		bool is_weak = false, same;
		int c;

		while ((c = peek(&list)) >= 0 && (web_is_blank((uint8_t)c) || c == ','))
			take(&list);
		if (c < 0)
			return found;
		if (c == 'W') {
			take(&list);
			if (peek(&list) != '/')
				return false;
			take(&list);
			is_weak = true;
		}
		if (!take_tag(&list, etag, &same))
			return false;
		found |= same && (weak || !is_weak);
		while ((c = peek(&list)) >= 0 && web_is_blank((uint8_t)c))
			take(&list);
		if (c >= 0 && c != ',')
			return false;
	}
}

bool web_if_match(const struct web_request *request, const uint8_t etag[WEB_ETAG])
{
	struct list list = open_list(request->fields, "if-match");

	return !list.begun || is_any(request->fields, "if-match") || has_tag(list, etag, false);
}

bool web_if_none_match(const struct web_request *request, const uint8_t etag[WEB_ETAG])
{
	struct list list = open_list(request->fields, "if-none-match");

	return list.begun && (is_any(request->fields, "if-none-match") || has_tag(list, etag, true));
}

/* Whether If-Range lets a range be served: it is not there, or has this tag alone. */
static bool range_holds(struct web_slice fields, const uint8_t etag[WEB_ETAG])
{
	struct web_slice value, other;

	if (!next_value(&fields, "if-range", &value))
		return true;
	return length_of(value) == WEB_ETAG && memcmp(value.at, etag, WEB_ETAG) == 0 &&
	       !next_value(&fields, "if-range", &other);
}

/* Take digits off a slice. */
static struct web_slice take_digits(struct web_slice *rest)
{
	struct web_slice digits = *rest;

	while (rest->at < rest->end && web_is_digit(*rest->at))
		rest->at++;
	digits.end = rest->at;
	return digits;
}

struct web_range web_range(const struct web_request *request, uint32_t size,
	const uint8_t etag[WEB_ETAG])
{
	struct web_range whole = { WEB_WHOLE, 0, size }, none = { WEB_UNSATISFIABLE, 0, 0 };
	struct web_slice fields = request->fields, value, other, unit, first, last;
	uint64_t begin, end;

	if (!request->get || !next_value(&fields, "range", &value) ||
	    next_value(&fields, "range", &other) || !range_holds(request->fields, etag))
		return whole;
	unit = value;
	if (length_of(value) < 6)
		return whole;
	unit.end = unit.at + 6;
	if (!equals_folded(unit, "bytes="))
		return whole;
	value.at = unit.end;
	value = trimmed(value);
	first = take_digits(&value);
	if (value.at == value.end || *value.at++ != '-')
		return whole;
	last = take_digits(&value);
	if (value.at != value.end || (first.at == first.end && last.at == last.end))
		return whole;
	if (first.at == first.end) {
		end = number(last);
		if (end > size)
			end = size;
		return end == 0 ? none : (struct web_range){ WEB_PART, size - (uint32_t)end, (uint32_t)end };
	}
	begin = number(first);
	end = last.at < last.end ? number(last) : size - (uint64_t)1;
	if (last.at < last.end && end < begin)
		return whole;
	if (begin >= size)
		return none;
	if (end > size - 1)
		end = size - 1;
	return (struct web_range){ WEB_PART, (uint32_t)begin, (uint32_t)(end - begin + 1) };
}
