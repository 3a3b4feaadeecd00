/*
 * Code between an interrupt and its handler. Where firmware runs from external memory, it is in
 * on-chip memory: lines of the instruction cache are filled four times as fast from there.
 */
#ifndef TREBUCHET_FAST_H
#define TREBUCHET_FAST_H

#include <generated/soc.h>

#ifdef TREBUCHET_BOOT_ROM
#define FAST __attribute__((section(".fast"), noinline))
#define FAST_SECTION ".section .fast, \"ax\"\n"
#else
#define FAST
#define FAST_SECTION ".text\n"
#endif

#endif
