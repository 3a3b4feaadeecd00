#include "restart.h"

#include <stdbool.h>

#include <generated/csr.h>
#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>
#include <irq.h>

#include "board.h"
#include "crash.h"
#include "multiboot.h"
#include "noinit.h"
#include "serial.h"

#define MAGIC 0x72657374u
/* Answers through the network are on their way so long. */
#define GRACE_MS 100u
/* Who has been up so long has started well. */
#define SETTLED_MS 60000u
/* With `planned`: golden firmware started the application; that is no restart. */
#define HANDED_OVER 0x100u

/* Valid when `check` is the complement of the sum of the others. */
static struct {
	uint32_t magic;
	uint32_t planned; /* the cause of a restart of our own */
	uint32_t count;
	uint32_t failures;
	uint32_t check;
} record NOINIT_RECORD;

static enum restart_cause cause;
static bool requested;
static uint32_t requested_at;

static uint32_t check_of_record(void)
{
	return ~(record.magic + record.planned + record.count + record.failures);
}

static void keep(uint32_t planned)
{
	record.magic = MAGIC;
	record.planned = planned;
	record.check = check_of_record();
}

void restart_start(void)
{
	bool fired = watchdog_fired_read() != 0;

	watchdog_forget_write(1);
	if (record.magic != MAGIC || record.check != check_of_record()) {
		record.count = 0;
		record.failures = 0;
		cause = fired ? RESTART_WATCHDOG : RESTART_POWER;
	} else if (record.planned & HANDED_OVER && !fired) {
		cause = (enum restart_cause)(record.planned & ~HANDED_OVER);
		keep(RESTART_NONE);
		return;
	} else {
		uint32_t planned = record.planned & HANDED_OVER ? RESTART_NONE : record.planned;

		record.count++;
		cause = planned != RESTART_NONE ? (enum restart_cause)planned :
			fired ? RESTART_WATCHDOG : RESTART_BUTTON;
	}
	if (cause == RESTART_WATCHDOG || cause == RESTART_CRASH)
		record.failures++;
	else
		record.failures = 0;
	keep(RESTART_NONE);
}

void restart_hand_over(void)
{
	keep(HANDED_OVER | cause);
}

enum restart_cause restart_cause(void)
{
	return cause;
}

const char *restart_cause_name(void)
{
	static const char *const names[] = { "", "power", "reset", "watchdog", "crash", "command" };

	return names[cause];
}

uint32_t restart_count(void)
{
	return record.count;
}

uint32_t restart_failures(void)
{
	return record.failures;
}

void restart_request(void)
{
	requested = true;
	requested_at = board_uptime_ms();
}

void restart_serve(void)
{
	if (requested && board_uptime_ms() - requested_at >= GRACE_MS)
		restart_now(RESTART_COMMAND);
	if (record.failures > 0 && board_uptime_ms() >= SETTLED_MS) {
		record.failures = 0;
		keep(RESTART_NONE);
	}
}

void restart_now(enum restart_cause planned)
{
	irq_setie(0);
	serial_flush();
	keep(planned);
	if (planned == RESTART_COMMAND)
		multiboot_leave(); /* so that it is loaded anew, or the image that came meanwhile */
	ctrl_reset_write(1);
	/*
	 * An empty loop fetches instructions without a pause, and so keeps the bus from the write above,
	 * which waits in a buffer. A read waits for it.
	 */
	for (;;)
		ctrl_scratch_read();
}

void watchdog_start(uint32_t milliseconds)
{
	watchdog_period_write(milliseconds < 0xffff ? milliseconds : 0xffff);
	watchdog_ev_pending_write(1);
	watchdog_ev_enable_write(1);
	irq_attach(WATCHDOG_INTERRUPT, crash_watchdog_isr);
	irq_setmask(irq_getmask() | 1u << WATCHDOG_INTERRUPT);
}

void watchdog_feed(void)
{
	watchdog_feed_write(1);
}

uint8_t restart_command(struct words *words, struct text *out)
{
	if (words->count > 1)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	restart_request();
	text_plain(out, "restarting\n");
	return TREBUCHET_STATUS_OK;
}
