#include "node.h"

#include <generated/trebuchet_status_codes.h>

#define NODE_BENCHMARK 16u /* bytes of a benchmarking configuration's payload */
#define ROW 12u /* bytes of a row of a configuration's head */

static uint32_t get32(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put32(uint8_t *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (8 * i));
}

/* `count` is small: no multiplier is needed. */
static uint32_t head_bytes(uint32_t cores)
{
	return ((cores + 1) << 3) + ((cores + 1) << 2);
}

static void respond(struct node_step *step, uint8_t status, uint32_t id, bool close)
{
	step->action = NODE_RESPOND;
	step->status = status;
	step->id = id;
	step->close = close;
}

static void await(struct node_step *step, uint32_t bytes, enum node_tag tag)
{
	step->action = NODE_AWAIT;
	step->expect = bytes;
	step->tag = tag;
}

static void give(struct node_step *step, enum node_action action, const struct node_piece *piece,
	size_t from)
{
	step->action = action;
	step->data = piece->data + from;
	step->length = piece->length - from;
}

void node_start(struct node *node, const struct node_limits *limits)
{
	*node = (struct node){ .limits = *limits };
}

uint32_t node_epoch(const uint8_t header[NODE_HEADER])
{
	return header[2] | (uint32_t)header[3] << 8;
}

void node_head(uint8_t head[12], uint8_t type, uint32_t payload, uint32_t first)
{
	put32(head, type);
	put32(head + 4, payload);
	put32(head + 8, first);
}

static void await_more(const struct node *node, struct node_step *step)
{
	await(step, node->left < node->limits.piece ? node->left : node->limits.piece,
	      NODE_TAG_CONFIGURATION);
}

static void begin_configuration(struct node *node, const struct node_piece *piece, uint32_t size,
	struct node_step *step)
{
	if (piece->stale) {
		respond(step, TREBUCHET_STATUS_STALE, 0, true);
		return;
	}
	if (node->busy) {
		if (piece->now - node->since < NODE_PATIENCE_MS && piece->lease == node->lease) {
			respond(step, TREBUCHET_STATUS_BUSY, 0, true);
			return;
		}
		node->busy = false;
		step->note = "a configuration stopped in the middle; given up for another";
	}
	if (size > head_bytes(node->limits.count) + node->limits.image) {
		respond(step, TREBUCHET_STATUS_TOO_LARGE, 0, true);
		return;
	}
	if (size == 0) {
		respond(step, TREBUCHET_STATUS_BAD_LENGTH, 0, false);
		return;
	}
	node->busy = true;
	node->owner = piece->session;
	node->since = piece->now;
	node->lease = piece->lease;
	node->size = size;
	node->left = size;
	node->refusal = TREBUCHET_STATUS_OK;
	node->filled = 0;
	node->rows = 0;
	node->rows_due = 1;
	node->stored = 0;
	node->next = (struct node_plan){ 0 };
	await_more(node, step);
}

static void take_header(struct node *node, const struct node_piece *piece, struct node_step *step)
{
	uint32_t largest = node->limits.piece;
	enum node_tag tag = NODE_TAG_DATA;
	uint32_t size;

	if (piece->length < NODE_HEADER) {
		respond(step, piece->missing, 0, true);
		return;
	}
	size = get32(piece->data + 4);
	switch (piece->data[0]) {
	case NODE_CONFIGURATION:
		begin_configuration(node, piece, size, step);
		return;
	case NODE_DATA:
		break;
	case NODE_COMMAND:
		tag = NODE_TAG_COMMAND;
		if (largest > NODE_LINE)
			largest = NODE_LINE;
		break;
	default:
		respond(step, TREBUCHET_STATUS_BAD_TYPE, 0, true);
		return;
	}
	if (size > largest)
		respond(step, TREBUCHET_STATUS_TOO_LARGE, 0, true);
	else if (size > 0)
		await(step, size, tag);
	else if (tag == NODE_TAG_COMMAND)
		give(step, NODE_RUN, piece, piece->length);
	else
		respond(step, TREBUCHET_STATUS_BAD_LENGTH, 0, false);
}

static uint8_t judge_sizes(struct node *node)
{
	uint32_t count = get32(node->row + 8);

	node->next.input_size = get32(node->row);
	node->next.output_size = get32(node->row + 4);
	if (count > node->limits.count)
		return TREBUCHET_STATUS_BAD_DATA;
	if (node->size < head_bytes(count))
		return TREBUCHET_STATUS_BAD_LENGTH;
	node->rows_due = 1 + count;
	node->next.image_length = node->size - head_bytes(count);
	node->next.benchmark = count == 0 && node->size == NODE_BENCHMARK;
	if (node->next.image_length > node->limits.image)
		return TREBUCHET_STATUS_TOO_LARGE;
	return TREBUCHET_STATUS_OK;
}

