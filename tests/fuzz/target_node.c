// firmware: node
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "node.h"

/*
 * An input is a byte that says how, and what two connections send, the second one's share behind the
 * first one's; pieces are taken from both in turn, as the mailbox shows them. What is left over of a
 * connection is a piece that was cut off.
 */
#define SMALL_PIECES 0x01
#define SLOW 0x02
#define FLASH_FAILS 0x04
/* Connections are reset in the middle without a word; their numbers come again with new ones. */
#define LOST 0x08
#define SECOND 0xf0 /* sixteenths of the bytes that are the first connection's */

#define CORES 2
#define IMAGE 600u

const char *const fuzz_dictionary[] = {
	"\x01\x08", "\x01\x18", "\x01\x20", "\x03\x0c", "\x05\x07", "\x02\x01", "\x10\x01\xf0", "\x20\x01\xf0",
	"version", "\x01\xff\xff\xff\xff", NULL,
};

static const uint32_t cores[CORES] = { 0xf0001000, 0xf0002000 };

struct peer {
	const uint8_t *data;
	size_t left;
	enum node_tag tag;
	uint32_t expect; /* 0: a header */
	unsigned awaited; /* how often more was awaited */
};

static void check(const struct node *node, const struct node_step *step,
	const struct node_piece *piece)
{
	const uint8_t *end = piece->data + piece->length;

	if (step->action == NODE_AWAIT) {
		require(step->expect > 0 && step->expect <= node->limits.piece && !step->close);
		require(step->tag != NODE_TAG_HEADER);
	}
	require(step->store_length == 0 || (step->store >= piece->data &&
		step->store + step->store_length <= end));
	require(step->store_at + step->store_length <= IMAGE);
	require(step->length == 0 || (step->data >= piece->data && step->data + step->length <= end));
	require(piece->missing == TREBUCHET_STATUS_OK || (step->action == NODE_RESPOND && step->close));
	require(step->action != NODE_CONFIGURE ||
		(node->busy && node->next.image_length == node->stored));
}

/* Give the next piece of a connection; false when it has ended. */
static bool feed(struct node *node, struct peer *peer, uint32_t session, uint32_t now, uint8_t end)
{
	uint32_t want = peer->expect != 0 ? peer->expect : NODE_HEADER;
	struct node_piece piece = {
		.session = session, .tag = peer->tag, .missing = peer->left < want ? TREBUCHET_STATUS_TRUNCATED : TREBUCHET_STATUS_OK,
		.length = peer->left < want ? peer->left : want, .now = now,
	};
	/* The number of one who configures, with a new connection. */
	bool again = node->busy && node->owner == session && piece.tag != NODE_TAG_CONFIGURATION;
	struct node_step step;
	uint8_t *exact; /* ASan knows where it ends */

	if (peer->left == 0 && peer->expect == 0)
		return false;
	exact = malloc(piece.length);
	require(exact != NULL || piece.length == 0);
	if (piece.length > 0)
		memcpy(exact, peer->data, piece.length);
	peer->data += piece.length;
	peer->left -= piece.length;
	piece.data = exact;
	node_take(node, &piece, &step);
	check(node, &step, &piece);
	require(!again || step.note != NULL);
	require(!again || !node->busy || (step.action == NODE_AWAIT &&
		step.tag == NODE_TAG_CONFIGURATION && node->left == node->size));
	free(exact);
	if (step.action == NODE_CONFIGURE) {
		node_configured(node, end, &step);
		require(step.action == NODE_RESPOND && step.status == end && !node->busy);
	}
	peer->expect = step.action == NODE_AWAIT ? step.expect : 0;
	peer->tag = step.action == NODE_AWAIT ? step.tag : NODE_TAG_HEADER;
	peer->awaited += step.action == NODE_AWAIT;
	return !step.close;
}

/* What comes next of this number is a new connection's. */
static void lose(struct peer *peer)
{
	peer->expect = 0;
	peer->tag = NODE_TAG_HEADER;
}

void fuzz_one(const char *data, size_t length)
{
	unsigned how = length > 0 ? (uint8_t)data[0] : 0;
	struct node_limits limits = { cores, CORES, how & SMALL_PIECES ? 16 : 1024, IMAGE };
	struct node node;
	size_t rest = length > 0 ? length - 1 : 0;
	size_t first = rest - rest * ((how & SECOND) >> 4) / 16;
	const uint8_t *bytes = (const uint8_t *)data + (length > 0);
	struct peer peers[2] = { { bytes, first, 0, 0, 0 }, { bytes + first, rest - first, 0, 0, 0 } };
	bool open[2] = { true, true };
	uint32_t now = 0;

	node_start(&node, &limits);
	while (open[0] || open[1]) {
		for (uint32_t k = 0; k < 2; k++) {
			if (open[k])
				open[k] = feed(&node, &peers[k], k, now, how & FLASH_FAILS ? 15 : 0);
			if (how & LOST && peers[k].awaited % 3 == 2)
				lose(&peers[k]);
			now += how & SLOW ? 7000 : 1;
		}
	}
}
