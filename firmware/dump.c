#include "dump.h"

#define SEED 0x64756d70u
#define PER_LINE 4

static uint32_t sum(const struct dump *dump)
{
	const uint32_t *word = &dump->cause;
	uint32_t value = SEED;

	/* Rotated, so that words in other places give another sum. */
	for (; word < &dump->check; word++)
		value = (value << 1 | value >> 31) + *word;
	return value;
}

void dump_seal(struct dump *dump)
{
	dump->check = sum(dump);
}

bool dump_valid(const struct dump *dump)
{
	return dump->check == sum(dump);
}

void dump_clear(struct dump *dump)
{
	dump->check = ~sum(dump);
}

static const char *name_of(uint32_t cause)
{
	static const char *const names[] = {
		"instruction address misaligned", "instruction access fault", "illegal instruction",
		"breakpoint", "load address misaligned", "load access fault", "store address misaligned",
		"store access fault",
	};

	if (cause < sizeof(names) / sizeof(names[0]))
		return names[cause];
	if (cause == DUMP_WATCHDOG)
		return "watchdog: the firmware hung";
	if (cause == DUMP_STACK)
		return "the stack grew into the data";
	return "trap";
}

static void word(struct text *out, const char *name, uint32_t value)
{
	text_plain(out, name);
	text_char(out, ' ');
	text_hex(out, value, 8);
}

void dump_write(struct text *out, const struct dump *dump)
{
	/* Two letters each; the blank of "s0 " makes the columns even. */
	static const char names[DUMP_REGISTERS][4] = {
		"ra ", "sp ", "gp ", "tp ", "t0 ", "t1 ", "t2 ", "s0 ", "s1 ", "a0 ", "a1 ", "a2 ",
		"a3 ", "a4 ", "a5 ", "a6 ", "a7 ", "s2 ", "s3 ", "s4 ", "s5 ", "s6 ", "s7 ", "s8 ",
		"s9 ", "s10", "s11", "t3 ", "t4 ", "t5 ", "t6 ",
	};

	text_plain(out, "crash: ");
	text_plain(out, name_of(dump->cause));
	text_plain(out, " (");
	text_unsigned(out, dump->cause);
	text_plain(out, ") after ");
	text_seconds(out, dump->uptime_ms, 0);
	text_plain(out, " s\n");
	word(out, "pc ", dump->pc);
	word(out, "  value", dump->value);
	for (unsigned i = 0; i < DUMP_REGISTERS; i++) {
		text_plain(out, i % PER_LINE == 0 ? "\n" : "  ");
		word(out, names[i], dump->x[i]);
	}
	text_char(out, '\n');
}
