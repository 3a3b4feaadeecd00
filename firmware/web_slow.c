/* Unusual requests that the web service's gateware shows (cores/web/desk.py), one after the other. */
#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <system.h>

#include "board.h"
#include "bulk.h"
#include "web.h"
#include "web_answer.h"
#include "web_body.h"
#include "web_card.h"
#include "web_follow.h"
#include "web_pieces.h"

#ifdef TREBUCHET_WEB_BASE

#ifdef WEB_CARD
/* Requests whose content, or whose object, is being waited for. */
#define READERS 8u
/* How long an object is waited for; a request that is not shown again for so long is one of a connection that ended. */
#define PATIENCE_MS 30000u
#define FORGET_MS 1000u
/* The same of one whose response is being sent in pieces, none of which is in flight. */
#define CUT_MS 5000u
#define SPARE 1u
#else
/* Requests whose content is being waited for. */
#define READERS 4u
#define SPARE 0u
#endif
/* Bytes of content that are looked at between two rounds of the event loop. */
#define STEP 2048u
#define BUFFERS TREBUCHET_WEB_HEADERS

struct reader {
	uint32_t session;
	struct web_request request;
	struct web_body body;
#ifdef WEB_CARD
	bool parked; /* waits for its object; the last byte of the request is not consumed, so it is shown again */
	uint32_t since_ms, shown_ms;
	uint32_t changes; /* of the card's files, when it was last looked for */
	unsigned stream; /* it is sent in pieces (web_pieces.h), or 0; ... */
	struct web_follow follow; /* or sent while it is loaded (web_follow.h) */
	bool begun; /* a part of either was sent */
#endif
	uint8_t head[TREBUCHET_WEB_HEAD];
};

static BULK struct reader readers[READERS + SPARE];
static BULK uint8_t path[TREBUCHET_WEB_HEAD];
/* The gateware sends headers from here. */
static BULK char headers[BUFFERS][WEB_HEADER];
static uint32_t waiting; /* bit k: readers[k] waits for content */
static unsigned following;
#ifdef WEB_CARD
static bool cut; /* a response was given up in its middle: its session may come back */
#endif

static void reply(uint32_t bits, uint32_t consumed)
{
	trebuchet_web_reply_write(1u << TREBUCHET_WEB_REPLY_GO_OFFSET | bits |
				  consumed << TREBUCHET_WEB_REPLY_CONSUMED_OFFSET);
}

static void send(struct web_answer answer, unsigned buffer, uint32_t consumed)
{
	if (answer.written)
		answer.address = (uint32_t)(uintptr_t)headers[buffer - 1];
	trebuchet_web_reply_address_write(answer.address);
	trebuchet_web_reply_length_write(answer.length);
	trebuchet_web_reply_rest_address_write(answer.rest_address);
	trebuchet_web_reply_rest_write(answer.rest);
	reply((uint32_t)answer.close << TREBUCHET_WEB_REPLY_CLOSE_OFFSET |
	      (answer.written ? buffer << TREBUCHET_WEB_REPLY_BUFFER_OFFSET : 0), consumed);
}

static struct web_store store(void)
{
	const struct web_image *image = web_served();

	return (struct web_store){
		(const uint8_t *)(uintptr_t)image->base, image->base, image->length, image->index,
		image->buckets - 1,
	};
}

/* The number of a buffer that is not being sent from, or 0. */
static unsigned free_buffer(void)
{
	uint32_t busy = trebuchet_web_buffers_read();
	unsigned number = 1;

	while (number <= BUFFERS && (busy >> (number - 1) & 1) != 0)
		number++;
	return number <= BUFFERS ? number : 0;
}

#ifdef WEB_CARD

static void respond(struct reader *reader, uint32_t consumed);

/* Nothing is kept of a request. */
static void release(struct reader *reader)
{
	waiting &= ~(1u << (reader - readers));
	if (reader->stream != 0)
		web_pieces_close(reader->stream);
	reader->stream = 0;
	web_follow_close(&reader->follow);
}

