/*
 * restart.c and boot.c on this machine: LiteX's accessors, interrupts and caches are fakes, memory
 * that outlives a restart is the record in restart.c itself. What never returns on a board leaves
 * through `leave` here: a restart, and the jump into the application.
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "board.h"
#include "crash.h"
#include "log.h"
#include "log_status.h"
#include "memory.h"
#include "serial.h"

static jmp_buf leave;
/* Registers as the test sets them and finds them. */
uint32_t host_fired, host_forgotten, host_reset, host_flushed, host_uptime_ms, host_interrupts;
/* The FPGA: which bitstream runs; what was written when it was told to load another one. */
uint32_t host_application, host_address, host_start;
/* The log, a line after the other; what does not fit is lost. */
char host_log[4096];
/* Firmware here is far behind the application's memory: it is golden. */
const char _ftext[1];

#include "restart.c"

uint32_t watchdog_fired_read(void)
{
	return host_fired;
}

void watchdog_forget_write(uint32_t value)
{
	host_forgotten += value;
	host_fired = 0;
}

void watchdog_period_write(uint32_t value)
{
	(void)value;
}

void watchdog_ev_pending_write(uint32_t value)
{
	(void)value;
}

void watchdog_ev_enable_write(uint32_t value)
{
	(void)value;
}

void watchdog_feed_write(uint32_t value)
{
	(void)value;
}

void ctrl_reset_write(uint32_t value)
{
	host_reset += value;
}

/* What a restart waits with: by now it has happened. */
uint32_t ctrl_scratch_read(void)
{
	longjmp(leave, 1);
}

void irq_setie(unsigned on)
{
	host_interrupts = on;
}

unsigned irq_getmask(void)
{
	return 0;
}

void irq_setmask(unsigned mask)
{
	(void)mask;
}

int irq_attach(unsigned number, void (*handler)(void))
{
	(void)number, (void)handler;
	return 0;
}

void crash_watchdog_isr(void)
{
}

void serial_flush(void)
{
	host_flushed++;
}

uint32_t trebuchet_multiboot_application_read(void)
{
	return host_application;
}

void trebuchet_multiboot_address_write(uint32_t value)
{
	host_address = value;
}

void trebuchet_multiboot_start_write(uint32_t value)
{
	host_start = value;
}

/* The design ends. */
void multiboot_port_wait(void)
{
	longjmp(leave, 3);
}

uint32_t board_uptime_ms(void)
{
	return host_uptime_ms;
}

void board_stop(void)
{
}

void memory_leave_chance(const uint32_t key[4])
{
	(void)key;
}

void log_write(enum log_level level, const char *part, const char *text)
{
	size_t used = strlen(host_log);

	snprintf(host_log + used, sizeof(host_log) - used, "%d %s: %s\n", level, part, text);
}

void log_status(const char *part, const char *text, uint8_t status)
{
	size_t used = strlen(host_log);

	snprintf(host_log + used, sizeof(host_log) - used, "%s: %s: %d\n", part, text, status);
}

void flush_cpu_dcache(void)
{
}

/* The last thing before the jump. */
void flush_cpu_icache(void)
{
	longjmp(leave, 2);
}

/* Memory holds anything, as after power-up. */
void host_power_up(uint8_t fill)
{
	memset(&record, fill, sizeof(record));
}

/* The CPU begins: what is not kept is as the linker made it. */
void host_begin(void)
{
	cause = RESTART_NONE;
	requested = false;
	requested_at = 0;
	host_uptime_ms = 0;
	restart_start();
}

/* One bit of what is kept is another. */
void host_flip(unsigned bit)
{
	((uint8_t *)&record)[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

size_t host_record_bits(void)
{
	return 8 * sizeof(record);
}

/* 1 if the board was restarted, or 0. */
int host_serve(void)
{
	int left = setjmp(leave);

	if (left == 0)
		restart_serve();
	return left;
}

/* 1 if the board was restarted, 3 if another bitstream was. */
int host_restart(enum restart_cause planned)
{
	int left = setjmp(leave);

	if (left == 0)
		restart_now(planned);
	return left;
}

void boot_application(const uint32_t key[4]);

/* 2 if the application was started, 3 if another bitstream was, or 0. */
int host_boot(void)
{
	static const uint32_t key[4];
	int left = setjmp(leave);

	if (left == 0) {
		multiboot_check();
		multiboot_start();
		boot_application(key);
	}
	return left;
}

void host_confirm(void)
{
	multiboot_confirm();
}
