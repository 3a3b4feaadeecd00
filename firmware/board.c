#include "board.h"

#include <stdbool.h>

#include <generated/csr.h>
#include <generated/soc.h>
#include <irq.h>

#include "fast.h"
#include "serial.h"

static volatile bool woken = true;
/* 0: timer 0 is the cycle counter. */
static uint32_t period;
static uint32_t period_cycles, latest;

void board_wake(void)
{
	woken = true;
}

/* The line stays up until the cause is served, so it is masked until the next wait. */
FAST static void shell_isr(void)
{
	shell_irq_ev_enable_write(0);
	board_wake();
}

FAST static void timer_isr(void)
{
	uint32_t late;

	timer0_ev_pending_write(1);
	timer0_update_value_write(1);
	late = period_cycles - timer0_value_read();
	if (late > latest)
		latest = late;
	board_wake();
}

uint32_t board_interrupt_cycles(void)
{
	return latest;
}

/* Timer 0 runs down from its largest value again and again. */
static void timer_start(uint32_t largest)
{
	timer0_en_write(0);
	timer0_reload_write(largest);
	timer0_load_write(largest);
	timer0_en_write(1);
}

void board_start(void)
{
	irq_setmask(0);
	irq_setie(1);
	serial_start();
	irq_attach(SHELL_IRQ_INTERRUPT, shell_isr);
	irq_setmask(irq_getmask() | 1u << SHELL_IRQ_INTERRUPT);
	timer_start(0xffffffffu); /* the cycle counter */
}

void board_stop(void)
{
	irq_setie(0);
	serial_flush();
	irq_setmask(0);
	timer0_ev_enable_write(0);
	shell_irq_ev_enable_write(0);
}

uint32_t board_uptime_ms(void)
{
	return tick_uptime_read();
}

uint32_t board_cycles(void)
{
	timer0_update_value_write(1);
	return ~timer0_value_read();
}

void board_sleep(void)
{
	/* It may return at once (VexRiscv's smaller variants). */
	__asm__ volatile("wfi");
}

void board_wait(void)
{
	shell_irq_ev_enable_write(1);
	/* Interrupts are off between the look and the sleep, or one between them would be slept over. */
	for (;;) {
		irq_setie(0);
		if (woken)
			break;
		board_sleep();
		irq_setie(1);
	}
	woken = false;
	irq_setie(1);
}

void board_pause(void)
{
	if (period != 0)
		board_wait();
}

void board_wake_every(uint32_t milliseconds)
{
	if (period != 0 && period <= milliseconds)
		return;
	period = milliseconds;
	period_cycles = CONFIG_CLOCK_FREQUENCY / 1000 * milliseconds - 1;
	timer_start(period_cycles);
	timer0_ev_pending_write(1);
	timer0_ev_enable_write(1);
	irq_attach(TIMER0_INTERRUPT, timer_isr);
	irq_setmask(irq_getmask() | 1u << TIMER0_INTERRUPT);
}
