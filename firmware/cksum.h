/*
 * Instructions of the processors `trebuchet` and `trebuchet_cached` (docs/cpu.md) as functions. They
 * are there where the build defines TREBUCHET_CPU_CKSUM; elsewhere they end in an exception.
 */
#ifndef TREBUCHET_CKSUM_H
#define TREBUCHET_CKSUM_H

#include <stdint.h>

/* The ones' complement sum of two words: the carry is added in again. */
static inline uint32_t cksum_add(uint32_t a, uint32_t b)
{
	uint32_t sum;

	__asm__(".insn r 0x0b, 0, 0, %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b));
	return sum;
}

/* The ones' complement sum of a word's halves, 16 bits. */
static inline uint32_t cksum_fold(uint32_t a)
{
	uint32_t sum;

	__asm__(".insn r 0x0b, 1, 0, %0, %1, x0" : "=r"(sum) : "r"(a));
	return sum;
}

/* The word at byte `offset`, a constant from 0 to 3, of two words that lie one behind the other. */
#define cksum_word(low, high, offset)                                                    \
	({                                                                               \
		uint32_t word_;                                                          \
		__asm__(".insn r 0x0b, 2, %3, %0, %1, %2"                                \
			: "=r"(word_)                                                    \
			: "r"((uint32_t)(low)), "r"((uint32_t)(high)), "i"(offset));     \
		word_;                                                                   \
	})

#endif
