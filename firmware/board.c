#include "board.h"

#include <stdbool.h>

#include <generated/csr.h>
#include <generated/soc.h>
#include <irq.h>
#include <libbase/uart.h>

static volatile bool woken = true;

/* The line stays up until the cause is served, so it is masked until the next wait. */
static void shell_isr(void)
{
	shell_irq_ev_enable_write(0);
	woken = true;
}

static void timer_isr(void)
{
	timer0_ev_pending_write(1);
	woken = true;
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
	uart_init();
	irq_attach(SHELL_IRQ_INTERRUPT, shell_isr);
	irq_setmask(irq_getmask() | 1u << SHELL_IRQ_INTERRUPT);
	timer_start(0xffffffffu); /* the cycle counter */
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

void board_wait(void)
{
	shell_irq_ev_enable_write(1);
	/* `wfi` may return at once (VexRiscv's smaller variants); interrupts are what ends the loop. */
	while (!woken)
		__asm__ volatile("wfi");
	woken = false;
}

void board_wake_every(uint32_t milliseconds)
{
	timer_start(CONFIG_CLOCK_FREQUENCY / 1000 * milliseconds - 1);
	timer0_ev_pending_write(1);
	timer0_ev_enable_write(1);
	irq_attach(TIMER0_INTERRUPT, timer_isr);
	irq_setmask(irq_getmask() | 1u << TIMER0_INTERRUPT);
}