/* Send a part: with the last one, the last of the `consumed` bytes of the request is consumed. */
static void send_part(struct reader *reader, const struct web_answer *part, unsigned buffer, bool last, uint32_t consumed)
{
	uint32_t bits = last ? (uint32_t)reader->request.close << TREBUCHET_WEB_REPLY_CLOSE_OFFSET :
		1u << TREBUCHET_WEB_REPLY_MORE_OFFSET | 1u << TREBUCHET_WEB_REPLY_PART_OFFSET;

	reader->begun = true;
	if (last)
		release(reader);
	trebuchet_web_reply_address_write(part->address);
	trebuchet_web_reply_length_write(part->length);
	trebuchet_web_reply_rest_address_write(part->rest_address);
	trebuchet_web_reply_rest_write(part->rest);
	reply(bits | buffer << TREBUCHET_WEB_REPLY_BUFFER_OFFSET, last ? consumed : consumed - 1);
}

/* Begin to send a file that is being loaded: the header, and what is there. */
static void begin_following(struct reader *reader, const struct web_answer *header, const struct web_large *file,
	unsigned buffer, uint32_t consumed)
{
	struct web_answer part = { .address = (uint32_t)(uintptr_t)headers[buffer - 1], .length = header->length };
	struct web_follow_part content;

	web_follow_open(&reader->follow, file->file, header->rest_address, header->rest);
	web_follow_take(&reader->follow, &content);
	part.rest_address = content.address;
	part.rest = content.length + content.rest;
	send_part(reader, &part, buffer, reader->follow.left == 0, consumed);
}

/*
 * Answer for a file that is sent in pieces: at once if none of its content is sent, or if it is being loaded. Else
 * the stream begins; false: or will, when there is memory.
 */
static bool respond_large(struct reader *reader, const struct web_large *file, bool follow, unsigned buffer,
	uint32_t consumed)
{
	struct text out = text_in(headers[buffer - 1], WEB_HEADER);
	struct web_answer answer = web_respond_large(&reader->request, file, &out);

	if (answer.rest != 0 && !follow) {
		reader->stream = web_pieces_open(file, answer.rest_address, answer.rest, &out);
		reader->begun = false;
		if (reader->stream != 0) /* to follow the chain of a large file may have taken long */
			reader->since_ms = board_uptime_ms();
		return false;
	}
	if (answer.rest != 0) {
		begin_following(reader, &answer, file, buffer, consumed);
		return true;
	}
	release(reader);
	send(answer, buffer, consumed);
	return true;
}

/*
 * Have the object loaded, and the request shown again until it is; or answer, as it need not be. False: neither can
 * be.
 */
static bool park(struct reader *reader, size_t length, unsigned buffer, uint32_t consumed)
{
	uint32_t now = board_uptime_ms();
	bool first = !reader->parked;
	enum web_card_file which;
	struct web_large large;

	if (first)
		reader->since_ms = now;
	if (reader == &readers[READERS] || now - reader->since_ms >= PATIENCE_MS)
		return false;
	which = web_card_want(path, length, first, &large);
	if (which == WEB_CARD_FAILED)
		return false;
	reader->parked = true;
	reader->shown_ms = now;
	waiting |= 1u << (reader - readers);
	if (which != WEB_CARD_WAIT && respond_large(reader, &large, which == WEB_CARD_FOLLOW, buffer, consumed))
		return true;
	/* Memory for pieces does not count as a change. */
	reader->changes = web_card_changes() - (which == WEB_CARD_LARGE);
	reply(1u << TREBUCHET_WEB_REPLY_MORE_OFFSET, consumed - 1);
	return true;
}

/* The stream cannot go on: 503 if it has not begun, else the connection ends short of what was promised. */
static void cut_stream(struct reader *reader)
{
	struct web_answer answer = { .close = true };
	struct web_store from = store();

	if (!reader->begun)
		answer = web_prepared(&from, WEB_UNAVAILABLE, reader->request.head);
	release(reader);
	send(answer, 0, 1);
}

/* Send the next piece, if there is one; the last byte of the request is consumed with the last one. */
static void go_on_sending(struct reader *reader, uint32_t now)
{
	unsigned buffer = free_buffer();
	struct web_part part;
	enum web_piece which = web_pieces_take(reader->stream, buffer, &part);

	if (which == WEB_PIECE_FAILED || (which == WEB_PIECE_LOADING && now - reader->since_ms >= PATIENCE_MS)) {
		cut_stream(reader);
		return;
	}
	if (which != WEB_PIECE_LOADING)
		reader->since_ms = now;
	if (which != WEB_PIECE_READY) {
		reply(1u << TREBUCHET_WEB_REPLY_MORE_OFFSET, 0);
		return;
	}
	send_part(reader, &(struct web_answer){ .address = part.address, .length = part.length }, buffer, part.last, 1);
}

