/*
 * Calls a target with inputs made from its corpus: driver INPUTS SEED FAULT FILE...
 *
 * First come the files as they are, then mutations of them, always the same for the same arguments.
 * Prints inputs and seconds of processor time as JSON. An input with a fault is left in file FAULT; it may join the
 * corpus when the fault is repaired.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#define MAX_BYTES 2048u
#define MAX_FILES 256u
#define MAX_CHANGES 5u
#define SHORT_PIECE 16u
/* Any input takes microseconds. */
#define BATCH 4096u
#define BATCH_SECONDS 60u

struct input {
	char bytes[MAX_BYTES];
	size_t length;
};

static struct input corpus[MAX_FILES];
static unsigned files, words;
static struct input now;
static char *placed;
static const char *fault_path;
static uint64_t state;

/* xorshift64*, S. Vigna, ACM TOMS 42 (2016). */
static uint32_t below(uint32_t limit)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)(((state * 2685821657736338717u) >> 32) * limit >> 32);
}

static void keep_input(void)
{
	FILE *file = fopen(fault_path, "wb");

	if (file == NULL)
		return;
	fwrite(now.bytes, 1, now.length, file);
	fclose(file);
	fprintf(stderr, "the input is in %s\n", fault_path);
}

void fuzz_fault(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: not true: %s\n", file, line, condition);
	keep_input();
	_exit(1);
}

/* UBSan's run-time library does not know ASan's death callback. */
const char *__ubsan_default_options(void);

const char *__ubsan_default_options(void)
{
	return "abort_on_error=1";
}

static void aborted(int number)
{
	(void)number;
	keep_input();
	_exit(1);
}

static void too_slow(int number)
{
	(void)number;
	fuzz_fault(__FILE__, __LINE__, "an input takes no seconds");
}

/* Make room for `length` bytes at `at`, or as many as there is room for; returns how many. */
static size_t open_gap(size_t at, size_t length)
{
	if (length > MAX_BYTES - now.length)
		length = MAX_BYTES - now.length;
	memmove(now.bytes + at + length, now.bytes + at, now.length - at);
	now.length += length;
	return length;
}

static void insert(size_t at, const char *bytes, size_t length)
{
	memcpy(now.bytes + at, bytes, open_gap(at, length));
}

static void cut(size_t at, size_t length)
{
	memmove(now.bytes + at, now.bytes + at + length, now.length - at - length);
	now.length -= length;
}

/* Repeat a piece of the input, or put in a piece of another. */
static void copy_piece(size_t at, const struct input *from)
{
	char piece[MAX_BYTES];
	size_t start, length;

	if (from->length == 0)
		return;
	start = below((uint32_t)from->length);
	length = 1 + below((uint32_t)(from->length - start));
	/* Mostly short ones, or the inputs grow long and the rate low. */
	if (length > SHORT_PIECE && below(16) != 0)
		length = 1 + length % SHORT_PIECE;
	memcpy(piece, from->bytes + start, length);
	insert(at, piece, length);
}

static void change(void)
{
	static const char edges[] = { 0, 1, '\t', '\n', '\r', ' ', '0', '9', ':', 'A', 0x7f, -128, -1 };
	size_t at = below((uint32_t)now.length + 1);
	char byte;

	switch (below(10)) {
	case 0:
		byte = (char)below(256);
		insert(at, &byte, 1);
		break;
	case 1:
	case 2:
		insert(at, &edges[below(sizeof(edges))], 1);
		break;
	case 3:
	case 4:
		if (words > 0) {
			const char *word = fuzz_dictionary[below(words)];

			insert(at, word, strlen(word));
		}
		break;
	case 5:
		copy_piece(at, &now);
		break;
	case 6:
		copy_piece(at, &corpus[below(files)]);
		break;
	default:
		if (at == now.length)
			break;
		if (below(3) == 0)
			cut(at, 1 + below((uint32_t)(now.length - at)));
		else if (below(2) == 0)
			now.bytes[at] ^= (char)(1u << below(8));
		else
			now.bytes[at] = edges[below(sizeof(edges))];
	}
}

/* Exactly the input may be touched: the allocation begins with it, and the rest is poisoned. */
static void call(void)
{
	ASAN_UNPOISON_MEMORY_REGION(placed, MAX_BYTES);
	memcpy(placed, now.bytes, now.length);
	ASAN_POISON_MEMORY_REGION(placed + now.length, MAX_BYTES - now.length);
	fuzz_one(placed, now.length);
}

static void read_corpus(char **paths, int count)
{
	for (int i = 0; i < count && files < MAX_FILES; i++) {
		FILE *file = fopen(paths[i], "rb");

		if (file == NULL) {
			perror(paths[i]);
			exit(2);
		}
		corpus[files].length = fread(corpus[files].bytes, 1, MAX_BYTES, file);
		fclose(file);
		files++;
	}
	while (fuzz_dictionary[words] != NULL)
		words++;
}

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
	unsigned long inputs;
	double start = seconds();

	if (argc < 5) {
		fprintf(stderr, "usage: %s INPUTS SEED FAULT FILE...\n", argv[0]);
		return 2;
	}
	inputs = strtoul(argv[1], NULL, 0);
	state = strtoul(argv[2], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
	fault_path = argv[3];
	read_corpus(argv + 4, argc - 4);
	placed = malloc(MAX_BYTES);
	signal(SIGALRM, too_slow);
	signal(SIGABRT, aborted);
	__sanitizer_set_death_callback(keep_input);
	for (unsigned long i = 0; i < inputs; i++) {
		unsigned source = i < files ? (unsigned)i : below(files);

		if (i % BATCH == 0)
			alarm(BATCH_SECONDS);
		memcpy(now.bytes, corpus[source].bytes, corpus[source].length);
		now.length = corpus[source].length;
		if (i >= files)
			for (unsigned n = 1 + below(MAX_CHANGES); n > 0; n--)
				change();
		call();
	}
	printf("{\"inputs\": %lu, \"seconds\": %.3f}\n", inputs, seconds() - start);
	ASAN_UNPOISON_MEMORY_REGION(placed, MAX_BYTES);
	free(placed);
	return 0;
}
