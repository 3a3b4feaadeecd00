#include "memory.h"

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/soc.h>
#include <liblitedram/sdram.h>

#include "board.h"
#include "boot.h"
#include "bulk.h"

#define SAMPLES 1024
#define STRIDE 64

/* Behind what the firmware itself uses. */
static volatile uint32_t *const samples = (volatile uint32_t *)(MAIN_RAM_BASE + BULK_END);

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
	const volatile uint32_t *word = samples;

	for (unsigned i = 0; i < SAMPLES; i++) {
		key[i & 3] = mix(key[i & 3] + *word + key[(i + 1) & 3]);
		word += STRIDE / sizeof(*word);
	}
	key[0] = mix(key[0] ^ board_cycles());
}

bool memory_start(void)
{
#ifdef TREBUCHET_BOOT_ROM
	return true;
#else
	return !boot_is_golden() || sdram_init() != 0;
#endif
}

const char *memory_test(void)
{
#ifdef SDRAM_TEST_DISABLE
	return "none";
#else
	return "good";
#endif
}

void memory_leave_chance(const uint32_t key[4])
{
	for (unsigned i = 0; i < 4; i++)
		samples[i * (STRIDE / sizeof(*samples))] = key[i];
}
