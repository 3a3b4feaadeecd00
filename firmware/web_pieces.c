#include "web_pieces.h"

#include "web_card.h"

#ifdef WEB_CARD

#include <string.h>

#include "board.h"
#include "bulk.h"
#include "web.h"

/* Share of a half; blocks of a piece at least and at most. */
#define SHARE 8u
#define LEAST_BLOCKS 4u
#define MOST_BLOCKS 256u
/* Pieces begin with room for a header: of the first one it is moved to where the content begins. */
#define HEADER_ROOM WEB_HEADER
/* How long one that waited for memory, and has not asked again, keeps others at one piece. */
#define STARVED_MS 1000u
#define STREAMS WEB_PIECES
#define NONE 0xffu

struct piece {
	uint8_t owner; /* a stream, or NONE */
	uint8_t number; /* of the buffer while it is in flight, or 0 */
};

struct stream {
	bool open, failed;
	uint8_t current; /* the piece that is loaded and then sent, or NONE */
	struct fat_file file;
	struct fat_extent extent; /* what is left of one */
	uint32_t pass, skip; /* blocks, and then bytes of a block, before what is sent next */
	uint32_t header; /* bytes in front of the current piece */
	uint32_t bytes; /* of the content in it */
	uint32_t filled, wanted; /* blocks of it */
	uint32_t left; /* bytes of the content after it */
};

static BULK struct stream streams[STREAMS];
static struct piece pieces[WEB_PIECES];
static uint32_t home; /* the image that the memory is of */
static uint32_t memory, blocks; /* the first piece; of each */
static uint8_t moving = NONE; /* the piece that a job of the drive writes */
static uint8_t mover = NONE; /* its stream, unless that was closed */
static uint32_t count; /* blocks of the job */
static unsigned turn;
static bool starved;
static uint32_t starved_ms;

void web_pieces_start(void)
{
	memset(streams, 0, sizeof(streams));
	web_pieces_place(0, 0, 0);
}

uint32_t web_pieces_share(uint32_t half)
{
	uint32_t least = WEB_PIECES * (HEADER_ROOM + LEAST_BLOCKS * FAT_BLOCK);
	uint32_t most = WEB_PIECES * (HEADER_ROOM + MOST_BLOCKS * FAT_BLOCK);

	return half / SHARE < least ? least : half / SHARE < most ? half / SHARE : most;
}

void web_pieces_place(uint32_t base, uint32_t address, uint32_t bytes)
{
	home = base;
	memory = address;
	blocks = bytes == 0 ? 0 : (bytes / WEB_PIECES - HEADER_ROOM) / FAT_BLOCK;
	for (unsigned p = 0; p < WEB_PIECES; p++)
		pieces[p] = (struct piece){ .owner = NONE };
	for (unsigned s = 0; s < STREAMS; s++) {
		streams[s].failed = true;
		streams[s].current = NONE;
	}
	moving = mover = NONE; /* a job that is under way writes to the memory of before */
	starved = false;
}

bool web_pieces_any(void)
{
	return blocks != 0;
}

void web_pieces_cut(void)
{
	for (unsigned s = 0; s < STREAMS; s++)
		streams[s].failed = true;
}

static uint32_t address_of(unsigned piece)
{
	return memory + piece * (HEADER_ROOM + blocks * FAT_BLOCK);
}

/* Find the next block to be loaded, and the extent that it is in. */
static enum cache_next seek(struct stream *stream, struct fat *fat)
{
	while (stream->extent.blocks == 0 || stream->pass > 0) {
		uint32_t passed = stream->pass;

		if (stream->extent.blocks == 0) {
			enum fat_status status = fat_extent(fat, &stream->file, &stream->extent);

			if (status == FAT_PENDING)
				return CACHE_JOB_LATER;
			if (status != FAT_OK) {
				stream->failed = true;
				return CACHE_NO_JOB;
			}
		}
		if (passed > stream->extent.blocks)
			passed = stream->extent.blocks;
		stream->pass -= passed;
		stream->extent.lba += passed;
		stream->extent.blocks -= passed;
	}
	return CACHE_JOB;
}

static enum cache_next next_job(unsigned number, struct fat *fat, struct cache_job *job)
{
	struct stream *stream = &streams[number];
	enum cache_next what;

	if (!stream->open || stream->failed || stream->current == NONE || stream->filled == stream->wanted)
		return CACHE_NO_JOB;
	what = seek(stream, fat);
	if (what != CACHE_JOB)
		return what;
	count = stream->wanted - stream->filled;
	if (count > stream->extent.blocks)
		count = stream->extent.blocks;
	job->lba = stream->extent.lba;
	job->count = count;
	job->address = address_of(stream->current) + HEADER_ROOM + stream->filled * FAT_BLOCK;
	stream->extent.lba += count;
	stream->extent.blocks -= count;
	moving = stream->current;
	mover = (uint8_t)number;
	return CACHE_JOB;
}

enum cache_next web_pieces_job(struct fat *fat, struct cache_job *job)
{
	for (unsigned tried = 0; tried < STREAMS; tried++) {
		enum cache_next what = next_job(turn, fat, job);

		if (what == CACHE_JOB_LATER) /* what it waits for must still be there then: it is first again */
			return what;
		turn = turn + 1 == STREAMS ? 0 : turn + 1;
		if (what == CACHE_JOB)
			return what;
	}
	return CACHE_NO_JOB;
}

