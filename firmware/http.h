/* The part of HTTP/1.1 (RFC 9110, RFC 9112) that two pages need: one GET or HEAD a connection. */
#ifndef TREBUCHET_HTTP_H
#define TREBUCHET_HTTP_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

/* A request head longer than this is answered with 431; the mailbox takes 1,024 bytes. */
#define HTTP_MAX_HEAD 1023

enum http_status {
	HTTP_INCOMPLETE = 0, /* the head has not come to its end */
	HTTP_OK = 200,
	HTTP_BAD_REQUEST = 400,
	HTTP_NOT_FOUND = 404,
	HTTP_METHOD_NOT_ALLOWED = 405,
	HTTP_REQUEST_TIMEOUT = 408,
	HTTP_HEAD_TOO_LARGE = 431,
	HTTP_INTERNAL_ERROR = 500,
	HTTP_NOT_IMPLEMENTED = 501,
};

/* What is asked for. */
enum http_page {
	HTTP_PAGE_STATUS, /* /status: JSON */
	HTTP_PAGE_FRONT, /* /: HTML, which shows what /status says */
};

/*
 * Judge the bytes received so far, whose lines end with CR LF. HTTP_OK means GET or HEAD of `page`; a query
 * after the path, a body and all fields but Host and Content-Length are ignored.
 * Nothing past `length` is read. A wrong request line is reported as soon as it is complete.
 */
enum http_status http_judge(const char *data, size_t length, enum http_page *page);

/* Is the method HEAD? Then the response has no body, whatever its status (RFC 9110, 9.3.2). */
bool http_is_head(const char *data, size_t length);

/*
 * Append the head of a response whose body is `length` bytes and ends the connection: the front page's HTML if
 * that is the `page` and the status HTTP_OK, else JSON. Its length is a multiple of four, so that the body
 * begins on a word.
 */
void http_head(struct text *out, enum http_status status, enum http_page page, size_t length);

/* No head is longer. */
#define HTTP_MAX_RESPONSE_HEAD 192

/* The body that explains an error status, as a JSON object. */
const char *http_error_body(enum http_status status);

#endif
