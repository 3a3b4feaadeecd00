#include "config.h"

#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "crc32.h"
#include "flash.h"

#define FORMAT 1u

_Static_assert(sizeof(struct config_block) == CONFIG_HEADER + CONFIG_TEXT, "there are no gaps");

static uint32_t checksum(const struct config_block *block)
{
	uint32_t crc = crc32_of(0, block, offsetof(struct config_block, checksum));

	return crc32_of(crc, block->text, block->length);
}

/* Judge what is read first. */
static uint8_t check_header(const struct config_block *block)
{
	if (memcmp(block->magic, "TBCF", sizeof(block->magic)) != 0)
		return TREBUCHET_STATUS_NO_CONFIG;
	if (block->format != FORMAT || block->length > CONFIG_TEXT)
		return TREBUCHET_STATUS_BAD_DATA;
	return TREBUCHET_STATUS_OK;
}

uint8_t config_check(const struct config_block *block, size_t size)
{
	uint8_t status;

	if (size < CONFIG_HEADER)
		return TREBUCHET_STATUS_TRUNCATED;
	status = check_header(block);
	if (status != TREBUCHET_STATUS_OK)
		return status;
	if (size - CONFIG_HEADER < block->length)
		return TREBUCHET_STATUS_TRUNCATED;
	if (checksum(block) != block->checksum)
		return TREBUCHET_STATUS_BAD_CHECKSUM;
	return TREBUCHET_STATUS_OK;
}

void config_clear(struct config *config)
{
	config->block.length = 0;
	config->block.sequence = 0;
	config->copy = -1;
}

static uint32_t address_of(uint32_t base, int copy)
{
	return copy ? base + CONFIG_STEP : base;
}

static uint8_t load_copy(struct config *config, uint32_t base, int copy)
{
	struct config_block *block = &config->block;
	uint32_t address = address_of(base, copy);
	uint8_t status;

	flash_read(address, block, CONFIG_HEADER);
	status = check_header(block);
	if (status == TREBUCHET_STATUS_OK) {
		flash_read(address + CONFIG_HEADER, block->text, block->length);
		status = config_check(block, sizeof(*block));
	}
	config->status[copy] = status;
	return status;
}

uint8_t config_load(struct config *config, uint32_t base)
{
	bool first = load_copy(config, base, 0) == TREBUCHET_STATUS_OK;
	uint32_t sequence = config->block.sequence;
	bool second = load_copy(config, base, 1) == TREBUCHET_STATUS_OK;

	/* Sequence numbers wrap. */
	if (second && (!first || (int32_t)(config->block.sequence - sequence) > 0)) {
		config->copy = 1;
		return TREBUCHET_STATUS_OK;
	}
	if (first && load_copy(config, base, 0) == TREBUCHET_STATUS_OK) {
		config->copy = 0;
		return TREBUCHET_STATUS_OK;
	}
	config_clear(config);
	return TREBUCHET_STATUS_NO_CONFIG;
}

uint8_t config_save(struct config *config, uint32_t base)
{
	struct config_block *block = &config->block;
	int copy = config->copy == 0;
	uint32_t address = address_of(base, copy);

	memcpy(block->magic, "TBCF", sizeof(block->magic));
	block->format = FORMAT;
	block->zero = 0;
	block->sequence++;
	block->checksum = checksum(block);
	/* The header last: without it there is no block. */
	if (flash_erase(address, CONFIG_HEADER + block->length) != TREBUCHET_STATUS_OK ||
	    flash_program(address + CONFIG_HEADER, block->text, block->length) !=
		    TREBUCHET_STATUS_OK ||
	    flash_program(address, block, CONFIG_HEADER) != TREBUCHET_STATUS_OK)
		return TREBUCHET_STATUS_FLASH_ERROR;
	config->copy = (int8_t)copy;
	return TREBUCHET_STATUS_OK;
}

