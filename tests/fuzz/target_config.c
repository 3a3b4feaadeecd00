// firmware: config config_keys values crc32
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "config.h"
#include "crc32.h"
#include "flash.h"

/*
 * An input is a byte that says how, and what lies in flash: a whole copy, or the text of one around
 * which everything is right (a mutated copy has no right checksum).
 */
#define WHOLE_COPY 0x01
#define SECOND_COPY 0x02

#define BYTES (2 * CONFIG_STEP)

const char *const fuzz_dictionary[] = {
	"ip=", "mac=", "dhcp=1", "netmask=255.255.255.0", "gateway=", "server=", "log=info", "watchdog_ms=",
	"role=on", "name=", "tcp_rto_min=", "tcp_retries=", "peer1=", "peer15=", "02:00:00:00:00:01", "10.0.0.2", ",", "=", "\n", "TBCF", NULL,
};

static uint8_t flash[BYTES];

void flash_read(uint32_t address, void *to, size_t length)
{
	require(address <= BYTES && length <= BYTES - address);
	memcpy(to, flash + address, length);
}

uint8_t flash_erase(uint32_t address, uint32_t length)
{
	require(address % FLASH_SECTOR == 0 && address <= BYTES && length <= BYTES - address);
	memset(flash + address, 0xff, (length + FLASH_SECTOR - 1) / FLASH_SECTOR * FLASH_SECTOR);
	return TREBUCHET_STATUS_OK;
}

uint8_t flash_program(uint32_t address, const void *from, size_t length)
{
	require(address <= BYTES && length <= BYTES - address);
	for (size_t i = 0; i < length; i++)
		flash[address + i] &= ((const uint8_t *)from)[i];
	return memcmp(flash + address, from, length) == 0 ? TREBUCHET_STATUS_OK :
		TREBUCHET_STATUS_FLASH_ERROR;
}

static void put_text(uint8_t *at, const char *text, size_t length)
{
	struct config_block block = { .magic = "TBCF", .format = 1, .length = (uint16_t)length };
	uint32_t crc = crc32_of(0, &block, offsetof(struct config_block, checksum));

	block.checksum = crc32_of(crc, text, length);
	memcpy(at, &block, CONFIG_HEADER);
	memcpy(at + CONFIG_HEADER, text, length);
}

static bool inside(const struct config *config, struct piece piece)
{
	const char *text = config->block.text;

	return piece.at >= text && piece.at + piece.length <= text + config->block.length;
}

/* Whatever the text, what is read of it lies in it and is what its kind allows. */
static void read_values(const struct config *config)
{
	struct peer peer;
	struct piece value;
	uint32_t number;
	uint64_t mac;

	for (unsigned i = 1; i <= 15; i++) {
		char key[8] = "peer";

		key[4] = (char)(i < 10 ? '0' + i : '1');
		key[5] = (char)(i < 10 ? 0 : '0' + i - 10);
		if (config_find(config, key, &value)) {
			require(inside(config, value));
			config_peer(value, &peer);
		}
	}
	config_ip(config, "ip", &number);
	config_ip(config, "netmask", &number);
	if (config_mac(config, "mac", &mac))
		require(mac >> 48 == 0);
	config_unsigned(config, "watchdog_ms", &number);
	if (config_wrong_line(config, &value))
		require(inside(config, value));
}

void fuzz_one(const char *data, size_t length)
{
	static struct config config, again;
	unsigned how = length > 0 ? (uint8_t)data[0] : 0;
	uint8_t *copy = flash + (how & SECOND_COPY ? CONFIG_STEP : 0);
	struct piece ip = { "10.0.0.9", 8 }, key = { "ip", 2 }, line;

	memset(flash, 0xff, sizeof(flash));
	if (length > 0) {
		data++;
		length--;
	}
	if (how & WHOLE_COPY)
		memcpy(copy, data, length < CONFIG_STEP ? length : CONFIG_STEP);
	else
		put_text(copy, data, length < CONFIG_TEXT ? length : CONFIG_TEXT);
	config_load(&config, 0);
	require(config.block.length <= CONFIG_TEXT);
	read_values(&config);
	if (config_wrong_line(&config, &line))
		return; /* nothing is promised of what firmware did not write */
	if (config_set(&config, key, ip) != TREBUCHET_STATUS_OK)
		return;
	require(config_save(&config, 0) == TREBUCHET_STATUS_OK);
	require(config_load(&again, 0) == TREBUCHET_STATUS_OK);
	require(again.block.length == config.block.length);
	require(memcmp(again.block.text, config.block.text, config.block.length) == 0);
	require(config_find(&again, "ip", &line) && piece_equals(line, "10.0.0.9"));
	require(config_unset(&again, key) == TREBUCHET_STATUS_OK && !config_find(&again, "ip", &line));
}
