#include "lease.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "log.h"

#define HALF 32768u /* of all epochs: an epoch as far ahead as this may also be behind */

bool lease_is_newer(uint32_t epoch, uint32_t other)
{
	uint32_t ahead = (epoch - other) & LEASE_LARGEST;

	if (epoch == 0 || other == 0)
		return epoch != 0;
	return ahead != 0 && ahead < HALF;
}

#ifdef TREBUCHET_SMP_BASE

uint32_t lease_epoch(void)
{
	return trebuchet_smp_lease_read();
}

bool lease_refuses(uint32_t epoch)
{
	return trebuchet_smp_guard_read() != 0 && (epoch == 0 || epoch != lease_epoch());
}

void lease_guard(bool on)
{
	trebuchet_smp_guard_write(on);
}

static void describe(struct text *out)
{
	text_plain(out, "lease ");
	text_unsigned(out, lease_epoch());
	text_plain(out, trebuchet_smp_guard_read() ? ", guard on, " : ", guard off, ");
	text_unsigned(out, trebuchet_smp_stale_read());
	text_plain(out, " stale messages\n");
}

static uint8_t raise(uint32_t epoch, struct text *out)
{
	if (!lease_is_newer(epoch, lease_epoch())) {
		text_unsigned(out, epoch);
		text_plain(out, " is not newer than the board's epoch ");
		text_unsigned(out, lease_epoch());
		return TREBUCHET_STATUS_STALE;
	}
	trebuchet_smp_lease_write(epoch);
	lease_guard(true);
	log_info("smp", "a new lease");
	return TREBUCHET_STATUS_OK;
}

uint8_t lease_command(struct words *words, struct text *out)
{
	uint8_t status = TREBUCHET_STATUS_OK;
	uint32_t epoch;

	if (words->count > 2)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (words_is(words, 1, "on")) {
		lease_guard(true);
	} else if (words_is(words, 1, "off")) {
		lease_guard(false);
	} else if (words->count == 2) {
		if (!words_number(words, 1, &epoch) || epoch == 0 || epoch > LEASE_LARGEST)
			return TREBUCHET_STATUS_BAD_ARGUMENT;
		status = raise(epoch, out);
	}
	if (status == TREBUCHET_STATUS_OK)
		describe(out);
	return status;
}

#else /* no TCP port with SMP */

uint32_t lease_epoch(void)
{
	return 0;
}

bool lease_refuses(uint32_t epoch)
{
	(void)epoch;
	return false;
}

void lease_guard(bool on)
{
	(void)on;
	log_error("smp", "no guard: NOT_BUILT_IN");
}

uint8_t lease_command(struct words *words, struct text *out)
{
	(void)words;
	(void)out;
	return TREBUCHET_STATUS_NOT_BUILT_IN;
}

#endif
