#include "flash.h"

#include <stdbool.h>

#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>

#include "flash_port.h"

/* More than three bytes can address: the commands have other codes, and a byte more. */
#if defined(TREBUCHET_FLASH_SIZE) && TREBUCHET_FLASH_SIZE > 0x1000000
#define WIDE
#endif

enum {
#ifdef WIDE
	PROGRAM = 0x12,
	READ = 0x13,
	ERASE_SECTOR = 0x21,
#else
	PROGRAM = 0x02,
	READ = 0x03,
	ERASE_SECTOR = 0x20,
#endif
	READ_STATUS = 0x05,
	WRITE_ENABLE = 0x06,
	WAKE = 0xab, /* from deep power-down, in which a bootloader may leave it */
};

#define STATUS_BUSY 1u
#define PAGE 256u
/* The slowest flashes take 400 ms for a sector. */
#define TIMEOUT_MS 2000u

static void command(uint8_t code, uint32_t address)
{
	flash_select(true);
	flash_byte(code);
#ifdef WIDE
	flash_byte((uint8_t)(address >> 24));
#endif
	flash_byte((uint8_t)(address >> 16));
	flash_byte((uint8_t)(address >> 8));
	flash_byte((uint8_t)address);
}

static void short_command(uint8_t code)
{
	flash_select(true);
	flash_byte(code);
	flash_select(false);
}

static bool busy(void)
{
	uint8_t status;

	flash_select(true);
	flash_byte(READ_STATUS);
	status = flash_byte(0);
	flash_select(false);
	return status & STATUS_BUSY;
}

/*
 * Between two looks there is a pause of some ten milliseconds if it `takes_long`: an erased sector. A
 * page takes less than one; with pauses, a bitstream would take minutes.
 */
static uint8_t wait(bool takes_long)
{
	uint32_t start = flash_now_ms();

	while (busy()) {
		if (flash_now_ms() - start > TIMEOUT_MS)
			return TREBUCHET_STATUS_FLASH_ERROR;
		if (takes_long)
			flash_pause();
	}
	flash_working();
	return TREBUCHET_STATUS_OK;
}

uint8_t flash_start(void)
{
	flash_select(false);
	flash_byte(0xff); /* the first clocks through an FPGA's start-up logic may be lost */
	short_command(WAKE);
	return wait(true);
}

void flash_read(uint32_t address, void *to, size_t length)
{
	uint8_t *at = to;

	command(READ, address);
	for (uint8_t *end = at + length; at != end; at++)
		*at = flash_byte(0);
	flash_select(false);
}

#ifdef TREBUCHET_BOOT_ROM

uint32_t flash_load(uint32_t address, uint32_t *to, size_t length)
{
	uint32_t crc;

	command(READ, address);
	crc = flash_words(to, length);
	flash_select(false);
	return crc;
}

#endif

uint8_t flash_erase(uint32_t address, uint32_t length)
{
	uint32_t end = address + length;

	for (address &= ~(FLASH_SECTOR - 1); address < end; address += FLASH_SECTOR) {
		short_command(WRITE_ENABLE);
		command(ERASE_SECTOR, address);
		flash_select(false);
		if (wait(true) != TREBUCHET_STATUS_OK)
			return TREBUCHET_STATUS_FLASH_ERROR;
	}
	return TREBUCHET_STATUS_OK;
}

static bool equals(uint32_t address, const uint8_t *wanted, size_t length)
{
	bool same = true;

	command(READ, address);
	for (size_t i = 0; i < length; i++)
		same &= flash_byte(0) == wanted[i];
	flash_select(false);
	return same;
}

uint8_t flash_program(uint32_t address, const void *from, size_t length)
{
	const uint8_t *at = from;

	while (length > 0) {
		size_t piece = PAGE - (address & (PAGE - 1));

		if (piece > length)
			piece = length;
		short_command(WRITE_ENABLE);
		command(PROGRAM, address);
		for (size_t i = 0; i < piece; i++)
			flash_byte(at[i]);
		flash_select(false);
		if (wait(false) != TREBUCHET_STATUS_OK || !equals(address, at, piece))
			return TREBUCHET_STATUS_FLASH_ERROR;
		address += piece;
		at += piece;
		length -= piece;
	}
	return TREBUCHET_STATUS_OK;
}
