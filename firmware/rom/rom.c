/*
 * The boot ROM: trains the external memory, puts a verified image there and starts it. The images
 * are those in the slots of the flash, the application's and then the golden one; if neither is good,
 * one that is sent over the UART.
 *
 * Interrupts are off and everything is polled. An exception waits for the watchdog.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>
#include <libbase/memtest.h>
#include <liblitedram/sdram.h>
#include <system.h>

#include "../board.h"
#include "../boot.h"
#include "../crc32.h"
#include "../flash.h"
#include "../log.h"
#include "../restart.h"
#include "choose.h"

/* What training and testing the memory may take, as in main.c. */
#define START_MS 60000u
/* A sender that is silent for so long has finished, or stopped. */
#define SILENCE_MS 1000u

/* Called below only. */
int main(void) __attribute__((used));

__asm__(
	".section .text.start\n"
	".globl _start\n"
	"_start:\n"
	"	la sp, _fstack\n"
	"	la a0, 9f\n"
	"	csrw mtvec, a0\n"
	"	la a0, _fdata\n"
	"	la a1, _edata\n"
	"	la a2, _fdata_rom\n"
	"1:	beq a0, a1, 2f\n"
	"	lw a3, 0(a2)\n"
	"	sw a3, 0(a0)\n"
	"	addi a0, a0, 4\n"
	"	addi a2, a2, 4\n"
	"	j 1b\n"
	"2:	la a1, _ebss\n"
	"3:	beq a0, a1, 4f\n"
	"	sw zero, 0(a0)\n"
	"	addi a0, a0, 4\n"
	"	j 3b\n"
	"4:	call main\n"
	"	.balign 4\n"
	"9:	j 9b\n"
	".text\n");

/* The firmware that is started logs what there is to log (boot.h). */
void log_write(enum log_level level, const char *part, const char *text)
{
	(void)level, (void)part, (void)text;
}

static void put(const char *text)
{
	for (; *text != '\0'; text++) {
		while (uart_txfull_read())
			;
		uart_rxtx_write((uint8_t)*text);
	}
}

static void put_status(const char *what, uint8_t status)
{
	static const struct {
		uint8_t status;
		char name[15];
	} names[] = {
#define NAME(name) { TREBUCHET_STATUS_##name, #name }
		NAME(TRUNCATED), NAME(BAD_DATA), NAME(BAD_CHECKSUM), NAME(BAD_LENGTH), NAME(TOO_LARGE),
		NAME(WRONG_BOARD), NAME(OK),
	};
	const char *name = "none"; /* a slot that is empty */

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].status == status)
			name = names[i].name;
	put("boot: ");
	put(what);
	put(": ");
	put(name);
	put("\r\n");
}

/* Training leaves what was measured; this says whether it works. Samples of chance stay (memory.h). */
int memtest(unsigned int *at, unsigned long size)
{
	volatile uint32_t *words = (volatile uint32_t *)at;
	uint32_t value, bad = 0;

	(void)size;
	for (unsigned round = 0; round < 2; round++) {
		value = 1;
		for (unsigned i = 0; i < 0x4000; i++) {
			if (round == 0)
				words[i] = value;
			else
				bad |= words[i] ^ value;
			value = value << 1 ^ (value >> 31 ? 0x04c11db7u : 0);
		}
		for (unsigned i = 1 << 14; i < MAIN_RAM_SIZE / 4; i <<= 1) {
			if (round == 0)
				words[i] = i;
			else
				bad |= words[i] ^ i;
		}
	}
	return bad == 0;
}

void memspeed(unsigned int *at, unsigned long size, bool read_only, bool random)
{
	(void)at, (void)size, (void)read_only, (void)random;
}

/* The next byte from the UART, or -1 after silence. */
static int get(void)
{
	uint32_t since = board_uptime_ms();
	uint8_t byte;

	while (uart_rxempty_read()) {
		if (board_uptime_ms() - since >= SILENCE_MS)
			return -1;
	}
	byte = (uint8_t)uart_rxtx_read();
	uart_ev_pending_write(2);
	watchdog_feed();
	return byte;
}

static uint32_t get_bytes(uint8_t *to, uint32_t length)
{
	uint32_t at;

	for (at = 0; at < length; at++) {
		int byte = get();

		if (byte < 0)
			break;
		to[at] = (uint8_t)byte;
	}
	return at;
}

/* Take an image whose first byte has come: OK if nothing follows it. */
static uint8_t receive(int first)
{
	struct image image;
	uint8_t *bytes = (uint8_t *)&image;
	uint8_t status;

	bytes[0] = (uint8_t)first;
	if (get_bytes(bytes + 1, sizeof(image) - 1) != sizeof(image) - 1)
		return TREBUCHET_STATUS_TRUNCATED;
	status = image_header(&image, TREBUCHET_BOARD);
	if (status == TREBUCHET_STATUS_OK)
		status = boot_check(&image);
	if (status == TREBUCHET_STATUS_OK) {
		uint8_t *to = (uint8_t *)MAIN_RAM_BASE;

		if (get_bytes(to, image.length) != image.length)
			return TREBUCHET_STATUS_TRUNCATED;
		if (crc32_of(0, to, image.length) != image.checksum)
			status = TREBUCHET_STATUS_BAD_CHECKSUM;
	}
	if (status == TREBUCHET_STATUS_OK && get() >= 0)
		status = TREBUCHET_STATUS_BAD_LENGTH;
	return status;
}

int main(void)
{
	struct handover found;
	uint8_t status;

	restart_start();
	if (TREBUCHET_WATCHDOG_MS > 0)
		watchdog_period_write(START_MS);
	while (!sdram_init())
		put("boot: memory: does not work\r\n");
	flash_start();
	found = choose();
	put_status("application", found.application);
	put_status("golden", found.golden);
	for (;;) {
		int byte;

		put("boot: send an image\r\n");
		do {
			watchdog_feed();
			byte = get();
		} while (byte < 0);
		status = receive(byte);
		put_status("received", status);
		if (status == TREBUCHET_STATUS_OK)
			choose_start(found);
		while (get() >= 0)
			;
	}
}
