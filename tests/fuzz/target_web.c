// firmware: web_request web_body web_answer crc32 text
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "crc32.h"
#include "web_answer.h"
#include "web_body.h"

/*
 * An input is 32 bytes of an entry of the index, then a request and its content. The path that it
 * names is in the index if bit 7 of the first byte says so.
 */
#define ENTRY 32u
#define BASE 0x40000000u
#define BYTES 1024u /* a bucket, and the entry behind 512 bytes of an object */

const char *const fuzz_dictionary[] = {
	"\r\n", "\r\n\r\n", "GET ", "HEAD ", " HTTP/1.1\r\n", " HTTP/1.0\r\n", "http://h", "http://[::1]:80/",
	"/../", "/./", "//", "%2F", "%2e", "%00", "Host: h\r\n", "Range: bytes=", "bytes=-5", "0-",
	"If-Range: ", "If-Match: ", "If-None-Match: ", "W/", "\"0000000000000000\"", "\"a\",", "*",
	"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\n", "0\r\n", ";a=\"b\\\"\"",
	"999999999999999999", "Connection: close\r\n", NULL,
};

static uint8_t memory[BYTES];

static void make_store(struct web_store *store, const uint8_t *entry, const uint8_t *path, size_t length)
{
	uint32_t slot[2] = { crc32_of(0, path, length), BASE + 512 };

	*store = (struct web_store){ memory, BASE, BYTES, BASE, entry[0] >> 4 & 7 };
	memset(memory, 'x', sizeof(memory));
	memcpy(memory + 64 * (slot[0] & store->mask) % 512, slot, sizeof(slot));
	memcpy(memory + 512, entry, ENTRY);
	memory[512] |= 1;
	memory[513] = (uint8_t)length;
	if (length <= WEB_PATH)
		memcpy(memory + 512 + ENTRY, path, length);
}

static void check(const struct web_answer *answer, const struct text *out, const uint8_t *entry)
{
	uint32_t size = entry[16] | (uint32_t)entry[17] << 8 | (uint32_t)entry[18] << 16 |
			(uint32_t)entry[19] << 24;

	require(!out->overflow);
	require(answer->rest <= size);
	require(answer->written == (out->length > 0));
	if (answer->written) {
		require(answer->length == out->length && out->length <= WEB_HEADER);
		require(memcmp(out->start + out->length - 4, "\r\n\r\n", 4) == 0);
	}
}

/* Content of the request: what comes after the end is not taken. */
static void feed(const struct web_request *request, const uint8_t *at, const uint8_t *end)
{
	static struct web_body body;
	enum web_progress progress = web_body_start(&body, request);
	uint32_t taken = 0;

	for (; progress == WEB_MORE && at < end; at++, taken++)
		progress = web_body_feed(&body, *at);
	if (progress == WEB_DONE && request->content == WEB_SIZED)
		require(taken == request->content_length && taken <= WEB_CONTENT);
}

void fuzz_one(const char *data, size_t length)
{
	const uint8_t *entry = (const uint8_t *)data, *head = entry + ENTRY, *end = entry + length;
	const uint8_t *at = head;
	char written[WEB_HEADER];
	struct text out = text_in(written, sizeof(written));
	struct web_request request;
	struct web_answer answer;
	struct web_store store;
	size_t target, named;
	uint8_t *path;

	if (length < ENTRY)
		return;
	while (at < end && !(at - head >= 4 && memcmp(at - 4, "\r\n\r\n", 4) == 0))
		at++;
	web_parse(&request, head, (size_t)(at - head));
	target = (size_t)(request.target.end - request.target.at);
	path = malloc(target + 1);
	require(path != NULL);
	named = target == 0 ? 0 : web_path(request.target, path);
	require(named <= target + 1);
	require(named == 0 || path[0] == '/');
	make_store(&store, entry, path, (entry[0] & 0x80) != 0 ? named : 0);
	answer = web_respond(&store, &request, path, &out);
	check(&answer, &out, entry);
	if (request.content != WEB_NO_CONTENT)
		feed(&request, at, end);
	free(path);
}
