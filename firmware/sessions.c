#include "sessions.h"

#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#ifdef TREBUCHET_TCP_BASE

static void gauge(struct text *out, const char *name, uint32_t value)
{
	text_plain(out, name);
	text_char(out, ' ');
	text_unsigned(out, value);
	text_char(out, '\n');
}

static void usage(struct text *out)
{
	static const struct {
		const char *name;
		uint32_t address; /* of a register of one word */
	} gauges[] = {
		{ "slots", TREBUCHET_TCP_SESSIONS_ADDR },
		{ "used", TREBUCHET_TCP_SESSIONS_USED_ADDR },
		{ "half open", TREBUCHET_TCP_HALF_OPEN_ADDR },
		{ "free segments", TREBUCHET_TCP_SEGMENTS_FREE_ADDR },
		{ "free descriptors", TREBUCHET_TCP_DESCRIPTORS_FREE_ADDR },
		{ "established so far", TREBUCHET_TCP_ESTABLISHED_ADDR },
		{ "refused: full", TREBUCHET_TCP_REFUSED_FULL_ADDR },
		{ "refused: half open", TREBUCHET_TCP_REFUSED_HALF_OPEN_ADDR },
		{ "timed out", TREBUCHET_TCP_TIMEOUTS_ADDR },
	};

	for (unsigned i = 0; i < sizeof(gauges) / sizeof(gauges[0]); i++)
		gauge(out, gauges[i].name, trebuchet_read32(gauges[i].address));
}

#ifdef TREBUCHET_TCP_INSPECT_ADDR

/* So many are looked at by one command: a millisecond or two, in which nothing else is done. */
#define SCAN 1024u
/* The longest line, and the one that says how to go on. */
#define LINE 176u

/* The register, words of a session, and its states (cores/tcp/inspect.py). */
#define WORD_PLACE 17u
#define GO (1u << 21)
enum { STATE, PEER, PORTS, FIGURES, WORDS = 14 };
static const char *const states[] = { "", "CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED",
	"ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSE-WAIT", "LAST-ACK", "CLOSING", "TIME-WAIT" };

static uint32_t look(uint32_t session, uint32_t word)
{
	trebuchet_tcp_inspect_write(session | word << WORD_PLACE | GO);
	while (trebuchet_tcp_inspect_busy_read() != 0)
		; /* some cycles: no engine keeps a record for longer */
	return trebuchet_tcp_inspect_value_read();
}

static void number(struct text *out, char before, uint32_t value)
{
	text_char(out, before);
	text_unsigned(out, value);
}

static void row(struct text *out, uint32_t session, uint32_t state)
{
	uint32_t ports = look(session, PORTS);

	text_unsigned(out, session);
	text_char(out, ' ');
	text_plain(out, states[state]);
	text_char(out, ' ');
	text_ip(out, look(session, PEER));
	number(out, ':', ports & 0xffff);
	number(out, ' ', ports >> 16);
	for (uint32_t word = FIGURES; word < WORDS; word++)
		number(out, ' ', look(session, word));
	text_char(out, '\n');
}

/* No session from this number on was ever used. */
static uint32_t high(void)
{
#ifdef TREBUCHET_TCP_SESSIONS_HIGH_ADDR
	return trebuchet_read32(TREBUCHET_TCP_SESSIONS_HIGH_ADDR);
#else
	return trebuchet_tcp_sessions_read();
#endif
}

static uint8_t list(uint32_t from, struct text *out)
{
	uint32_t slots = high();

	text_plain(out, "session state peer port unacknowledged unread snd.una rcv.nxt rto snd.nxt "
			"peer-window window rtt cwnd queue\n");
	for (uint32_t session = from; session < slots; session++) {
		uint32_t state;

		if (session - from == SCAN || out->room - out->length < 2 * LINE) {
			gauge(out, "more: sessions", session);
			break;
		}
		state = look(session, STATE);
		if (state != 0)
			row(out, session, state);
	}
	return TREBUCHET_STATUS_OK;
}

#else

static uint8_t list(uint32_t from, struct text *out)
{
	(void)from;
	(void)out;
	return TREBUCHET_STATUS_NOT_BUILT_IN;
}

#endif

uint8_t sessions_command(struct words *words, struct text *out)
{
	uint32_t from;

	if (words->count == 1) {
		usage(out);
		return TREBUCHET_STATUS_OK;
	}
	if (words->count > 2 || !words_number(words, 1, &from))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	return list(from, out);
}

#endif
