#include "greeting.h"

#include "packet.h"

/* A greeting: "LTL", form 1; our number; theirs; flags. */
#define MAGIC 0x4c544c01u
#define OURS 4
#define THEIRS 6
#define FLAGS 8
#define ASKS 1u

/* 0 says that a number is not known. */
static uint16_t next(uint16_t number)
{
	return number == UINT16_MAX ? 1 : (uint16_t)(number + 1);
}

/*
 * One to two times as long, by chance: others that began with us should not go on asking when we
 * do. A board has room for one frame, and a slow one (a simulation) would see the same peer only.
 */
static uint32_t longer(const struct greeting *greeting, uint32_t now_ms)
{
	const uint32_t most = GREETING_MOST_MS / 2;
	uint32_t half = greeting->pause_ms < most ? greeting->pause_ms : most;
	uint32_t chance = (greeting->ours ^ now_ms) * 0x9e3779b1u >> 24;

	return half + (half * chance >> 8);
}

void greeting_start(struct greeting *greeting, uint16_t ours, uint32_t now_ms)
{
	*greeting = (struct greeting){
		.ours = ours == 0 ? 1 : ours,
		.asked_ms = now_ms - GREETING_MS,
		.pause_ms = GREETING_MS,
	};
}

void greeting_again(struct greeting *greeting, uint32_t now_ms)
{
	greeting_start(greeting, next(greeting->ours), now_ms);
}

struct greeting_news greeting_take(struct greeting *greeting, const uint8_t at[GREETING_BYTES])
{
	struct greeting_news news = { false, false };
	uint16_t theirs = packet_get16(at + OURS);

	if (packet_get32(at) != MAGIC || theirs == 0)
		return news;
	if (theirs != greeting->theirs) {
		/* The other end is new. What we have sent under our number must not count for it. */
		if (greeting->joined)
			greeting->ours = next(greeting->ours);
		greeting->theirs = theirs;
		greeting->joined = false;
		greeting->pause_ms = GREETING_MS;
		news.agreed = true;
	}
	if (packet_get16(at + THEIRS) != greeting->ours) {
		greeting->answers = true;
		return news;
	}
	news.joined = !greeting->joined;
	greeting->joined = true;
	greeting->answers |= (at[FLAGS] & ASKS) != 0;
	return news;
}

bool greeting_is_due(const struct greeting *greeting, uint32_t now_ms)
{
	return greeting->answers ||
	       (!greeting->joined && now_ms - greeting->asked_ms >= greeting->pause_ms);
}

void greeting_put(struct greeting *greeting, uint8_t at[GREETING_BYTES], uint32_t now_ms)
{
	packet_put32(at, MAGIC);
	packet_put16(at + OURS, greeting->ours);
	packet_put16(at + THEIRS, greeting->theirs);
	at[FLAGS] = greeting->joined ? 0 : ASKS;
	greeting->answers = false;
	greeting->pause_ms = longer(greeting, now_ms);
	greeting->asked_ms = now_ms;
}

uint16_t greeting_incarnation(const struct greeting *greeting)
{
	return (uint16_t)(greeting->ours + greeting->theirs);
}
