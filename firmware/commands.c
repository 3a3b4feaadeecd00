/* The table of commands, and those that belong to no other part. */
#include "command.h"

#include <generated/mem.h>
#include <generated/soc.h>
#include <generated/trebuchet_build.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "board.h"
#include "counters.h"
#include "crash.h"
#include "drive.h"
#include "flash_commands.h"
#include "ip.h"
#include "lease.h"
#include "log.h"
#include "restart.h"
#include "role.h"
#include "sessions.h"
#include "web.h"
#include "web_card.h"

#define PEEK_MAX_WORDS 256u
#define PEEK_WORDS_A_LINE 4u

static uint8_t version(struct words *words, struct text *out)
{
	if (words->count > 1)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	text_plain(out, "Trebuchet " TREBUCHET_VERSION " on " TREBUCHET_BOARD ", ");
	text_plain(out, CONFIG_CPU_HUMAN_NAME " at ");
	text_unsigned(out, CONFIG_CLOCK_FREQUENCY);
	text_plain(out, " Hz\n");
	return TREBUCHET_STATUS_OK;
}

static uint8_t uptime(struct words *words, struct text *out)
{
	if (words->count > 1)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	text_seconds(out, board_uptime_ms(), 0);
	text_plain(out, " s, started by ");
	text_plain(out, restart_cause_name());
	text_plain(out, ", ");
	text_unsigned(out, restart_count());
	text_plain(out, " restarts; interrupts at most ");
	text_unsigned(out, board_interrupt_cycles());
	text_plain(out, " cycles late\n");
	return TREBUCHET_STATUS_OK;
}

static uint8_t log_command(struct words *words, struct text *out)
{
	if (words->count > 2 || (words->count == 2 && !log_set_level(words->word[1])))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (words->count == 1)
		log_show(out);
	text_plain(out, "level: ");
	text_plain(out, log_level_name(log_level()));
	text_char(out, '\n');
	return TREBUCHET_STATUS_OK;
}

/*
 * May a command reach `bytes` from `address`, a multiple of four, on? They must lie within one of the memories
 * or the registers; if the word `map` of the command is there, within the registers, and that word must be the
 * hash of this firmware's register map, so that addresses of another build reach nothing. If not, say why.
 */
static bool reachable(struct words *words, unsigned map, uint32_t address, uint32_t bytes, struct text *out)
{
	static const struct {
		uint32_t base, size;
	} regions[] = {
		{ CSR_BASE, CSR_SIZE },
		{ ROM_BASE, ROM_SIZE },
		{ SRAM_BASE, SRAM_SIZE },
		{ MAIN_RAM_BASE, MAIN_RAM_SIZE },
	};
	bool mapped = words->count > map;

	if (mapped && !words_is(words, map, TREBUCHET_REGISTER_MAP)) {
		text_plain(out, "the register map is another");
		return false;
	}
	for (unsigned i = 0; i < (mapped ? 1 : sizeof(regions) / sizeof(regions[0])); i++) {
		uint32_t offset = address - regions[i].base;

		if (address % 4 == 0 && offset < regions[i].size && regions[i].size - offset >= bytes)
			return true;
	}
	text_plain(out, mapped ? "no register is there" : "no memory or register is there");
	return false;
}

static uint8_t peek(struct words *words, struct text *out)
{
	uint32_t address, count = 1;

	if (!words_number(words, 1, &address) || words->count > 4 ||
	    (words->count > 2 && !words_number(words, 2, &count)) || count > PEEK_MAX_WORDS)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (!reachable(words, 3, address, 4 * count, out))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	flush_cpu_dcache(); /* gateware may have written there */
	for (uint32_t i = 0; i < count; i++) {
		if (i % PEEK_WORDS_A_LINE == 0) {
			text_hex(out, address + 4 * i, 8);
			text_char(out, ':');
		}
		text_char(out, ' ');
		text_hex(out, trebuchet_read32(address + 4 * i), 8);
		if ((i + 1) % PEEK_WORDS_A_LINE == 0 || i + 1 == count)
			text_char(out, '\n');
	}
	return TREBUCHET_STATUS_OK;
}

static uint8_t poke(struct words *words, struct text *out)
{
	uint32_t address, value;

	if (words->count > 4 || !words_number(words, 1, &address) || !words_number(words, 2, &value))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (!reachable(words, 3, address, 4, out))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	trebuchet_write32(address, value);
	return TREBUCHET_STATUS_OK;
}

/* docs/firmware.md lists them, too; tests/test_firmware_commands.py compares. */
const struct command commands[] = {
	{ "help", "[COMMAND]", "list the commands, or explain one", command_help },
	{ "status", "", "state and counters as JSON: the status page", counters_status_command },
	{ "version", "", "what this is", version },
	{ "uptime", "", "seconds since the start, and what started it", uptime },
	{ "counters", "[BLOCK]", "a block's counters, or all that are not 0", counters_command },
#ifdef TREBUCHET_TCP_BASE
	{ "sessions", "[FROM]", "use of the TCP engine, or its sessions", sessions_command },
#endif
	{ "role", "[NAME [on|off|reset]]", "state of the roles, or switch one", role_command },
#ifdef TREBUCHET_WEB_BASE
	{ "web", "[on|off]", "files served by gateware, or switch that", web_command },
#endif
#ifdef WEB_CARD
	{ "card", "[on|off]", "files of the drive that are served, or switch that", web_card_command },
#endif
	{ "ip", "", "addresses and the lease", ip_command },
	{ "lease", "[EPOCH|on|off]", "epoch that messages must have: show or raise it", lease_command },
#ifdef TREBUCHET_DRIVE_BASE
	{ "drive", "[crc LBA [COUNT]]", "state of the drive, or a checksum of sectors", drive_command },
#endif
	{ "config", "[show|set KEY VALUE|unset KEY|save|erase]", "settings in flash", command_config },
	{ "image", "[show|erase|boot]", "the application in flash", command_image },
	{ "log", "[error|warn|info|debug]", "last lines, or set what is printed", log_command },
	{ "peek", "ADDRESS [COUNT [MAP]]", "read words of memory or registers", peek },
	{ "poke", "ADDRESS VALUE [MAP]", "write a word", poke },
	{ "crash", "[now|hang|clear]", "the last crash, or make one", crash_command },
	{ "reset", "", "restart the board", restart_command },
};

const unsigned command_count = sizeof(commands) / sizeof(commands[0]);
