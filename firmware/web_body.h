/* Content of a request, which is discarded (models/http/body.py). */
#ifndef TREBUCHET_WEB_BODY_H
#define TREBUCHET_WEB_BODY_H

#include "web_request.h"

/* Limits, as models/http/limits.py has them. */
#define WEB_CONTENT 65536u
#define WEB_LINE 256u
#define WEB_TRAILERS 4096u

enum web_progress { WEB_MORE, WEB_DONE, WEB_INVALID, WEB_TOO_LARGE };

struct web_body {
	enum { WEB_LENGTH, WEB_SIZE_LINE, WEB_DATA_END, WEB_TRAILER_LINE } state;
	uint32_t left;     /* bytes of the content, or of a chunk */
	uint32_t total;    /* of all chunks */
	uint32_t trailers;
	uint32_t length;   /* bytes of the line so far */
	uint8_t line[WEB_LINE + 1];
};

/* Begin with the content of a request that has some. */
enum web_progress web_body_start(struct web_body *body, const struct web_request *request);
/* Take a byte. After another answer than WEB_MORE the content has ended. */
enum web_progress web_body_feed(struct web_body *body, uint8_t byte);

#endif
