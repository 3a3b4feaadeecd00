/* The boot ROM's choice on this machine, with what boot_host.c has; words come byte by byte. */
#include "boot_host.c"
#include "handover.h"

#define record handover_record /* restart.c has one, too */
#undef MAGIC
#include "handover.c"
#undef record

#include "crc32.h"
#include "flash_port.h"
#include "rom/choose.h"

/* What the ROM found if it started nothing. */
uint8_t host_found[2];

uint32_t flash_words(uint32_t *to, size_t length)
{
	uint8_t *bytes = (uint8_t *)to;

	for (size_t at = 0; at < length; at++)
		bytes[at] = flash_byte(0);
	for (size_t at = length; at % 4 != 0; at++)
		bytes[at] = 0;
	return crc32_of(0, to, length);
}

/* 2 if an image was started, or 0. */
int host_choose(void)
{
	int left = setjmp(leave);

	if (left == 0) {
		struct handover found = choose();

		host_found[0] = found.application;
		host_found[1] = found.golden;
	}
	return left;
}

unsigned host_from(void)
{
	return handover_found().from;
}

/* One bit of what the ROM left is another; 0 if there is none of that number. */
int host_flip_handover(unsigned bit)
{
	if (bit >= 8 * sizeof(handover_record))
		return 0;
	((volatile uint8_t *)&handover_record)[bit / 8] ^= (uint8_t)(1u << bit % 8);
	return 1;
}
