// firmware: http text
#include "fuzz.h"

#include "http.h"

const char *const fuzz_dictionary[] = {
	"GET ", "HEAD ", "POST ", "/", "/status", "/status?", "/%73tatus", "http://", "HTTP://", " HTTP/1.1\r\n",
	" HTTP/1.0\n", "Host: b\r\n", "Content-Length: 1\r\n", "host:", "\r\n\r\n", "\r\n", "\n\n", ": ", " ", NULL,
};

void fuzz_one(const char *data, size_t length)
{
	enum http_page page = HTTP_PAGE_STATUS;
	enum http_status status = http_judge(data, length, &page);

	require(!http_is_head(data, length) || length >= sizeof("HEAD ") - 1);
	switch (status) {
	case HTTP_INCOMPLETE:
		require(length <= HTTP_MAX_HEAD);
		break;
	case HTTP_OK:
	case HTTP_NOT_FOUND:
	case HTTP_METHOD_NOT_ALLOWED:
	case HTTP_NOT_IMPLEMENTED:
		/* Only a whole head is judged so. */
		require(length >= sizeof("G / HTTP/1.0\r\n\r\n") - 1);
		break;
	default:
		require(status == HTTP_BAD_REQUEST || status == HTTP_HEAD_TOO_LARGE);
	}
}
