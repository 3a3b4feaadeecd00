/*
 * What the management service stands on, for tests on this machine: registers are read and written
 * by functions of the test, commands and the log are the simplest there can be. Of boot.c only the
 * slots and the judgement are used: nothing is started here.
 */
#include <stdio.h>
#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_roles.h>
#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "command.h"
#include "log.h"
#include "log_status.h"
#include "memory.h"
#include "restart.h"
#include "role.h"

uint32_t (*bus_read)(uint32_t address);
void (*bus_write)(uint32_t address, uint32_t value);
uint32_t host_uptime_ms;
/* The log, a line after the other; what does not fit is lost. */
char host_log[1 << 16];

uint32_t board_uptime_ms(void)
{
	return host_uptime_ms;
}

void board_wake(void)
{
}

void board_wake_every(uint32_t milliseconds)
{
	(void)milliseconds;
}

const char *restart_cause_name(void)
{
	return "power";
}

uint32_t restart_count(void)
{
	return 0;
}

/* Commands of the other parts are not run here. */
bool words_is(const struct words *words, unsigned index, const char *word)
{
	(void)words, (void)index, (void)word;
	return false;
}

bool words_number(const struct words *words, unsigned index, uint32_t *value)
{
	(void)words, (void)index, (void)value;
	return false;
}

const char *command_status_name(uint8_t status)
{
	static const char *const names[] = TREBUCHET_STATUS_NAMES;

	return names[status];
}

/* "fill" fills all the room there is; other lines but "fly" come back. */
uint8_t command_run(const char *line, size_t length, struct text *out)
{
	if (length == 3 && memcmp(line, "fly", 3) == 0) {
		text_plain(out, "error: UNKNOWN_COMMAND\n");
		return TREBUCHET_STATUS_UNKNOWN_COMMAND;
	}
	while (length == 4 && memcmp(line, "fill", 4) == 0 && out->length < out->room)
		text_char(out, (char)('a' + out->length % 23));
	if (out->length == 0)
		for (size_t i = 0; i < length; i++)
			text_char(out, line[i]);
	return TREBUCHET_STATUS_OK;
}

void log_write(enum log_level level, const char *part, const char *text)
{
	size_t used = strlen(host_log);

	snprintf(host_log + used, sizeof(host_log) - used, "%d %s: %s\n", level, part, text);
}

void role_enable(const struct role *role, bool on)
{
	trebuchet_write32(role->base + ROLE_ENABLE, on);
}

uint8_t role_benchmark(uint32_t delay, uint32_t output, uint32_t *slots)
{
	(void)delay, (void)output, (void)slots;
	return TREBUCHET_STATUS_NOT_BUILT_IN;
}

void restart_request(void)
{
}

/* A way out of boot.c that is not taken. */

const char _ftext[1];

void board_stop(void)
{
}

void memory_leave_chance(const uint32_t key[4])
{
	(void)key;
}

const char *memory_test(void)
{
	return "none";
}

void restart_hand_over(void)
{
}

uint32_t restart_failures(void)
{
	return 0;
}

void log_status(const char *part, const char *text, uint8_t status)
{
	(void)part, (void)text, (void)status;
}
