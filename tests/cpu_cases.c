/*
 * Checksums and copies, with our instructions and without. The input at 0x10000 is a list of cases,
 * each of four words: kind, from, to, length; kind 0 ends it. A case's result goes in the place of its
 * kind. The harness is told how many cycles each has taken.
 */
#include <stddef.h>
#include <stdint.h>

#include "cksum.h"

struct one_case {
	uint32_t kind, from, to, length;
};

enum { END, SUM_PLAIN, SUM_OURS, COPY_BYTES, COPY_PLAIN, COPY_OURS };

#define NOTE (*(volatile uint32_t *)0x80000004)

#define UNROLL _Pragma("GCC unroll 4")

static uint32_t tail(const uint8_t *at, size_t length)
{
	uint32_t word = 0;

	for (size_t k = 0; k < length; k++)
		word |= (uint32_t)at[k] << 8 * k;
	return word;
}

/* RFC 1071, with the byte order of the machine; `at` is a multiple of 4. */
__attribute__((noinline)) static uint32_t sum_plain(const uint8_t *at, size_t length)
{
	const uint32_t *word = (const uint32_t *)at;
	uint32_t sum = 0;

	UNROLL for (; length >= 4; length -= 4)
	{
		uint32_t next = *word++;

		sum += next;
		sum += sum < next;
	}
	if (length) {
		uint32_t last = tail((const uint8_t *)word, length);

		sum += last;
		sum += sum < last;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

__attribute__((noinline)) static uint32_t sum_ours(const uint8_t *at, size_t length)
{
	const uint32_t *word = (const uint32_t *)at;
	uint32_t sum = 0;

	UNROLL for (; length >= 4; length -= 4)
		sum = cksum_add(sum, *word++);
	if (length)
		sum = cksum_add(sum, tail((const uint8_t *)word, length));
	return cksum_fold(sum);
}

__attribute__((noinline)) static void copy_bytes(uint8_t *to, const uint8_t *from, size_t length)
{
	while (length--)
		*to++ = *from++;
}

/* To a multiple of 4, whole words; `SHIFTED` is the word at byte `n` of `low` and `high`. */
#define WORDS(to, from, count, SHIFTED, n)                             \
	do {                                                           \
		const uint32_t *source_ = (const uint32_t *)((from) - (n)); \
		uint32_t *target_ = (uint32_t *)(to), low_ = *source_++; \
		UNROLL for (size_t k_ = (count); k_; k_--) {           \
			uint32_t high_ = *source_++;                   \
			*target_++ = SHIFTED(low_, high_, n);          \
			low_ = high_;                                  \
		}                                                      \
	} while (0)
#define BY_SHIFTS(low, high, n) ((low) >> 8 * (n) | (high) << (32 - 8 * (n)))

#define COPY(name, SHIFTED)                                                                     \
	__attribute__((noinline)) static void name(uint8_t *to, const uint8_t *from, size_t length) \
	{                                                                                       \
		while (length && ((uintptr_t)to & 3)) {                                         \
			*to++ = *from++;                                                        \
			length--;                                                               \
		}                                                                               \
		size_t count = length / 4;                                                      \
		switch (count ? (uintptr_t)from & 3 : 4) {                                      \
		case 0:                                                                         \
			for (size_t k = 0; k < count; k++)                                      \
				((uint32_t *)to)[k] = ((const uint32_t *)from)[k];              \
			break;                                                                  \
		case 1:                                                                         \
			WORDS(to, from, count, SHIFTED, 1);                                     \
			break;                                                                  \
		case 2:                                                                         \
			WORDS(to, from, count, SHIFTED, 2);                                     \
			break;                                                                  \
		case 3:                                                                         \
			WORDS(to, from, count, SHIFTED, 3);                                     \
			break;                                                                  \
		default:                                                                        \
			break;                                                                  \
		}                                                                               \
		copy_bytes(to + 4 * count, from + 4 * count, length & 3);                       \
	}

COPY(copy_plain, BY_SHIFTS)
COPY(copy_ours, cksum_word)

int main(void)
{
	for (struct one_case *c = (struct one_case *)0x10000; c->kind != END; c++) {
		uint8_t *to = (uint8_t *)(uintptr_t)c->to;
		const uint8_t *from = (const uint8_t *)(uintptr_t)c->from;
		uint32_t kind = c->kind, sum = 0;

		NOTE = kind;
		if (kind == SUM_PLAIN)
			sum = sum_plain(from, c->length);
		else if (kind == SUM_OURS)
			sum = sum_ours(from, c->length);
		else if (kind == COPY_BYTES)
			copy_bytes(to, from, c->length);
		else if (kind == COPY_PLAIN)
			copy_plain(to, from, c->length);
		else if (kind == COPY_OURS)
			copy_ours(to, from, c->length);
		NOTE = kind;
		c->kind = sum ? sum : kind;
	}
	return 0;
}
