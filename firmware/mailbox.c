#include "mailbox.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_table.h>

#include "board.h"
#include "http.h"
#include "status.h"
#include "text.h"

#ifdef TREBUCHET_MAILBOX_BASE

/* What the mailbox takes and gives at most (cores/roles/mailbox_copy.py). */
#define REQUEST_BYTES 1024
#define RESPONSE_BYTES 4096

#define STATUS_PENDING (1u << TREBUCHET_MAILBOX_STATUS_PENDING_OFFSET)
#define STATUS_PARTIAL (1u << TREBUCHET_MAILBOX_STATUS_PARTIAL_OFFSET)
#define SEND_CLOSE (1u << TREBUCHET_MAILBOX_SEND_CLOSE_OFFSET)
#define SEND_GO (1u << TREBUCHET_MAILBOX_SEND_GO_OFFSET)

static char body[RESPONSE_BYTES - HTTP_MAX_RESPONSE_HEAD];

/* Bytes on their way into the response, four at a time. */
struct packer {
	uint32_t word;
	uint32_t length;
};

static void pack(struct packer *packer, const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		packer->word |= (uint32_t)(unsigned char)data[i] << (8 * (packer->length & 3));
		packer->length++;
		if ((packer->length & 3) == 0) {
			trebuchet_mailbox_tx_data_write(packer->word);
			trebuchet_mailbox_tx_write_write(1);
			packer->word = 0;
		}
	}
}

static void send(struct packer *packer)
{
	if ((packer->length & 3) != 0) {
		trebuchet_mailbox_tx_data_write(packer->word);
		trebuchet_mailbox_tx_write_write(1);
	}
	trebuchet_mailbox_send_write(SEND_GO | SEND_CLOSE | packer->length);
}

static size_t read_request(char *request)
{
	size_t length = trebuchet_mailbox_request_length_read();

	for (size_t i = 0; i < length; i++) {
		if ((i & 3) == 0)
			trebuchet_mailbox_rx_index_write((uint32_t)(i / 4));
		/* The bus takes longer than the two cycles until the word is there. */
		request[i] = (char)(trebuchet_mailbox_rx_data_read() >> (8 * (i & 3)));
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
	struct text text = text_in(body, sizeof(body));

	if (*status == HTTP_OK)
		status_write(&text, &info, status_table, STATUS_TABLE_COUNT, trebuchet_read32);
	if (text.overflow) {
		*status = HTTP_INTERNAL_ERROR;
		text = text_in(body, sizeof(body));
	}
	if (*status != HTTP_OK)
		text_plain(&text, http_error_body(*status));
	return text;
}

static void answer(bool partial)
{
	static char request[REQUEST_BYTES];
	char head_buffer[HTTP_MAX_RESPONSE_HEAD];
	struct text head = text_in(head_buffer, sizeof(head_buffer));
	struct packer packer = { 0, 0 };
	size_t length = read_request(request);
	enum http_status status = http_judge(request, length);
	struct text content;

	/* The peer said no more, or said more than there is room for without coming to an end. */
	if (status == HTTP_INCOMPLETE || (partial && status == HTTP_OK))
		status = length > HTTP_MAX_HEAD ? HTTP_HEAD_TOO_LARGE : HTTP_BAD_REQUEST;
	content = write_body(&status);
	http_head(&head, status, content.length);
	pack(&packer, head.start, head.length);
	pack(&packer, content.start, content.length);
	send(&packer);
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
