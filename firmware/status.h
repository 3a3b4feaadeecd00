/* The status page: what the board is, and every counter of its engines, as one JSON object. */
#ifndef TREBUCHET_STATUS_H
#define TREBUCHET_STATUS_H

#include <stdint.h>

#include "text.h"

/* One read-only register; soc/firmware.py generates the table from the register declarations. */
struct status_entry {
	const char *block; /* both are identifiers */
	const char *name;
	uint32_t address;
	uint32_t words; /* 1, or 2 for a register of more than 32 bits (low word first) */
};

struct status_info {
	const char *version;
	const char *board;
	uint32_t uptime_ms;
	const char *start; /* why it started */
	uint32_t restarts; /* since power-up */
	const char *memory_test; /* of the external memory at start: "good" or "none" */
	const char *registers; /* hash of the register map (models/register_map.py) */
	void (*more)(struct text *out); /* writes further members, each with a comma behind it; or NULL */
};

/* What the register of an entry holds. */
uint64_t status_value(const struct status_entry *entry, uint32_t (*read)(uint32_t address));

/*
 * Append {"version":…,"board":…,"uptime_ms":…,"start":…,"restarts":…,"memory_test":…,
 * "registers":…,"sessions":…,"card":{…},"engines":{BLOCK:{NAME:value,…},…}}.
 * `sessions` is the TCP engine's register `sessions_used`, null where there is no TCP engine.
 * `card` is there on boards that serve files of a drive (web_card.h).
 * `read` returns the word at an address. The entries of a block lie together.
 */
void status_write(struct text *out, const struct status_info *info,
	const struct status_entry *entries, unsigned count, uint32_t (*read)(uint32_t address));

#endif