void web_pieces_moved(bool good)
{
	if (mover != NONE) {
		if (good)
			streams[mover].filled += count;
		else
			streams[mover].failed = true;
	}
	moving = mover = NONE;
}

static unsigned owned_by(unsigned stream)
{
	unsigned owned = 0;

	for (unsigned p = 0; p < WEB_PIECES; p++)
		owned += pieces[p].owner == stream;
	return owned;
}

/* Does a stream wait for its first piece? */
static bool is_starved(void)
{
	return starved && board_uptime_ms() - starved_ms < STARVED_MS;
}

void web_pieces_collect(uint32_t busy)
{
	for (unsigned p = 0; p < WEB_PIECES; p++) {
		struct piece *piece = &pieces[p];
		const struct stream *stream = &streams[piece->owner == NONE ? 0 : piece->owner];

		if (piece->number != 0 && (busy >> (piece->number - 1) & 1) == 0)
			piece->number = 0;
		if (piece->owner == NONE || piece->number != 0 || stream->current == p)
			continue;
		if (stream->left == 0 || (is_starved() && owned_by(piece->owner) > 1))
			piece->owner = NONE;
	}
}

static bool is_idle(unsigned piece)
{
	return pieces[piece].number == 0 && moving != piece;
}

/* A piece that a stream may load into: its own, or one that is free; or NONE. */
static unsigned find_piece(unsigned owner)
{
	for (unsigned p = 0; p < WEB_PIECES; p++)
		if (pieces[p].owner == owner && is_idle(p))
			return p;
	return NONE;
}

/* Begin to load what comes next into a piece. */
static void begin(unsigned number, unsigned piece)
{
	struct stream *stream = &streams[number];
	uint32_t most = blocks * FAT_BLOCK - stream->skip;

	pieces[piece].owner = (uint8_t)number;
	stream->current = (uint8_t)piece;
	stream->bytes = stream->left < most ? stream->left : most;
	stream->left -= stream->bytes;
	stream->filled = 0;
	stream->wanted = (stream->skip + stream->bytes + FAT_BLOCK - 1) / FAT_BLOCK;
}

static void begin_next(unsigned number)
{
	unsigned piece = find_piece(number);

	if (piece == NONE && owned_by(number) < 2 && !is_starved())
		piece = find_piece(NONE);
	if (piece != NONE)
		begin(number, piece);
}

unsigned web_pieces_open(const struct web_large *file, uint32_t first, uint32_t bytes, const struct text *header)
{
	unsigned piece = find_piece(NONE), number = 0;
	struct stream *stream;

	while (number < STREAMS && streams[number].open)
		number++;
	starved = piece == NONE || number == STREAMS;
	starved_ms = board_uptime_ms();
	if (starved)
		return 0;
	stream = &streams[number];
	*stream = (struct stream){ .open = true, .left = bytes, .header = (uint32_t)header->length };
	stream->pass = first / FAT_BLOCK;
	stream->skip = first % FAT_BLOCK;
	stream->failed = fat_open_at(file->fat, &stream->file, file->cluster, file->size) != FAT_OK;
	stream->file.most = blocks;
	memcpy((void *)(uintptr_t)address_of(piece), header->start, header->length);
	begin(number, piece);
	return number + 1;
}

enum web_piece web_pieces_take(unsigned stream_number, unsigned buffer, struct web_part *part)
{
	unsigned number = stream_number - 1;
	struct stream *stream = &streams[number];
	uint8_t *begins;

	if (stream->failed || web_served()->base != home)
		return WEB_PIECE_FAILED;
	if (stream->current == NONE)
		begin_next(number);
	if (stream->current == NONE)
		return WEB_PIECE_HELD;
	if (stream->filled < stream->wanted)
		return WEB_PIECE_LOADING;
	if (buffer == 0)
		return WEB_PIECE_HELD;
	begins = (uint8_t *)(uintptr_t)address_of(stream->current);
	memmove(begins + HEADER_ROOM + stream->skip - stream->header, begins, stream->header);
	part->address = address_of(stream->current) + HEADER_ROOM + stream->skip - stream->header;
	part->length = stream->header + stream->bytes;
	part->last = stream->left == 0;
	pieces[stream->current].number = (uint8_t)buffer;
	stream->current = NONE;
	stream->skip = stream->header = 0;
	if (!part->last)
		begin_next(number);
	return WEB_PIECE_READY;
}

bool web_pieces_in_flight(unsigned stream)
{
	for (unsigned p = 0; p < WEB_PIECES; p++)
		if (pieces[p].owner == stream - 1 && pieces[p].number != 0)
			return true;
	return false;
}

void web_pieces_close(unsigned stream)
{
	unsigned number = stream - 1;

	for (unsigned p = 0; p < WEB_PIECES; p++)
		if (pieces[p].owner == number)
			pieces[p].owner = NONE;
	streams[number].open = false;
	if (mover == number)
		mover = NONE;
}

uint32_t web_pieces_streams(void)
{
	uint32_t open = 0;

	for (unsigned s = 0; s < STREAMS; s++)
		open += streams[s].open;
	return open;
}

uint32_t web_pieces_free(void)
{
	uint32_t idle = 0;

	for (unsigned p = 0; p < WEB_PIECES; p++)
		idle += pieces[p].owner == NONE && is_idle(p);
	return blocks == 0 ? 0 : idle;
}

#endif