uint8_t config_erase(const struct config *config, uint32_t base)
{
	static const uint8_t nothing[CONFIG_HEADER];
	int first = config->copy == 0;

	/*
	 * A header of zeros needs no erasing, and is read back. The older copy first: it would count if
	 * power failed between the two.
	 */
	for (int i = 0; i < 2; i++)
		if (flash_program(address_of(base, first ^ i), nothing, CONFIG_HEADER) !=
		    TREBUCHET_STATUS_OK)
			return TREBUCHET_STATUS_FLASH_ERROR;
	return TREBUCHET_STATUS_OK;
}

/* The next line of `rest`; what lacks the newline at its end is one, too. */
static bool next_line(struct piece *rest, struct piece *line)
{
	if (rest->length == 0)
		return false;
	if (!piece_cut(rest, '\n', line)) {
		*line = *rest;
		rest->length = 0;
	}
	return true;
}

static bool same(struct piece a, struct piece b)
{
	return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Find the line of a key: the first, if there are several. */
static bool find_line(const struct config *config, struct piece key, struct piece *line,
	struct piece *value)
{
	struct piece rest = { config->block.text, config->block.length };
	struct piece found;

	while (next_line(&rest, line)) {
		*value = *line;
		if (piece_cut(value, '=', &found) && same(found, key))
			return true;
	}
	return false;
}

bool config_find(const struct config *config, const char *key, struct piece *value)
{
	struct piece name = { key, strlen(key) };
	struct piece line;

	return find_line(config, name, &line, value) && config_allows(name, *value);
}

/* Take the first line of a key out; false if there is none. */
static bool unset_one(struct config *config, struct piece key)
{
	char *text = config->block.text;
	struct piece line, value;
	size_t from, to;

	if (!find_line(config, key, &line, &value))
		return false;
	from = (size_t)(line.at - text);
	to = from + line.length;
	if (to < config->block.length)
		to++; /* its newline */
	memmove(text + from, text + to, config->block.length - to);
	config->block.length -= (uint16_t)(to - from);
	return true;
}

/* Another program may have written a key twice. */
uint8_t config_unset(struct config *config, struct piece key)
{
	if (!unset_one(config, key))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	while (unset_one(config, key))
		;
	return TREBUCHET_STATUS_OK;
}

uint8_t config_set(struct config *config, struct piece key, struct piece value)
{
	struct config_block *block = &config->block;
	size_t left = block->length, more = key.length + value.length + 2;
	struct piece line, old;
	char *at;

	if (!config_allows(key, value))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	/* A text that another program wrote may lack its last newline. */
	if (left > 0 && block->text[left - 1] != '\n') {
		if (left == CONFIG_TEXT)
			return TREBUCHET_STATUS_NO_ROOM;
		block->text[block->length++] = '\n';
		left++;
	}
	if (find_line(config, key, &line, &old))
		left -= line.length + 1;
	if (left + more > CONFIG_TEXT)
		return TREBUCHET_STATUS_NO_ROOM;
	config_unset(config, key);
	at = block->text + block->length;
	memcpy(at, key.at, key.length);
	at[key.length] = '=';
	memcpy(at + key.length + 1, value.at, value.length);
	at[more - 1] = '\n';
	block->length += (uint16_t)more;
	return TREBUCHET_STATUS_OK;
}

bool config_wrong_line(const struct config *config, struct piece *line)
{
	struct piece rest = { config->block.text, config->block.length };

	while (next_line(&rest, line)) {
		struct piece value = *line, key;

		if (!piece_cut(&value, '=', &key) || !config_allows(key, value))
			return true;
	}
	return false;
}

bool config_ip(const struct config *config, const char *key, uint32_t *ip)
{
	struct piece value;

	return config_find(config, key, &value) && value_ip(value, ip);
}

bool config_mac(const struct config *config, const char *key, uint64_t *mac)
{
	struct piece value;

	return config_find(config, key, &value) && value_mac(value, mac);
}

bool config_unsigned(const struct config *config, const char *key, uint32_t *value)
{
	struct piece found;

	return config_find(config, key, &found) && value_unsigned(found, UINT32_MAX, value);
}
