#include "memory.h"

#include <generated/csr.h>
#include <generated/mem.h>
#include <liblitedram/sdram.h>

#include "board.h"

#define SAMPLES 1024
#define STRIDE 64

/* Jenkins's one-at-a-time hash, a word a step: shifts and sums, since the CPU has no multiplier. */
static uint32_t mix(uint32_t value)
{
	value += value << 10;
	value ^= value >> 6;
	value += value << 3;
	value ^= value >> 11;
	return value + (value << 15);
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
