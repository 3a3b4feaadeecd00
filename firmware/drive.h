/*
 * The drive: a block device, and DMA between it and external memory (docs/drives.md). A board without
 * one has a drive that is never ready.
 */
#ifndef TREBUCHET_DRIVE_H
#define TREBUCHET_DRIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"

#define DRIVE_SECTOR 512u
/* Sectors of a job, at most. */
#define DRIVE_MOST 65535u

/* How a job ended: DriveStatus of cores/drive/port.py. */
enum drive_status {
	DRIVE_OK,
	DRIVE_RANGE,
	DRIVE_DATA,
	DRIVE_TIMEOUT,
	DRIVE_ABSENT,
	DRIVE_PROTECTED,
	DRIVE_INVALID,
};

/* A medium is there and can be used. */
bool drive_ready(void);
/* Its size; 0 unless it is ready. */
uint64_t drive_sectors(void);
/* Since the last call the medium could not be used at some time, so it may be another. */
bool drive_changed(void);

/*
 * Begin to move `count` sectors, 1 to DRIVE_MOST, from `lba` on, to or from external memory at
 * `address`, a multiple of 8. One job at a time: drive_poll must have said that the last one is over.
 */
void drive_start(bool write, uint64_t lba, uint32_t count, uintptr_t address);
/* Is the job over? Then how it ended; what the gateware wrote is not hidden by the CPU's cache. */
bool drive_poll(enum drive_status *status);
/* The same, and wait for it: every job ends. */
enum drive_status drive_move(bool write, uint64_t lba, uint32_t count, uintptr_t address);

/* Name of a status, in lower case. */
const char *drive_status_name(enum drive_status status);
uint8_t drive_command(struct words *words, struct text *out);

#endif
