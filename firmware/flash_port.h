/* What the flash's protocol stands on: the SPI controller and time. Tests have their own. */
#ifndef TREBUCHET_FLASH_PORT_H
#define TREBUCHET_FLASH_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void flash_select(bool selected);
/* Send a byte; returns the one that came meanwhile. */
uint8_t flash_byte(uint8_t byte);
/* The next `length` bytes as words, and their CRC-32; for boards with a boot ROM. */
uint32_t flash_words(uint32_t *to, size_t length);
/* While the flash writes: let time pass, asleep if something will wake us. */
void flash_pause(void);
/* Long work goes on, and does not hang. */
void flash_working(void);
uint32_t flash_now_ms(void);

#endif
