#include "flash_port.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>

#include "board.h"
#include "restart.h"

#ifdef TREBUCHET_FLASH_BASE

#define SEND_GO (1u << TREBUCHET_FLASH_SEND_GO_OFFSET)
#define RECEIVED_BUSY (1u << TREBUCHET_FLASH_RECEIVED_BUSY_OFFSET)

void flash_select(bool selected)
{
	trebuchet_flash_control_write(selected);
}

uint8_t flash_byte(uint8_t byte)
{
	uint32_t received;

	trebuchet_flash_send_write(SEND_GO | byte);
	do /* eight clocks, which is about as long as the bus takes */
		received = trebuchet_flash_received_read();
	while (received & RECEIVED_BUSY);
	return (uint8_t)received;
}

#ifdef TREBUCHET_BOOT_ROM

uint32_t flash_words(uint32_t *to, size_t length)
{
	const uint32_t *end = to + (length + 3) / 4;

	trebuchet_flash_words_count_write(length);
	while (to != end) {
		while (!trebuchet_flash_words_valid_read())
			;
		*to++ = trebuchet_flash_words_word_read();
		trebuchet_flash_words_next_write(1);
	}
	return trebuchet_flash_words_crc_read();
}

#endif

#else /* no flash: it reads as blank, and takes nothing */

void flash_select(bool selected)
{
	(void)selected;
}

uint8_t flash_byte(uint8_t byte)
{
	(void)byte;
	return 0xff;
}

#endif

void flash_pause(void)
{
	board_pause();
}

void flash_working(void)
{
	watchdog_feed();
}

uint32_t flash_now_ms(void)
{
	return board_uptime_ms();
}
