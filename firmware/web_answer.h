/* Responses to unusual requests, from an image of files (models/http/slow.py, models/http/image.py). */
#ifndef TREBUCHET_WEB_ANSWER_H
#define TREBUCHET_WEB_ANSWER_H

#include "text.h"
#include "web_request.h"

/* A header that is written for a response is no longer. */
#define WEB_HEADER 768u

/* An image: what is at address `base` is at `memory`. */
struct web_store {
	const uint8_t *memory;
	uint32_t base, bytes, index, mask;
};

/* What there is of the image's prepared responses (generated/trebuchet_web.h). */
enum web_prepared {
	WEB_BAD_REQUEST, WEB_NOT_FOUND, WEB_NOT_FOUND_OPEN, WEB_METHOD_NOT_ALLOWED,
	WEB_CONTENT_TOO_LARGE, WEB_UNAVAILABLE,
};

/* A file of a card that has no entry that is ready. */
struct catalogue_file;
struct web_large {
	struct catalogue_file *file;
	const struct fat *fat; /* the volume */
	uint32_t cluster, size;
	uint32_t serial, tag; /* high and low half of the entity tag */
	const char *type; /* of the media */
};

/* A response in two parts. */
struct web_answer {
	bool written;           /* the first part is the header that was written; else at `address` */
	bool close;
	uint32_t address, length;
	uint32_t rest_address, rest;
	size_t not_loaded;      /* bytes of the path of an object that is not in memory; or 0 */
};

/* The prepared response; without its content, if the method is HEAD. */
struct web_answer web_prepared(const struct web_store *store, enum web_prepared which, bool head);
/*
 * Answer a request whose content, if it has some, has come. `path` has room for the bytes of the
 * target, and one. If the object's entry is not ready there is no answer but `not_loaded`, and the path.
 * What is written goes to `out`, which has room for WEB_HEADER bytes.
 */
struct web_answer web_respond(const struct web_store *store, const struct web_request *request,
	uint8_t *path, struct text *out);
/*
 * Answer a request for such a file. What is written is all of the response but the file's content, of which `rest`
 * bytes from `rest_address` on are to follow; the address is that in the file.
 */
struct web_answer web_respond_large(const struct web_request *request, const struct web_large *file, struct text *out);

#endif
