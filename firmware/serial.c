#include "serial.h"

#include <string.h>

#include <generated/csr.h>
#include <generated/soc.h>
#include <irq.h>

#include "board.h"
#include "fast.h"

#define EVENT_TX 1u
#define EVENT_RX 2u
#define RING_BYTES 128u

/* One side puts, the other takes; one place stays free. */
struct ring {
	volatile unsigned put;
	volatile unsigned taken;
	char bytes[RING_BYTES];
};

static struct ring sent, received;

static unsigned next(unsigned position)
{
	return (position + 1) & (RING_BYTES - 1);
}

static bool full(const struct ring *ring)
{
	return next(ring->put) == ring->taken;
}

static bool empty(const struct ring *ring)
{
	return ring->put == ring->taken;
}

/*
 * Clearing the event takes the byte out of the UART. What finds no room here stays there, and the
 * event is not listened to until there is.
 */
static void receive(void)
{
	while (!uart_rxempty_read() && !full(&received)) {
		received.bytes[received.put] = (char)uart_rxtx_read();
		received.put = next(received.put);
		uart_ev_pending_write(EVENT_RX);
	}
	uart_ev_enable_write(full(&received) ? EVENT_TX : EVENT_TX | EVENT_RX);
}

static void send(void)
{
	while (!empty(&sent) && !uart_txfull_read()) {
		uart_rxtx_write((uint8_t)sent.bytes[sent.taken]);
		sent.taken = next(sent.taken);
	}
}

FAST static void serial_isr(void)
{
	uart_ev_pending_write(EVENT_TX);
	send();
	receive();
	board_wake();
}

void serial_start(void)
{
	uart_ev_pending_write(EVENT_TX);
	uart_ev_enable_write(EVENT_TX | EVENT_RX);
	irq_attach(UART_INTERRUPT, serial_isr);
	irq_setmask(irq_getmask() | 1u << UART_INTERRUPT);
}

/* The event comes when the UART has room again, so it must have been filled. */
static void kick(void)
{
	unsigned mask = irq_getmask();

	irq_setmask(mask & ~(1u << UART_INTERRUPT));
	send();
	irq_setmask(mask);
}

/* What follows a full queue waits for the event, so that must be certain to come. */
static void put(char byte)
{
	while (full(&sent)) {
		unsigned enabled = irq_getie();

		irq_setie(0);
		if (!enabled)
			send();
		else if (full(&sent))
			board_sleep();
		irq_setie(enabled);
	}
	sent.bytes[sent.put] = byte;
	sent.put = next(sent.put);
	if (full(&sent))
		kick();
}

void serial_write(const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (data[i] == '\n' && (i == 0 || data[i - 1] != '\r'))
			put('\r');
		put(data[i]);
	}
	kick();
}

void serial_string(const char *string)
{
	serial_write(string, strlen(string));
}

bool serial_read(char *byte)
{
	unsigned mask = irq_getmask();
	bool any = !empty(&received);

	if (!any)
		return false;
	*byte = received.bytes[received.taken];
	irq_setmask(mask & ~(1u << UART_INTERRUPT));
	received.taken = next(received.taken);
	receive();
	irq_setmask(mask);
	return true;
}

void serial_flush(void)
{
	irq_setmask(irq_getmask() & ~(1u << UART_INTERRUPT));
	while (!empty(&sent))
		send();
	while (!uart_txempty_read())
		;
	/* The last byte is still on the line: a tenth of a millisecond. */
	for (volatile unsigned i = 0; i < CONFIG_CLOCK_FREQUENCY / 100000; i++)
		;
}