/* Send what is there of a file that is being loaded, if it is more than was sent. */
static void go_on_following(struct reader *reader, uint32_t now)
{
	struct web_follow_part part;
	bool goes = web_follow_take(&reader->follow, &part);

	if (!goes || (part.length == 0 && now - reader->since_ms >= PATIENCE_MS)) {
		cut_stream(reader);
		return;
	}
	if (part.length == 0) {
		reply(1u << TREBUCHET_WEB_REPLY_MORE_OFFSET, 0);
		return;
	}
	reader->since_ms = now;
	send_part(reader, &(struct web_answer){
		.address = part.address, .length = part.length,
		.rest_address = part.address + part.length, .rest = part.rest,
	}, 0, reader->follow.left == 0, 1);
}

/* The last byte of a request that waits is shown again: look again if there is anything new. */
static void look_again(struct reader *reader)
{
	uint32_t now = board_uptime_ms();

	if (reader->stream != 0) {
		reader->shown_ms = now;
		go_on_sending(reader, now);
		return;
	}
	if (reader->follow.file != NULL) {
		reader->shown_ms = now;
		go_on_following(reader, now);
		return;
	}
	if (reader->changes != web_card_changes() || now - reader->since_ms >= PATIENCE_MS) {
		respond(reader, 1);
		return;
	}
	reader->shown_ms = now;
	reply(1u << TREBUCHET_WEB_REPLY_MORE_OFFSET, 0);
}

#else

static bool park(struct reader *reader, size_t length, unsigned buffer, uint32_t consumed)
{
	(void)reader, (void)length, (void)buffer, (void)consumed;
	return false;
}

#endif

static void respond(struct reader *reader, uint32_t consumed)
{
	struct web_store from = store();
	unsigned buffer = free_buffer();
	struct web_answer answer;
	struct text out;

	if (buffer == 0) {
		send(web_prepared(&from, WEB_UNAVAILABLE, reader->request.head), 0, consumed);
		return;
	}
	out = text_in(headers[buffer - 1], WEB_HEADER);
	answer = web_respond(&from, &reader->request, path, &out);
	if (answer.not_loaded != 0) {
		if (park(reader, answer.not_loaded, buffer, consumed))
			return;
		answer = web_prepared(&from, WEB_UNAVAILABLE, reader->request.head);
	}
	waiting &= ~(1u << (reader - readers));
	send(answer, buffer, consumed);
}

/* What the content's reader says, after `consumed` bytes of the request that is shown. */
static void go_on(struct reader *reader, enum web_progress progress, uint32_t consumed)
{
	struct web_store from = store();

	if (progress == WEB_MORE) {
		waiting |= 1u << (reader - readers);
		reply(1u << TREBUCHET_WEB_REPLY_MORE_OFFSET, consumed);
		return;
	}
	waiting &= ~(1u << (reader - readers));
	if (progress == WEB_DONE)
		respond(reader, consumed);
	else
		send(web_prepared(&from, progress == WEB_INVALID ? WEB_BAD_REQUEST : WEB_CONTENT_TOO_LARGE,
				  reader->request.head), 0, consumed);
}

static struct reader *reader_of(uint32_t session)
{
	for (unsigned k = 0; k < READERS; k++)
		if ((waiting >> k & 1) != 0 && readers[k].session == session)
			return &readers[k];
	return NULL;
}

/* The byte of a session's ring that `address` comes to, behind the ring's end at its beginning. */
static const uint8_t *in_ring(uint32_t begin, uint32_t offset)
{
	uint32_t ring = TREBUCHET_WEB_RING - 1;

	return (const uint8_t *)(uintptr_t)((begin & ~ring) | ((begin + offset) & ring));
}

