#include "memory.h"

#include <generated/csr.h>
#include <generated/mem.h>
#include <liblitedram/sdram.h>

#include "board.h"

#define SAMPLES 1024
#define STRIDE 64

/* One round of a 32-bit mixing function (MurmurHash3's finaliser). */
static uint32_t mix(uint32_t value)
{
	value ^= value >> 16;
	value *= 0x85ebca6bu;
	value ^= value >> 13;
	value *= 0xc2b2ae35u;
	return value ^ value >> 16;
}

void memory_gather_chance(uint32_t key[4])
{
	const volatile uint32_t *word = (const volatile uint32_t *)MAIN_RAM_BASE;

	for (unsigned i = 0; i < SAMPLES; i++) {
		key[i & 3] = mix(key[i & 3] + *word + key[(i + 1) & 3]);
		word += STRIDE / sizeof(*word);
	}
	key[0] = mix(key[0] ^ board_cycles());
}

bool memory_start(void)
{
	return sdram_init() != 0;
}
