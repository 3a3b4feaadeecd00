#include "role.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_roles.h>
#include <generated/trebuchet_status_codes.h>

#include "log.h"

/* Microseconds of a benchmark's delay at most. */
#define MOST_US 4000000u
#define STATE_RESETTING 2u
#define STATE_BARRED 4u

/* Resets by the watchdog that are in the log already. */
static uint16_t told[sizeof(roles) / sizeof(roles[0])];

const struct role *role_find(const char *name)
{
	for (const struct role *role = roles; role->base != 0; role++)
		if (strcmp(role->name, name) == 0)
			return role;
	return NULL;
}

void role_enable(const struct role *role, bool on)
{
	trebuchet_write32(role->base + ROLE_ENABLE, on);
	log_info(role->name, on ? "on" : "off");
}

void role_reset(const struct role *role)
{
	trebuchet_write32(role->base + ROLE_RESET, 1);
}

void role_enable_all(bool on)
{
	for (const struct role *role = roles; role->base != 0; role++)
		role_enable(role, on);
}

/* Cycles of a time; 4 s are the most that 32 bits hold at any clock, all a role may take before. */
static uint32_t cycles_of(uint32_t microseconds)
{
	uint32_t cycles = 0;

	if (microseconds > MOST_US)
		microseconds = MOST_US;
	for (uint32_t clock = CONFIG_CLOCK_FREQUENCY / 1000000; clock > 0; clock >>= 1) {
		if (clock & 1)
			cycles += microseconds;
		microseconds <<= 1;
	}
	return cycles;
}

uint8_t role_benchmark(uint32_t delay, uint32_t output, uint32_t *slots)
{
	*slots = 0;
	for (unsigned i = 0; roles[i].base != 0; i++) {
		if (roles[i].delay == 0)
			continue;
		trebuchet_write32(roles[i].delay, cycles_of(delay));
		trebuchet_write32(roles[i].output, output);
		*slots |= (uint32_t)1 << i;
	}
	return *slots != 0 ? TREBUCHET_STATUS_OK : TREBUCHET_STATUS_NOT_BUILT_IN;
}

void role_serve(void)
{
	for (unsigned i = 0; roles[i].base != 0; i++) {
		uint16_t hangs = (uint16_t)trebuchet_read32(roles[i].base + ROLE_HANGS);

		if (hangs == told[i])
			continue;
		told[i] = hangs;
		if (trebuchet_read32(roles[i].base + ROLE_STATE) & STATE_BARRED)
			log_error(roles[i].name, "hung three times; barred");
		else
			log_warn(roles[i].name, "hung; reset");
	}
}

static void describe(const struct role *role, struct text *out)
{
	uint32_t state = trebuchet_read32(role->base + ROLE_STATE);

	text_plain(out, role->name);
	text_plain(out, " at 0x");
	text_hex(out, role->base, 8);
	if (state & STATE_RESETTING)
		text_plain(out, ": resetting, ");
	else if (state & STATE_BARRED)
		text_plain(out, ": barred, ");
	else
		text_plain(out, trebuchet_read32(role->base + ROLE_ENABLE) & 1 ? ": on, " : ": off, ");
	text_unsigned(out, trebuchet_read32(role->base + ROLE_JOBS));
	text_plain(out, " jobs, ");
	text_unsigned(out, trebuchet_read32(role->base + ROLE_ERRORS));
	text_plain(out, " errors\n");
}

uint8_t role_command(struct words *words, struct text *out)
{
	const struct role *role = words->count > 1 ? role_find(words->word[1]) : NULL;

	if (words->count == 1) {
		for (role = roles; role->base != 0; role++)
			describe(role, out);
		return roles[0].base != 0 ? TREBUCHET_STATUS_OK : TREBUCHET_STATUS_NO_ROLE;
	}
	if (role == NULL)
		return TREBUCHET_STATUS_NO_ROLE;
	if (words->count == 3 && (words_is(words, 2, "on") || words_is(words, 2, "off"))) {
		role_enable(role, words_is(words, 2, "on"));
	} else if (words->count == 3 && words_is(words, 2, "reset")) {
		role_reset(role);
		log_info(role->name, "reset");
	} else if (words->count != 2) {
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	}
	describe(role, out);
	return TREBUCHET_STATUS_OK;
}
