/*
 * Files of a card that are larger than the memory for files: each response is loaded and sent in pieces, and while
 * one is sent the next one is loaded.
 *
 * There are WEB_PIECES pieces of memory. A response that is sent like this is a stream. It has one piece from its
 * begin to its end, and a second one while no other stream waits for its first. A piece is in flight from the reply
 * that sends it until the bit of its buffer's number is 0 (cores/web/desk.py): then its last byte was acknowledged,
 * or the connection has ended. It is not written before.
 *
 * web_slow.c opens streams and sends pieces; web_card.c moves blocks from the drive. What fails, or is cut as the
 * medium has gone, ends the response there: nothing takes the place of bytes that are missing.
 */
#ifndef TREBUCHET_WEB_PIECES_H
#define TREBUCHET_WEB_PIECES_H

#include "store/cache.h"
#include "text.h"
#include "web_answer.h"

#define WEB_PIECES 4u

void web_pieces_start(void);
/* Bytes for pieces of a half of the web service's memory. */
uint32_t web_pieces_share(uint32_t half);
/* Their memory, of the image at `base`, and all streams cut; of 0 bytes: there are none. */
void web_pieces_place(uint32_t base, uint32_t address, uint32_t bytes);
/* Is there memory for pieces? */
bool web_pieces_any(void);
/* No further block can be loaded: every stream fails. */
void web_pieces_cut(void);

/* The next job of the drive for a stream; `fat` is the volume's, with a budget. */
enum cache_next web_pieces_job(struct fat *fat, struct cache_job *job);
/* That job is over. */
void web_pieces_moved(bool good);

/* A request is shown, so that the last reply was taken; `busy`: buffers that are being sent from. */
void web_pieces_collect(uint32_t busy);
/*
 * Begin a stream: `header`, then `count` bytes of the file from `first` on; the header is copied. Returns the
 * stream's number, or 0: there is no memory for it now, ask again.
 */
unsigned web_pieces_open(const struct web_large *file, uint32_t first, uint32_t count, const struct text *header);

enum web_piece {
	WEB_PIECE_READY, /* `part` is to be sent, with the buffer's number */
	WEB_PIECE_LOADING,
	WEB_PIECE_HELD, /* by what is in flight */
	WEB_PIECE_FAILED,
};

struct web_part {
	uint32_t address, length;
	bool last;
};

/* The stream's next piece. `buffer`: the number of a buffer that is not being sent from, or 0. */
enum web_piece web_pieces_take(unsigned stream, unsigned buffer, struct web_part *part);
/* Is a piece of the stream in flight? */
bool web_pieces_in_flight(unsigned stream);
/* The stream has ended; its memory is free as soon as nothing of it is in flight. */
void web_pieces_close(unsigned stream);

/* Streams; pieces that are neither a stream's nor in flight. */
uint32_t web_pieces_streams(void);
uint32_t web_pieces_free(void);

#endif
