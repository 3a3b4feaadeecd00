/*
 * A fuzz target: a file target_NAME.c that defines the two things below, and a folder corpus/NAME
 * with at least one input. Its first line names the files of firmware/ that it is linked with:
 *
 *     // firmware: http text
 *
 * driver.c calls fuzz_one with mutated inputs; firmware_fuzz.py compiles and runs. ASan and UBSan watch; what
 * they do not see, such as a result that cannot be, is checked with `require`.
 */
#ifndef TREBUCHET_FUZZ_H
#define TREBUCHET_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Words of the format, which mutations put in; ends with NULL. */
extern const char *const fuzz_dictionary[];

/*
 * To be called with whatever comes in. The bytes before `data` and after its end are poisoned. What
 * happens must depend on this input only, or a fault could not be found again.
 */
void fuzz_one(const char *data, size_t length);

/* The condition holds, or this input is a fault. */
#define require(condition) \
	do { \
		if (!(condition)) \
			fuzz_fault(__FILE__, __LINE__, #condition); \
	} while (0)

_Noreturn void fuzz_fault(const char *file, int line, const char *condition);

#endif