/* The node chooses where operands and results lie: an address for them would not be obeyed. */
static uint8_t judge_core(struct node *node)
{
	uint32_t control = get32(node->row);

	if (get32(node->row + 4) != 0 || get32(node->row + 8) != 0)
		return TREBUCHET_STATUS_BAD_DATA;
	for (unsigned k = 0; k < node->limits.count; k++) {
		uint32_t bit = (uint32_t)1 << k;

		if (node->limits.cores[k] == control && (node->next.cores & bit) == 0) {
			node->next.cores |= bit;
			return TREBUCHET_STATUS_OK;
		}
	}
	return TREBUCHET_STATUS_BAD_DATA;
}

/* Take what of the head is in `data`; returns its bytes. */
static size_t take_rows(struct node *node, const uint8_t *data, size_t length)
{
	size_t used = 0;

	while (used < length && node->rows < node->rows_due &&
	       node->refusal == TREBUCHET_STATUS_OK) {
		node->row[node->filled++] = data[used++];
		if (node->filled < ROW)
			continue;
		node->refusal = node->rows == 0 ? judge_sizes(node) : judge_core(node);
		node->rows++;
		node->filled = 0;
	}
	return used;
}

static void finish(struct node *node, struct node_step *step)
{
	if (node->refusal == TREBUCHET_STATUS_OK && node->rows < node->rows_due)
		node->refusal = TREBUCHET_STATUS_BAD_LENGTH; /* not even the sizes */
	if (node->refusal != TREBUCHET_STATUS_OK)
		node_configured(node, node->refusal, step);
	else
		step->action = NODE_CONFIGURE;
}

static void take_configuration(struct node *node, const struct node_piece *piece,
	struct node_step *step)
{
	size_t length = piece->length < node->left ? piece->length : node->left;
	size_t used;

	if (!node->busy || node->owner != piece->session) { /* it was given up for another one */
		respond(step, TREBUCHET_STATUS_ABORTED, 0, true);
		return;
	}
	if (piece->lease != node->lease) {
		node->busy = false;
		respond(step, TREBUCHET_STATUS_STALE, 0, true);
		return;
	}
	node->since = piece->now;
	node->left -= (uint32_t)length;
	used = take_rows(node, piece->data, length);
	if (piece->missing != TREBUCHET_STATUS_OK) {
		node->busy = false;
		respond(step, piece->missing, 0, true);
		return;
	}
	if (node->refusal == TREBUCHET_STATUS_OK) {
		step->store = piece->data + used;
		step->store_length = length - used;
		step->store_at = node->stored;
		node->stored += (uint32_t)(length - used);
	}
	if (node->left > 0)
		await_more(node, step);
	else
		finish(node, step);
}

static void take_data(const struct node *node, const struct node_piece *piece,
	struct node_step *step)
{
	uint32_t id = piece->length < 4 ? 0 : get32(piece->data);
	uint32_t size = node->plan.input_size;

	if (piece->missing != TREBUCHET_STATUS_OK) {
		respond(step, piece->missing, id, true);
	} else if (piece->stale) {
		respond(step, TREBUCHET_STATUS_STALE, id, false);
	} else if (piece->length < 4 || (size != 0 && piece->length - 4 != size)) {
		respond(step, TREBUCHET_STATUS_BAD_LENGTH, id, false);
	} else {
		give(step, NODE_WORK, piece, 4);
		step->id = id;
	}
}

void node_take(struct node *node, const struct node_piece *piece, struct node_step *step)
{
	*step = (struct node_step){ 0 };
	if (piece->tag == NODE_TAG_CONFIGURATION) {
		take_configuration(node, piece, step);
		return;
	}
	/* The number of a session that was lost without a word may come again. */
	if (node->busy && node->owner == piece->session) {
		node->busy = false;
		step->note = "a configuration stopped in the middle: its connection was lost";
	}
	if (piece->tag == NODE_TAG_HEADER)
		take_header(node, piece, step);
	else if (piece->tag == NODE_TAG_DATA)
		take_data(node, piece, step);
	else if (piece->missing != TREBUCHET_STATUS_OK)
		respond(step, piece->missing, 0, true);
	else
		give(step, NODE_RUN, piece, 0);
}

void node_configured(struct node *node, uint8_t status, struct node_step *step)
{
	node->busy = false;
	if (status == TREBUCHET_STATUS_OK)
		node->plan = node->next;
	respond(step, status, 0, false);
}
