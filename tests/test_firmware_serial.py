"""The firmware's UART queue on this machine, in front of a model of LiteX's UART; the console."""

import ctypes

import pytest
from firmware_host import shared_library

#: What serial.c takes of LiteX's headers.
HEADER = """
#include <stdint.h>
#define UART_INTERRUPT 0
#define CONFIG_CLOCK_FREQUENCY 100000
unsigned uart_txfull_read(void);
unsigned uart_txempty_read(void);
unsigned uart_rxempty_read(void);
unsigned uart_rxtx_read(void);
void uart_rxtx_write(uint8_t byte);
void uart_ev_pending_write(unsigned value);
void uart_ev_enable_write(unsigned value);
void irq_attach(unsigned number, void (*routine)(void));
unsigned irq_getmask(void);
void irq_setmask(unsigned value);
unsigned irq_getie(void);
void irq_setie(unsigned value);
"""

#: A FIFO of 16 bytes, and an event when it has room *again*. A byte leaves it after it was seen
#: full, and while the CPU sleeps: a thousand times without an event is for ever.
UART = """
#include <generated/csr.h>
#include "board.h"
char test_out[1 << 12];
unsigned test_length, test_hangs;
static unsigned level, pending, allowed = 1, mask = 1, vain;
static void (*isr)(void);
static void interrupt(void)
{
	if (pending && allowed && mask & 1) {
		allowed = 0;
		isr();
		allowed = 1;
	}
}
void test_drain(void)
{
	level = 0;
}
void board_wake(void) {}
void board_sleep(void)
{
	if (level == 16)
		pending = 1;
	if (level > 0)
		level--;
	vain = pending ? 0 : vain + 1;
	if (vain < 1000)
		return;
	test_hangs++;
	pending = 1;
}
unsigned uart_txfull_read(void)
{
	if (level < 16)
		return 0;
	level--;
	pending = 1;
	return 1;
}
unsigned uart_txempty_read(void) { return 1; }
unsigned uart_rxempty_read(void) { return 1; }
unsigned uart_rxtx_read(void) { return 0; }
void uart_rxtx_write(uint8_t byte) { test_out[test_length++] = (char)byte; level++; }
void uart_ev_pending_write(unsigned value) { pending &= ~value; }
void uart_ev_enable_write(unsigned value) { (void)value; }
void irq_attach(unsigned number, void (*routine)(void)) { (void)number; isr = routine; }
unsigned irq_getmask(void) { return mask; }
void irq_setmask(unsigned value) { mask = value; interrupt(); }
unsigned irq_getie(void) { return allowed; }
void irq_setie(unsigned value) { allowed = value; interrupt(); }
"""

#: A terminal that echoes whatever it gets. It tires of that after a thousand lines, so that a
#: console that waits for an end finds one.
TERMINAL = """
#include <string.h>
#include "board.h"
#include "command.h"
#include "serial.h"
unsigned test_lines, test_wakes;
static char echoes[1 << 16];
static uint16_t end, next;
uint32_t board_uptime_ms(void) { return 0; }
void board_wake(void) { test_wakes++; }
bool serial_read(char *byte)
{
	if (next == end || test_lines == 1000)
		return false;
	*byte = echoes[next++];
	test_lines += *byte == '\\n';
	return true;
}
void serial_write(const char *data, size_t length)
{
	for (; length-- > 0; data++)
		if (*data != '\\r')
			echoes[end++] = *data;
}
void serial_string(const char *string) { serial_write(string, strlen(string)); }
const struct command commands[] = { { "help", "", "", command_help } };
const unsigned command_count = 1;
"""


@pytest.fixture
def uart(tmp_path):
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "csr.h").write_text(HEADER)
    for other in ("generated/soc.h", "irq.h"):
        (tmp_path / other).write_text("#include <generated/csr.h>\n")
    return shared_library(tmp_path, ["serial"], UART)


def _write(uart, text):
    """What comes out of the UART, which was idle."""
    uart.test_drain()
    uart.serial_start()
    uart.serial_write(text, ctypes.c_size_t(len(text)))
    uart.serial_flush()
    length = ctypes.c_uint.in_dll(uart, "test_length")
    out = (ctypes.c_char * 4096).in_dll(uart, "test_out")[: length.value]
    length.value = 0
    return out


def test_a_line_may_end_wherever_the_queue_is_full(uart):
    """CR and LF are two bytes: the queue may be full between them."""
    for length in range(400):
        text = b"x" * length + b"\n" + b"y" * 200 + b"\n"
        assert _write(uart, text) == text.replace(b"\n", b"\r\n")
    assert ctypes.c_uint.in_dll(uart, "test_hangs").value == 0


def test_line_breaks(uart):
    assert _write(uart, b"a\nb\r\n\n") == b"a\r\nb\r\n\r\n"


def test_a_terminal_that_echoes_does_not_keep_the_console(tmp_path):
    """A prompt is a command that fails, its error another: in between, others have their turn."""
    names = ["console", "line", "command", "text", "log", "buffer"]
    console = shared_library(tmp_path, names, TERMINAL)
    lines, wakes = (ctypes.c_uint.in_dll(console, f"test_{name}") for name in ("lines", "wakes"))
    console.console_start()
    console.serial_string(b"help\n")
    for turn in range(1, 100):
        console.console_serve()
        assert lines.value == turn, "a line a turn"
        assert wakes.value == turn, "the next one is not slept over"