/* May a reader give way to another request? One that waits for its object does not. */
static bool yields(const struct reader *reader)
{
#ifdef WEB_CARD
	uint32_t since = board_uptime_ms() - reader->shown_ms;

	/* While none of it is in flight a session is shown at once, unless it has ended. */
	if (reader->stream != 0)
		return since >= CUT_MS && !web_pieces_in_flight(reader->stream);
	if (reader->follow.file != NULL)
		return since >= PATIENCE_MS;
	return !reader->parked || since >= FORGET_MS;
#else
	(void)reader;
	return true;
#endif
}

/* One that waits for nothing; else they give way in turn. The last one cannot wait. */
static struct reader *free_reader(void)
{
	for (unsigned k = 0; k < READERS; k++)
		if ((waiting >> k & 1) == 0)
			return &readers[k];
	for (unsigned k = 0; k < READERS; k++) {
		following = following + 1 == READERS ? 0 : following + 1;
		if (yields(&readers[following]))
			return &readers[following];
	}
	return &readers[READERS];
}

#ifdef WEB_CARD
/* Give up the streams of connections that have ended, as it seems. */
static void forget_streams(uint32_t session)
{
	for (unsigned k = 0; k < READERS; k++) {
		struct reader *reader = &readers[k];

		if ((waiting >> k & 1) == 0 || reader->session == session || !yields(reader) ||
		    (reader->stream == 0 && reader->follow.file == NULL))
			continue;
		cut = cut || reader->begun;
		release(reader);
	}
}
#endif

static void take_head(uint32_t session, uint32_t address, uint32_t length)
{
	struct reader *reader = reader_of(session);
	uint32_t kept = length < TREBUCHET_WEB_HEAD ? length : TREBUCHET_WEB_HEAD;

#ifdef WEB_CARD
	forget_streams(session);
#endif
	if (reader == NULL) /* else of a connection that has ended */
		reader = free_reader();
#ifdef WEB_CARD
	if ((waiting >> (reader - readers) & 1) != 0) /* else it was never set to anything */
		release(reader);
	reader->parked = false;
	reader->stream = 0;
	reader->begun = false;
#endif
	waiting &= ~(1u << (reader - readers));
	reader->session = session;
	for (uint32_t i = 0; i < kept; i++)
		reader->head[i] = *in_ring(address, i);
	web_parse(&reader->request, reader->head, kept);
	if (reader->request.content == WEB_NO_CONTENT)
		respond(reader, length);
	else
		go_on(reader, web_body_start(&reader->body, &reader->request), length);
}

static void take_content(uint32_t session, uint32_t address, uint32_t length)
{
	struct reader *reader = reader_of(session);
	enum web_progress progress = WEB_MORE;
	struct web_store from = store();
	uint32_t used = 0;

#ifdef WEB_CARD
	if (reader == NULL && cut) { /* perhaps in the middle of its response */
		send((struct web_answer){ .close = true }, 0, length);
		return;
	}
#endif
	if (reader == NULL) { /* it had to give way */
		send(web_prepared(&from, WEB_UNAVAILABLE, false), 0, length);
		return;
	}
#ifdef WEB_CARD
	if (reader->parked) {
		look_again(reader);
		return;
	}
#endif
	if (length > STEP)
		length = STEP;
	while (used < length && progress == WEB_MORE)
		progress = web_body_feed(&reader->body, *in_ring(address, used++));
	go_on(reader, progress, used);
}

void web_serve(void)
{
	uint32_t request = trebuchet_web_request_read();
	uint32_t session, address, length = request >> TREBUCHET_WEB_REQUEST_LENGTH_OFFSET;

	if ((request >> TREBUCHET_WEB_REQUEST_PENDING_OFFSET & 1) == 0)
		return;
	/* It is one of the image that follows; the one before is looked up in only until web_step() is called. */
	if (web_switched())
		return;
#ifdef WEB_CARD
	web_pieces_collect(trebuchet_web_buffers_read());
#endif
	session = trebuchet_web_request_session_read();
	address = trebuchet_web_request_address_read();
	flush_cpu_dcache();
	if ((request >> TREBUCHET_WEB_REQUEST_FIRST_OFFSET & 1) != 0)
		take_head(session, address, length);
	else
		take_content(session, address, length);
	board_wake(); /* one a turn, as of the mailbox */
}

#else /* no web service */

void web_serve(void)
{
}

#endif
