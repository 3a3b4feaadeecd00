#include "mailbox.h"

#include <generated/trebuchet_front_page.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "buffer.h"
#include "counters.h"
#include "http.h"
#include "manage.h"
#include "text.h"

#ifdef TREBUCHET_MAILBOX_BASE

_Static_assert(BUFFER_BYTES + HTTP_MAX_RESPONSE_HEAD <= MAILBOX_RESPONSE_BYTES,
	"what the mailbox takes");
_Static_assert(TREBUCHET_FRONT_PAGE_BYTES + HTTP_MAX_RESPONSE_HEAD <= MAILBOX_RESPONSE_BYTES,
	"a shorter front page");

#define STATUS_PENDING (1u << TREBUCHET_MAILBOX_STATUS_PENDING_OFFSET)
#define STATUS_PARTIAL (1u << TREBUCHET_MAILBOX_STATUS_PARTIAL_OFFSET)
#define STATUS_LATE (1u << TREBUCHET_MAILBOX_STATUS_LATE_OFFSET)
#define SEND_CLOSE (1u << TREBUCHET_MAILBOX_SEND_CLOSE_OFFSET)
#define SEND_GO (1u << TREBUCHET_MAILBOX_SEND_GO_OFFSET)

/* A request whose first byte is smaller is binary. */
#define BINARY 9

/* Copied to and from the mailbox by words; the request is in the body's place (buffer) before it. */
static uint32_t head[HTTP_MAX_RESPONSE_HEAD / 4];

void mailbox_put(const uint32_t *words, size_t length)
{
	for (size_t i = 0; 4 * i < length; i++) {
		trebuchet_mailbox_tx_data_write(words[i]);
		trebuchet_mailbox_tx_write_write(1);
	}
}

size_t mailbox_read(uint32_t *request)
{
	size_t length = trebuchet_mailbox_request_length_read();

	for (size_t i = 0; 4 * i < length; i++) {
		trebuchet_mailbox_rx_index_write((uint32_t)i);
		/* The bus takes longer than the two cycles until the word is there. */
		request[i] = trebuchet_mailbox_rx_data_read();
	}
	return length;
}

uint32_t mailbox_session(void)
{
	return trebuchet_mailbox_session_read();
}

void mailbox_send(size_t length, bool close, uint32_t expect, uint32_t tag)
{
	trebuchet_mailbox_expect_write(expect << TREBUCHET_MAILBOX_EXPECT_LENGTH_OFFSET |
				       tag << TREBUCHET_MAILBOX_EXPECT_TAG_OFFSET);
	trebuchet_mailbox_send_write(SEND_GO | (close ? SEND_CLOSE : 0) | (uint32_t)length);
}

void mailbox_listen(bool on)
{
	trebuchet_mailbox_irq_enable_write(on);
}

static struct text write_body(enum http_status *status)
{
	struct text text = buffer_text();

	if (*status == HTTP_OK)
		counters_status(&text);
	if (text.overflow) {
		*status = HTTP_INTERNAL_ERROR;
		text = buffer_text();
	}
	if (*status != HTTP_OK)
		text_plain(&text, http_error_body(*status));
	return text;
}

static void answer(size_t length, uint8_t missing)
{
	struct text top = text_in((char *)head, sizeof(head));
	const uint32_t *content = buffer;
	size_t content_length;
	enum http_page page = HTTP_PAGE_STATUS;
	enum http_status status = http_judge((const char *)buffer, length, &page);
	bool head_only = http_is_head((const char *)buffer, length); /* the body takes its place */

	/*
	 * The peer said no more, said more than there is room for without coming to an end, or took too
	 * long (RFC 9110, 15.5.9).
	 */
	if (status == HTTP_INCOMPLETE || (missing != TREBUCHET_STATUS_OK && status == HTTP_OK)) {
		status = missing == TREBUCHET_STATUS_TIMED_OUT ? HTTP_REQUEST_TIMEOUT : HTTP_BAD_REQUEST;
		if (length > HTTP_MAX_HEAD)
			status = HTTP_HEAD_TOO_LARGE;
	}
	if (status == HTTP_OK && page == HTTP_PAGE_FRONT) {
		content = trebuchet_front_page;
		content_length = TREBUCHET_FRONT_PAGE_BYTES;
	} else {
		content_length = write_body(&status).length;
	}
	http_head(&top, status, page, content_length);
	if (head_only)
		content_length = 0;
	mailbox_put(head, top.length);
	mailbox_put(content, content_length);
	mailbox_send(top.length + content_length, true, 0, 0);
}

static void take(uint32_t status)
{
	uint8_t missing = TREBUCHET_STATUS_OK; /* or why the rest of the request does not come */
	uint32_t tag = status >> TREBUCHET_MAILBOX_STATUS_TAG_OFFSET &
		       ((1u << TREBUCHET_MAILBOX_STATUS_TAG_WIDTH) - 1);
	size_t length;

	if ((status & STATUS_LATE) != 0)
		missing = TREBUCHET_STATUS_TIMED_OUT;
	else if ((status & STATUS_PARTIAL) != 0)
		missing = TREBUCHET_STATUS_TRUNCATED;
	if (tag != 0) {
		manage_take_piece(tag, missing);
		return;
	}
	length = mailbox_read(buffer);
	if (length > 0 && *(const uint8_t *)buffer < BINARY)
		manage_take_header((const uint8_t *)buffer, length, missing);
	else
		answer(length, missing);
}

void mailbox_start(void)
{
	manage_start();
	mailbox_listen(true);
}

void mailbox_serve(void)
{
	uint32_t status;

	if (!manage_serve())
		return;
	status = trebuchet_mailbox_status_read();
	if ((status & STATUS_PENDING) == 0)
		return;
	take(status);
	/* One a turn, or clients in a row would keep us from all else, and from the watchdog. */
	board_wake();
}

#else /* a shell without mailbox, as in tests of the SoC */

void mailbox_start(void)
{
}

void mailbox_serve(void)
{
}

#endif
