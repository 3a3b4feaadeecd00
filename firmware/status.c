#include "status.h"

#include <string.h>

/* A name of the table as a key; names are identifiers, so nothing in them needs a backslash. */
static void write_key(struct text *out, const char *name)
{
	text_char(out, '"');
	text_plain(out, name);
	text_plain(out, "\":");
}

uint64_t status_value(const struct status_entry *entry, uint32_t (*read)(uint32_t address))
{
	uint64_t value = read(entry->address);

	if (entry->words > 1)
		value |= (uint64_t)read(entry->address + 4) << 32;
	return value;
}

static void write_sessions(struct text *out, const struct status_entry *entries, unsigned count,
	uint32_t (*read)(uint32_t address))
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(entries[i].block, "tcp") == 0 && strcmp(entries[i].name, "sessions_used") == 0) {
			text_unsigned(out, status_value(&entries[i], read));
			return;
		}
	}
	text_plain(out, "null");
}

static void write_engines(struct text *out, const struct status_entry *entries, unsigned count,
	uint32_t (*read)(uint32_t address))
{
	const char *block = NULL;

	for (unsigned i = 0; i < count; i++) {
		const char *next = entries[i].block;
		bool same = block == next || (block != NULL && strcmp(block, next) == 0);

		if (!same) {
			if (block != NULL)
				text_plain(out, "},");
			block = next;
			write_key(out, block);
			text_char(out, '{');
		} else {
			text_char(out, ',');
		}
		write_key(out, entries[i].name);
		text_unsigned(out, status_value(&entries[i], read));
	}
	if (block != NULL)
		text_char(out, '}');
}

void status_write(struct text *out, const struct status_info *info,
	const struct status_entry *entries, unsigned count, uint32_t (*read)(uint32_t address))
{
	text_plain(out, "{\"version\":");
	text_json(out, info->version);
	text_plain(out, ",\"board\":");
	text_json(out, info->board);
	text_plain(out, ",\"uptime_ms\":");
	text_unsigned(out, info->uptime_ms);
	text_plain(out, ",\"start\":");
	text_json(out, info->start);
	text_plain(out, ",\"restarts\":");
	text_unsigned(out, info->restarts);
	text_plain(out, ",\"memory_test\":");
	text_json(out, info->memory_test);
	text_plain(out, ",\"registers\":");
	text_json(out, info->registers);
	text_plain(out, ",\"sessions\":");
	write_sessions(out, entries, count, read);
	text_char(out, ',');
	if (info->more != NULL)
		info->more(out);
	text_plain(out, "\"engines\":{");
	write_engines(out, entries, count, read);
	text_plain(out, "}}\n");
}
