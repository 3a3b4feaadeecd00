/*
 * Requests that the gateware's parser found legal but unusual, as models/http/slow.py answers them:
 * escapes, dot segments, absolute form, ranges, lists of tags, content. The head is not trusted to be
 * what that parser lets through: whatever comes, nothing outside it is read.
 */
#ifndef TREBUCHET_WEB_REQUEST_H
#define TREBUCHET_WEB_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longest path that the index has. */
#define WEB_PATH 96u
/* Longest ETag, with its quotes. */
#define WEB_ETAG 18u

struct web_slice {
	const uint8_t *at, *end;
};

enum web_content { WEB_NO_CONTENT, WEB_SIZED, WEB_CHUNKED };

struct web_request {
	bool valid;             /* if not, it is answered with 400 */
	bool get, head;         /* the method; neither: another one */
	bool close;             /* the connection closes behind the response */
	enum web_content content;
	uint64_t content_length;
	struct web_slice target;
	struct web_slice fields; /* the field lines, each with its CR LF */
};

/* A byte range of an object. */
struct web_range {
	enum { WEB_WHOLE, WEB_PART, WEB_UNSATISFIABLE } kind;
	uint32_t first, count;
};

/* Take a head of `length` bytes, from an empty line before it to the empty line at its end. */
void web_parse(struct web_request *request, const uint8_t *head, size_t length);
/*
 * The path that a target names, in canonical form, into `path`, which has room for as many bytes as
 * the target, and one. Returns its length; 0: the target is invalid.
 */
size_t web_path(struct web_slice target, uint8_t *path);
/* Whether If-Match lets the request through; whether If-None-Match names the tag, or any. */
bool web_if_match(const struct web_request *request, const uint8_t etag[WEB_ETAG]);
bool web_if_none_match(const struct web_request *request, const uint8_t etag[WEB_ETAG]);
/* What of an object of `size` bytes is asked for. */
struct web_range web_range(const struct web_request *request, uint32_t size,
	const uint8_t etag[WEB_ETAG]);

#endif
