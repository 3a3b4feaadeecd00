#include "web_answer.h"

#include <string.h>

#include <generated/trebuchet_web.h>

#include "crc32.h"

#define BUCKET_BYTES 64u
#define ENTRY_BYTES 128u
#define PATH_OFFSET 32u
#define SAME_ROOM 256u

/* An entry of the index (models/http/image.py). */
struct object {
	uint32_t found, close, length, same;
	uint32_t found_header, close_header, same_header, same_close_header;
	uint8_t etag[WEB_ETAG];
};

static uint64_t get64(const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

/* What is at an address; NULL if not all of it is in the image. */
static const uint8_t *stored(const struct web_store *store, uint32_t address, uint32_t length)
{
	uint32_t offset = address - store->base;

	return offset > store->bytes || store->bytes - offset < length ? NULL : store->memory + offset;
}

static uint32_t bits(uint64_t word, unsigned offset, unsigned width)
{
	return (uint32_t)(word >> offset) & ((1u << width) - 1);
}

static void set_etag(struct object *object, uint32_t high, uint32_t low)
{
	struct text etag = text_in((char *)object->etag, sizeof(object->etag));

	text_char(&etag, '"');
	text_hex(&etag, high, 8);
	text_hex(&etag, low, 8);
	text_char(&etag, '"');
}

static void read_entry(const uint8_t *entry, struct object *object)
{
	uint64_t first = get64(entry), places = get64(entry + 8), rest = get64(entry + 16);
	uint64_t tag = get64(entry + 24);

	object->found_header = bits(first, 16, 10);
	object->close_header = bits(first, 26, 10);
	object->same_header = bits(first, 36, 10);
	object->same_close_header = bits(first, 46, 10);
	object->found = (uint32_t)places;
	object->close = (uint32_t)(places >> 32);
	object->length = (uint32_t)rest;
	object->same = (uint32_t)(rest >> 32);
	set_etag(object, (uint32_t)(tag >> 32), (uint32_t)tag);
}

enum found { NO_OBJECT, NOT_LOADED, LOADED };

static enum found find(const struct web_store *store, const uint8_t *path, size_t length,
	struct object *object)
{
	uint32_t crc = crc32_of(0, path, length);
	const uint8_t *bucket = stored(store, store->index + ((crc & store->mask) << 6), BUCKET_BYTES);

	if (length > WEB_PATH || bucket == NULL)
		return NO_OBJECT;
	for (unsigned slot = 0; slot < BUCKET_BYTES / 8; slot++) {
		uint64_t pair = get64(bucket + 8 * slot);
		const uint8_t *entry = stored(store, (uint32_t)(pair >> 32), ENTRY_BYTES);

		if ((uint32_t)pair != crc || entry == NULL)
			continue;
		if ((entry[1] & 0x7f) != length || memcmp(entry + PATH_OFFSET, path, length) != 0)
			continue;
		if ((entry[0] & 1) == 0)
			return NOT_LOADED;
		read_entry(entry, object);
		return LOADED;
	}
	return NO_OBJECT;
}

struct web_answer web_prepared(const struct web_store *store, enum web_prepared which, bool head)
{
	static const struct { uint32_t offset, header, whole; } places[] = TREBUCHET_WEB_PLACES;

	return (struct web_answer){
		.close = which != WEB_NOT_FOUND_OPEN,
		.address = store->base + places[which].offset,
		.length = head ? places[which].header : places[which].whole,
	};
}

static void write_field(struct text *out, const char *name, uint32_t value)
{
	text_plain(out, name);
	text_unsigned(out, value);
	text_plain(out, "\r\n");
}

static void write_etag(struct text *out, const struct object *object)
{
	text_plain(out, "ETag: ");
	for (unsigned i = 0; i < WEB_ETAG; i++)
		text_char(out, (char)object->etag[i]);
	text_plain(out, "\r\n");
}

/* The line with the media type, out of the object's own header. */
static void write_type(struct text *out, const struct web_store *store, const struct object *object)
{
	const uint8_t *at = stored(store, object->found, object->found_header);
	const uint8_t *end = at == NULL ? NULL : at + object->found_header;

	at = at == NULL ? NULL : memchr(at, '\n', (size_t)(end - at));
	if (at == NULL)
		return;
	for (at++; at < end; at++) {
		text_char(out, (char)*at);
		if (*at == '\n')
			return;
	}
}

static void write_type_name(struct text *out, const char *type)
{
	text_plain(out, "Content-Type: ");
	text_plain(out, type);
	text_plain(out, "\r\n");
}

static struct web_answer written(struct text *out, bool close)
{
	text_plain(out, close ? "Connection: close\r\n\r\n" : "\r\n");
	return (struct web_answer){ .written = true, .close = close, .length = (uint32_t)out->length };
}

static struct web_answer found(const struct object *object, bool close, bool head)
{
	struct web_answer answer = {
		.close = close, .address = close ? object->close : object->found,
		.length = close ? object->close_header : object->found_header,
	};

	if (!head) {
		answer.rest_address = object->found + object->found_header;
		answer.rest = object->length;
	}
	return answer;
}

/* Of an object in the image, or of a file with this `type`. */
static struct web_answer part(const struct web_store *store, const struct object *object, const char *type,
	struct web_range range, bool close, struct text *out)
{
	struct web_answer answer;

	if (range.kind == WEB_UNSATISFIABLE) {
		text_plain(out, "HTTP/1.1 416 Range Not Satisfiable\r\n");
		write_field(out, "Content-Range: bytes */", object->length);
		text_plain(out, "Content-Length: 0\r\n");
		return written(out, close);
	}
	text_plain(out, "HTTP/1.1 206 Partial Content\r\n");
	if (store != NULL)
		write_type(out, store, object);
	else
		write_type_name(out, type);
	write_field(out, "Content-Length: ", range.count);
	write_etag(out, object);
	text_plain(out, "Content-Range: bytes ");
	text_unsigned(out, range.first);
	text_char(out, '-');
	text_unsigned(out, range.first + (range.count - 1));
	write_field(out, "/", object->length);
	answer = written(out, close);
	answer.rest_address = object->found + object->found_header + range.first;
	answer.rest = range.count;
	return answer;
}

static struct web_answer failed(const struct object *object, bool close, struct text *out)
{
	text_plain(out, "HTTP/1.1 412 Precondition Failed\r\n");
	write_etag(out, object);
	text_plain(out, "Content-Length: 0\r\n");
	return written(out, close);
}

struct web_answer web_respond(const struct web_store *store, const struct web_request *request,
	uint8_t *path, struct text *out)
{
	bool close = request->close;
	struct web_range range;
	struct object object;
	enum found which;
	size_t length;

	if (!request->valid)
		return web_prepared(store, WEB_BAD_REQUEST, request->head);
	if (!request->get && !request->head)
		return web_prepared(store, WEB_METHOD_NOT_ALLOWED, false);
	length = web_path(request->target, path);
	if (length == 0)
		return web_prepared(store, WEB_BAD_REQUEST, request->head);
	which = find(store, path, length, &object);
	if (which == NOT_LOADED)
		return (struct web_answer){ .not_loaded = length };
	if (which == NO_OBJECT)
		return web_prepared(store, close ? WEB_NOT_FOUND : WEB_NOT_FOUND_OPEN, request->head);
	if (!web_if_match(request, object.etag))
		return failed(&object, close, out);
	if (web_if_none_match(request, object.etag))
		return (struct web_answer){
			.close = close, .address = object.same + (close ? SAME_ROOM : 0),
			.length = close ? object.same_close_header : object.same_header,
		};
	range = web_range(request, object.length, object.etag);
	if (range.kind == WEB_WHOLE)
		return found(&object, close, request->head);
	return part(store, &object, NULL, range, close, out);
}

struct web_answer web_respond_large(const struct web_request *request, const struct web_large *file, struct text *out)
{
	bool close = request->close;
	struct object object = { .length = file->size };
	struct web_answer answer;
	struct web_range range;

	set_etag(&object, file->serial, file->tag);
	if (!web_if_match(request, object.etag))
		return failed(&object, close, out);
	if (web_if_none_match(request, object.etag)) {
		text_plain(out, "HTTP/1.1 304 Not Modified\r\n");
		write_etag(out, &object);
		return written(out, close);
	}
	range = web_range(request, object.length, object.etag);
	if (range.kind != WEB_WHOLE)
		return part(NULL, &object, file->type, range, close, out);
	text_plain(out, "HTTP/1.1 200 OK\r\n");
	write_type_name(out, file->type);
	write_field(out, "Content-Length: ", object.length);
	write_etag(out, &object);
	answer = written(out, close);
	answer.rest = request->head ? 0 : object.length;
	return answer;
}
