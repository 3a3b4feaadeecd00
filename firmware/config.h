/*
 * The configuration block: lines "KEY=VALUE" in flash, in two copies, of which the newest good one
 * counts; what is cut off while it is written keeps the other one.
 *
 * A copy is 16 bytes of header, then the text. Numbers have their low byte first.
 *
 *   0  magic "TBCF"    4  version of the format, 1    5  0    6  bytes of text (2)
 *   8  sequence number of the copy (4), one more than that of the one before
 *  12  CRC-32 of bytes 0 to 11 and of the text (4)
 */
#ifndef TREBUCHET_CONFIG_H
#define TREBUCHET_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "values.h"

#define CONFIG_HEADER 16u
#define CONFIG_TEXT 2032u
/* Bytes that the copies are apart: each has a sector of its own. */
#define CONFIG_STEP 4096u

/* A copy as it lies in flash: the CPU has the low byte first, too. */
struct config_block {
	char magic[4];
	uint8_t format;
	uint8_t zero;
	uint16_t length;
	uint32_t sequence;
	uint32_t checksum;
	char text[CONFIG_TEXT]; /* valid up to `length` */
};

struct config {
	struct config_block block;
	int8_t copy;        /* the one that was read or written last, or -1 */
	uint8_t status[2];  /* of each copy, as it was read */
};

/* Functions that return uint8_t return a status (generated/trebuchet_status_codes.h). */

/*
 * Judge a copy, of which `size` bytes are there: OK, TRUNCATED, NO_CONFIG (no block at all), BAD_DATA
 * (another format) or BAD_CHECKSUM.
 */
uint8_t config_check(const struct config_block *block, size_t size);
/* Start with an empty text. */
void config_clear(struct config *config);
/* Read the newest good copy of the two from `base` on: OK, or NO_CONFIG and an empty text. */
uint8_t config_load(struct config *config, uint32_t base);
/* Write the text to the older copy: OK or FLASH_ERROR. */
uint8_t config_save(struct config *config, uint32_t base);
/* Make both copies invalid, the older one first: OK or FLASH_ERROR. Leaves the text alone. */
uint8_t config_erase(const struct config *config, uint32_t base);

/* The value of a key. */
bool config_find(const struct config *config, const char *key, struct piece *value);
/* OK, BAD_ARGUMENT (no such key, or not a value for it), NO_ROOM. */
uint8_t config_set(struct config *config, struct piece key, struct piece value);
/* OK, or BAD_ARGUMENT if the text has no such key. */
uint8_t config_unset(struct config *config, struct piece key);
/* The first line of the text that is no KEY=VALUE of a known key with a good value. */
bool config_wrong_line(const struct config *config, struct piece *line);

/* Where a key's value is of that kind. */
bool config_ip(const struct config *config, const char *key, uint32_t *ip);
bool config_mac(const struct config *config, const char *key, uint64_t *mac);
bool config_unsigned(const struct config *config, const char *key, uint32_t *value);

/*
 * A server to connect to: "IP:PORT", or "IP:PORT/OWN" with one of this board's TCP ports whose
 * service is meant; 0: it was not said.
 */
struct config_server {
	uint32_t ip;
	uint32_t port;
	uint32_t own;
};
bool config_find_server(const struct config *config, struct config_server *server);

/*
 * A peer for LTL (ltl.h): "MAC,IP,THEIRS,TIMEOUT_US,CALLED". Also a row of
 * generated/trebuchet_peers.h, where peer p is row p - 1.
 */
struct peer {
	uint32_t mac_high;   /* the first two bytes on the wire */
	uint32_t mac_low;    /* the other four, the first one most significant */
	uint32_t ip;
	uint16_t theirs;     /* the number that the peer has for this board */
	uint16_t timeout_us; /* at most 32767: the engine's time wraps at 65536 ticks */
	bool called;         /* jobs that come to this board may go to the peer's role */
};
bool config_peer(struct piece value, struct peer *peer);
/* Peer `number`, 1 to 15, if it is there and good. */
bool config_find_peer(const struct config *config, uint32_t number, struct peer *peer);

/* Times and limits of the TCP engine, in the order of their registers: key, and the range it has. */
struct config_number {
	const char *key;
	uint32_t low;
	uint32_t high;
};
#define CONFIG_TCP 12u
extern const struct config_number config_tcp[CONFIG_TCP];

/* Whether a key exists and may have the value; config_keys.c has the table. */
bool config_allows(struct piece key, struct piece value);
/* Name and form of the key number `index`, or NULL: for help. */
const char *config_key_form(unsigned index);

#endif
