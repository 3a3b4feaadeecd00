/* The configuration block of this board, read once at the start. */
#ifndef TREBUCHET_SETTINGS_H
#define TREBUCHET_SETTINGS_H

#include "config.h"
#include "network.h"

/* Start the flash and read the block; say on the console what is there, and what is wrong. */
void settings_start(void);
/* The block as it was read, then as commands have changed it; empty without one; NULL before. */
struct config *settings(void);
/* Put the block's addresses in the place of the board file's. */
void settings_address(struct address *address);
/* Do what the block says of the log, the role slots, and the TCP engine's times and limits. */
void settings_apply(void);
/* The watchdog's period, the board file's without another. */
uint32_t settings_watchdog_ms(void);
/* Write, or erase, the block: statuses. */
uint8_t settings_save(void);
uint8_t settings_erase(void);

#endif
