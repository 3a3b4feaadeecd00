/*
 * The node manager: SMP messages (client/smp.py; distributed-fpga-framework, 3.2 and 3.4) on the CPU's
 * TCP port, as a state machine that is fed what the mailbox shows. It does nothing itself: it says
 * what is to be done.
 *
 * A message comes as a header of 8 bytes, then as pieces that were asked for with a tag. Of commands
 * and data there is one piece, so that many connections may send them at the same time; of all that
 * is awaited from them the mailbox keeps the tag, and nothing is kept here. A configuration comes
 * in as many pieces as it takes; there is one at a time.
 *
 * What cannot be understood, or is too large to be taken, ends the connection after the answer: where
 * the next message begins is not known. What is merely wrong is read to its end, then answered.
 *
 * A configuration of another epoch than the board's lease ends its connection: nothing is kept for it.
 * One that began under another lease is refused with its next piece, and gives way to another at once.
 * Data are refused while the guard is on: the epoch of their header is not kept until they are there.
 */
#ifndef TREBUCHET_NODE_H
#define TREBUCHET_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODE_HEADER 8u
/* Message types. */
#define NODE_CONFIGURATION 1u
#define NODE_RESPONSE 2u
#define NODE_DATA 3u
#define NODE_COMMAND 5u
#define NODE_REPLY 6u

/* A longer command is answered TOO_LARGE. */
#define NODE_LINE 127u
/* Another connection may take the place of a configuration that has not gone on for so long. */
#define NODE_PATIENCE_MS 10000u

/* What a piece was asked for as: the mailbox's `tag`. */
enum node_tag { NODE_TAG_HEADER, NODE_TAG_CONFIGURATION, NODE_TAG_DATA, NODE_TAG_COMMAND };

/* What this board has. */
struct node_limits {
	const uint32_t *cores; /* control base of each role's registers; at most 32 */
	unsigned count;
	uint32_t piece;        /* largest piece, at least NODE_HEADER bytes */
	uint32_t image;        /* largest image */
};

/* What a configuration message says, beside the image. */
struct node_plan {
	uint32_t input_size;   /* operands must be so long; 0: any */
	uint32_t output_size;  /* results may be so long; 0: any */
	uint32_t cores;        /* bit k: limits.cores[k] is named */
	uint32_t image_length;
	bool benchmark;        /* the benchmarking configuration (4.2.2): the image is a delay */
};

struct node {
	struct node_limits limits;
	struct node_plan plan;     /* of the last configuration that was carried out */
	/* A configuration on its way. */
	bool busy;
	uint32_t owner;            /* its session */
	uint32_t since;            /* when its last piece came, in milliseconds */
	uint32_t lease;            /* the board's epoch when it began */
	uint32_t size, left;       /* bytes of its payload, and those to come */
	uint8_t refusal;           /* the status that it will be answered with, unless OK */
	uint8_t row[12];           /* of its head: the sizes, then a core */
	unsigned filled;
	uint32_t rows, rows_due;
	uint32_t stored;           /* bytes of the image that have come */
	struct node_plan next;
};

/* One request that the mailbox shows. */
struct node_piece {
	uint32_t session;
	enum node_tag tag;
	uint8_t missing;           /* OK: it is whole; or why the rest does not come: TRUNCATED, TIMED_OUT */
	const uint8_t *data;
	size_t length;
	uint32_t now;              /* milliseconds, modulo 2**32 */
	uint32_t lease;            /* epoch of the board's lease */
	bool stale;                /* of a header: the guard refuses its epoch; of data: it is on */
};

enum node_action {
	NODE_AWAIT,     /* answer nothing; `expect` bytes with `tag` are next */
	NODE_RESPOND,   /* answer with a response message: `status`, `id` */
	NODE_RUN,       /* carry out the command at `data`; answer with a reply message */
	NODE_WORK,      /* run a job on the operand at `data`; answer with a data message */
	NODE_CONFIGURE, /* check and write the image of `next`; then call node_configured */
};

struct node_step {
	enum node_action action;
	uint8_t status;
	bool close;
	enum node_tag tag;
	uint32_t expect;
	uint32_t id;
	const uint8_t *data;   /* of the piece */
	size_t length;
	/* Before all else: these bytes of the piece belong at `store_at` in the image's memory. */
	const uint8_t *store;
	size_t store_length;
	uint32_t store_at;
	/* Something for the log that is not told by the status; NULL: nothing. */
	const char *note;
};

void node_start(struct node *node, const struct node_limits *limits);
/* The epoch in a message's header (models/epoch.py). */
uint32_t node_epoch(const uint8_t header[NODE_HEADER]);
/* Take what came. `length` of the piece is at most the piece asked for; more is left alone. */
void node_take(struct node *node, const struct node_piece *piece, struct node_step *step);
/* The configuration was carried out, or failed with another status than OK: the response to it. */
void node_configured(struct node *node, uint8_t status, struct node_step *step);

/* The head of an answer: a message header of `type` for `payload` bytes, and the first 4 of them. */
void node_head(uint8_t head[12], uint8_t type, uint32_t payload, uint32_t first);

#endif
