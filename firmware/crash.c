#include "crash.h"

#include <stdbool.h>
#include <stddef.h>

#include <generated/csr.h>
#include <generated/trebuchet_status_codes.h>
#include <irq.h>

#include "board.h"
#include "buffer.h"
#include "dump.h"
#include "fast.h"
#include "noinit.h"
#include "restart.h"
#include "serial.h"

#define CANARY 0x57ac4e4du

/* The stack grows down towards the end of what is in on-chip memory. */
extern uint32_t _canary[];

/* Addresses in the assembler below; crash_here is an illegal instruction. */
void crash_entry(void);
void crash_here(void);
_Noreturn void crash_report(void);
void crash_interrupt(void);

static struct dump dump NOINIT;
/* What crash_here means; 0: nothing but itself. */
static uint32_t forced_cause;
static uint32_t hung_at;
static bool reporting;

_Static_assert(offsetof(struct dump, x) == 16, "the trap entry relies on it");

/*
 * tp points to the dump all the time (nothing else has a use for it), so that a trap needs neither a
 * stack nor a free register. Interrupts go on to LiteX's crt0, which is in external memory on boards
 * that have their firmware there: these have what it does here.
 */
__asm__(
	FAST_SECTION
	".balign 4\n"
	".globl crash_entry\n"
	"crash_entry:\n"
	"	sw x31, 0(tp)\n"
	"	csrr x31, mcause\n"
	"	bltz x31, 1f\n"
	"	sw x31, 4(tp)\n"
	"	lw x31, 0(tp)\n"
	"	.irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
	"	sw x\\n, (12 + 4 * \\n)(tp)\n"
	"	.endr\n"
	"	csrr x31, mepc\n"
	"	sw x31, 8(tp)\n"
	"	csrr x31, 0x343\n" /* mtval */
	"	sw x31, 12(tp)\n"
	"	la sp, _fstack\n"
	"	tail crash_report\n"
	"1:	lw x31, 0(tp)\n"
#ifdef TREBUCHET_BOOT_ROM
	"	addi sp, sp, -64\n"
	"	sw ra, 0(sp)\n"
	"	.set at, 4\n"
	"	.irp r, t0,t1,t2,a0,a1,a2,a3,a4,a5,a6,a7,t3,t4,t5,t6\n"
	"	sw \\r, at(sp)\n"
	"	.set at, at + 4\n"
	"	.endr\n"
	"	jal crash_interrupt\n"
	"	lw ra, 0(sp)\n"
	"	.set at, 4\n"
	"	.irp r, t0,t1,t2,a0,a1,a2,a3,a4,a5,a6,a7,t3,t4,t5,t6\n"
	"	lw \\r, at(sp)\n"
	"	.set at, at + 4\n"
	"	.endr\n"
	"	addi sp, sp, 64\n"
	"	mret\n"
	".text\n"
#else
	"	j trap_entry\n"
#endif
	".globl crash_here\n"
	"crash_here:\n"
	"	.word 0\n");

#ifdef TREBUCHET_BOOT_ROM

/* LiteX's, by irq_attach. */
extern struct {
	isr_t isr;
} irq_table[];

/* What LiteX's isr() does, from on-chip memory. */
FAST __attribute__((used)) void crash_interrupt(void)
{
	uint32_t pending = irq_pending() & irq_getmask();

	for (unsigned irq = 0; pending != 0; irq++, pending >>= 1)
		if (pending & 1)
			irq_table[irq].isr();
}

#endif

void crash_start(void)
{
	__asm__ volatile("mv tp, %0" : : "r"(&dump));
	csrw(mtvec, crash_entry);
	_canary[0] = CANARY;
}

void crash_check_stack(void)
{
	if (_canary[0] == CANARY)
		return;
	forced_cause = DUMP_STACK;
	crash_here();
}

/* What was interrupted goes on with an illegal instruction, all of its registers as they are. */
void crash_watchdog_isr(void)
{
	watchdog_ev_pending_write(1);
	hung_at = csrr(mepc);
	forced_cause = DUMP_WATCHDOG;
	csrw(mepc, crash_here);
}

/* From crash_entry, with interrupts off and an empty stack. */
__attribute__((used)) void crash_report(void)
{
	struct text text = buffer_text();

	watchdog_feed();
	if (reporting)
		restart_now(RESTART_CRASH);
	reporting = true;
	if (forced_cause != 0 && dump.pc == (uint32_t)crash_here) {
		dump.cause = forced_cause;
		dump.value = 0;
		dump.pc = forced_cause == DUMP_WATCHDOG ? hung_at : dump.x[0];
	}
	dump.uptime_ms = board_uptime_ms();
	dump_seal(&dump);
	text_char(&text, '\n');
	dump_write(&text, &dump);
	serial_write(text.start, text.length);
	restart_now(dump.cause == DUMP_WATCHDOG ? RESTART_WATCHDOG : RESTART_CRASH);
}

uint8_t crash_command(struct words *words, struct text *out)
{
	if (words->count > 2)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (words->count == 1) {
		if (dump_valid(&dump))
			dump_write(out, &dump);
		else
			text_plain(out, "no crash is kept\n");
	} else if (words_is(words, 1, "now")) {
		crash_here();
	} else if (words_is(words, 1, "hang")) {
		for (;;)
			;
	} else if (words_is(words, 1, "clear")) {
		dump_clear(&dump);
	} else {
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	}
	return TREBUCHET_STATUS_OK;
}
