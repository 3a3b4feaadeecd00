/*
 * How two boards that LTL joins agree on the incarnation of their connections, at the start and when
 * one of them has restarted or the connections have failed (docs/network.md, Greeting).
 *
 * Each has a number for the other that it changes whenever it gives up connections that were in use.
 * The sum of both numbers is the incarnation, so that connections of which one end is new have a new
 * one. A greeting says our number, the other's as far as we know it, and whether we ask for an answer.
 */
#ifndef TREBUCHET_GREETING_H
#define TREBUCHET_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#define GREETING_BYTES 9
/* Pause after a board has asked another for the first time; and the longest. */
#define GREETING_MS 200u
#define GREETING_MOST_MS 6400u

struct greeting {
	uint16_t ours;
	uint16_t theirs;   /* 0: not known */
	bool joined;       /* the other knows our number, too */
	bool answers;      /* a greeting is owed */
	uint32_t asked_ms; /* when we asked last */
	uint32_t pause_ms; /* how long until we ask again */
};

/* What a greeting has changed. */
struct greeting_news {
	bool agreed; /* another incarnation: open what receives, close what sends */
	bool joined; /* the other end is open: open what sends */
};

/* Begin with a number that is not the one before the restart; it is due at once. */
void greeting_start(struct greeting *greeting, uint16_t ours, uint32_t now_ms);
/* Our connections are no more: begin anew. */
void greeting_again(struct greeting *greeting, uint32_t now_ms);
/* A greeting has come from the other board; one that is none changes nothing. */
struct greeting_news greeting_take(struct greeting *greeting, const uint8_t at[GREETING_BYTES]);
/* Must one be sent? Then greeting_put() says what. */
bool greeting_is_due(const struct greeting *greeting, uint32_t now_ms);
void greeting_put(struct greeting *greeting, uint8_t at[GREETING_BYTES], uint32_t now_ms);
/* Of the connections, as far as agreed. */
uint16_t greeting_incarnation(const struct greeting *greeting);

#endif
