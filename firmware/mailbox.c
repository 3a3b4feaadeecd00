#include "mailbox.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_table.h>

#include "board.h"
#include "http.h"
#include "status.h"
#include "text.h"

#ifdef TREBUCHET_MAILBOX_BASE

/* What the mailbox gives at most (cores/roles/mailbox_copy.py); it takes a quarter of that. */
#define RESPONSE_BYTES 4096

#define STATUS_PENDING (1u << TREBUCHET_MAILBOX_STATUS_PENDING_OFFSET)
#define STATUS_PARTIAL (1u << TREBUCHET_MAILBOX_STATUS_PARTIAL_OFFSET)
#define SEND_CLOSE (1u << TREBUCHET_MAILBOX_SEND_CLOSE_OFFSET)
#define SEND_GO (1u << TREBUCHET_MAILBOX_SEND_GO_OFFSET)

/* Copied to and from the mailbox by words; the request is in the body's place before it. */
static uint32_t head[HTTP_MAX_RESPONSE_HEAD / 4];
static uint32_t body[(RESPONSE_BYTES - HTTP_MAX_RESPONSE_HEAD) / 4];

/* Append `length` bytes; only the last of a response may be no multiple of four. */
static void put(const uint32_t *words, size_t length)
{
	for (size_t i = 0; 4 * i < length; i++) {
		trebuchet_mailbox_tx_data_write(words[i]);
		trebuchet_mailbox_tx_write_write(1);
	}
}

static size_t read_request(uint32_t *request)
{
	size_t length = trebuchet_mailbox_request_length_read();

	for (size_t i = 0; 4 * i < length; i++) {
		trebuchet_mailbox_rx_index_write((uint32_t)i);
		/* The bus takes longer than the two cycles until the word is there. */
		request[i] = trebuchet_mailbox_rx_data_read();
	}
	return length;
}

static struct text write_body(enum http_status *status)
{
	const struct status_info info = {
		.version = TREBUCHET_VERSION,
		.board = TREBUCHET_BOARD,
		.uptime_ms = board_uptime_ms(),
	};
	struct text text = text_in((char *)body, sizeof(body));

	if (*status == HTTP_OK)
		status_write(&text, &info, status_table, STATUS_TABLE_COUNT, trebuchet_read32);
	if (text.overflow) {
		*status = HTTP_INTERNAL_ERROR;
		text = text_in((char *)body, sizeof(body));
	}
	if (*status != HTTP_OK)
		text_plain(&text, http_error_body(*status));
	return text;
}

static void answer(bool partial)
{
	struct text top = text_in((char *)head, sizeof(head));
	struct text content;
	size_t length = read_request(body);
	enum http_status status = http_judge((const char *)body, length);

	/* The peer said no more, or said more than there is room for without coming to an end. */
	if (status == HTTP_INCOMPLETE || (partial && status == HTTP_OK))
		status = length > HTTP_MAX_HEAD ? HTTP_HEAD_TOO_LARGE : HTTP_BAD_REQUEST;
	content = write_body(&status);
	http_head(&top, status, content.length);
	put(head, top.length);
	put(body, content.length);
	trebuchet_mailbox_send_write(SEND_GO | SEND_CLOSE | (uint32_t)(top.length + content.length));
}

void mailbox_start(void)
{
	trebuchet_mailbox_irq_enable_write(1);
}

void mailbox_serve(void)
{
	for (;;) {
		uint32_t status = trebuchet_mailbox_status_read();

		if ((status & STATUS_PENDING) == 0)
			return;
		answer((status & STATUS_PARTIAL) != 0);
	}
}

#else /* a shell without mailbox, as in tests of the SoC */

void mailbox_start(void)
{
	(void)status_table;
}

void mailbox_serve(void)
{
}

#endif
