#include "handover.h"

#include "noinit.h"

#define MAGIC 0x68616e64u

/* Valid when `check` is the complement of the sum of the others. Read by another program: volatile. */
static volatile struct {
	uint32_t magic;
	uint32_t word;
	uint32_t check;
} record NOINIT_HANDOVER;

union word {
	uint32_t word;
	struct handover handover;
};

_Static_assert(sizeof(union word) == sizeof(uint32_t), "a handover is a word");

void handover_leave(struct handover handover)
{
	union word left = { .handover = handover };

	record.magic = MAGIC;
	record.word = left.word;
	record.check = ~(record.magic + record.word);
}

struct handover handover_found(void)
{
	union word found = { .word = record.word };

	if (record.magic != MAGIC || record.check != ~(record.magic + record.word))
		return (struct handover){ HANDOVER_GOLDEN, HANDOVER_EMPTY, HANDOVER_EMPTY, 0 };
	return found.handover;
}
