/* The part of HTTP/1.1 (RFC 9112) that a status page needs: one GET a connection. */
#ifndef TREBUCHET_HTTP_H
#define TREBUCHET_HTTP_H

#include <stddef.h>

#include "text.h"

/* A request head longer than this is answered with 431. */
#define HTTP_MAX_HEAD 2048

enum http_status {
	HTTP_INCOMPLETE = 0, /* the head has not come to its end */
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_METHOD_NOT_ALLOWED = 405,
	HTTP_HEAD_TOO_LARGE = 431,
	HTTP_INTERNAL_ERROR = 500,
};

/*
 * Judge the bytes received so far. HTTP_OK means GET /status; a query after the path is ignored.
 * Nothing past `length` is read. A wrong request line is told as soon as it is there.
 */
enum http_status http_judge(const char *data, size_t length);

/* Append a whole response; `body` is JSON. Content-Length and "Connection: close" are set. */
void http_respond(struct text *out, enum http_status status, const char *body, size_t length);

/* The body that explains an error status, as a JSON object. */
const char *http_error_body(enum http_status status);

#endif
