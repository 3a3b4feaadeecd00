/*
 * External memory that the firmware uses: its lower half is the CPU's (soc/map.py).
 *
 *   from                       bytes
 *   0                          APPLICATION_BYTES  the application firmware, when it runs
 *   APPLICATION_BYTES          256 KiB            variables with BULK (firmware/sections.ld)
 *   BULK_END                   …                  free: an image on its way into flash
 */
#ifndef TREBUCHET_BULK_H
#define TREBUCHET_BULK_H

#define APPLICATION_BYTES 0x40000u
#define BULK_END 0x80000u

/* A variable that is too large for on-chip memory. Not set to anything; use it after memory_start. */
#define BULK __attribute__((section(".bulk")))

#endif
