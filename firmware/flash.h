/* The serial NOR flash (JEDEC commands; addresses of three bytes, of four above 16 MiB). */
#ifndef TREBUCHET_FLASH_H
#define TREBUCHET_FLASH_H

#include <stddef.h>
#include <stdint.h>

/* What is erased together: to ones. Programming then clears bits, byte by byte if need be. */
#define FLASH_SECTOR 4096u

/* Statuses are those of generated/trebuchet_status_codes.h: OK, or FLASH_ERROR. */

/* Make the flash listen, and wait for a write that a restart has cut off from us. */
uint8_t flash_start(void);
void flash_read(uint32_t address, void *to, size_t length);
/*
 * Read whole words, the last one filled up with zeros, as fast as the flash gives them; returns the
 * CRC-32 of the `length` bytes. For boards with a boot ROM.
 */
uint32_t flash_load(uint32_t address, uint32_t *to, size_t length);
/* Erase the sectors from `address` on that hold `length` bytes. Not read back. */
uint8_t flash_erase(uint32_t address, uint32_t length);
/* Clear the bits that are 0 in `from`, and read back: FLASH_ERROR unless the flash now equals it. */
uint8_t flash_program(uint32_t address, const void *from, size_t length);

#endif
