#include "drive.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "bulk.h"
#include "crc32.h"

#ifdef TREBUCHET_DRIVE_BASE

#define STATE_BUSY (1u << TREBUCHET_DRIVE_STATE_BUSY_OFFSET)
#define STATE_READY (1u << TREBUCHET_DRIVE_STATE_READY_OFFSET)
#define STATUS_MASK ((1u << TREBUCHET_DRIVE_STATE_STATUS_WIDTH) - 1)
#define EVENT_CHANGED (1u << TREBUCHET_DRIVE_EVENTS_CHANGED_OFFSET)
#define START_GO (1u << TREBUCHET_DRIVE_START_GO_OFFSET)
#define START_WRITE (1u << TREBUCHET_DRIVE_START_WRITE_OFFSET)

/* Sectors that the command reads, at most: it holds up everything else meanwhile. */
#define COMMAND_SECTORS 16u

/* A job was begun, and its end was not yet seen. */
static bool under_way;
static BULK uint8_t sectors[COMMAND_SECTORS * DRIVE_SECTOR] __attribute__((aligned(8)));

bool drive_ready(void)
{
	return (trebuchet_drive_state_read() & STATE_READY) != 0;
}

uint64_t drive_sectors(void)
{
	return trebuchet_drive_sectors_read();
}

bool drive_changed(void)
{
	bool changed = (trebuchet_drive_events_read() & EVENT_CHANGED) != 0;

	if (changed)
		trebuchet_drive_events_write(EVENT_CHANGED);
	return changed;
}

void drive_start(bool write, uint64_t lba, uint32_t count, uintptr_t address)
{
	trebuchet_drive_lba_write(lba);
	trebuchet_drive_count_write(count);
	trebuchet_drive_address_write((uint32_t)address);
	under_way = true;
	trebuchet_drive_start_write(START_GO | (write ? START_WRITE : 0));
}

bool drive_poll(enum drive_status *status)
{
	uint32_t state = trebuchet_drive_state_read();

	if ((state & STATE_BUSY) != 0)
		return false;
	under_way = false;
	*status = (enum drive_status)(state >> TREBUCHET_DRIVE_STATE_STATUS_OFFSET & STATUS_MASK);
	flush_cpu_dcache();
	return true;
}

enum drive_status drive_move(bool write, uint64_t lba, uint32_t count, uintptr_t address)
{
	enum drive_status status;

	drive_start(write, lba, count, address);
	while (!drive_poll(&status))
		;
	return status;
}

const char *drive_status_name(enum drive_status status)
{
	static const char *const names[] = {
		"ok", "range", "data", "timeout", "absent", "protected", "invalid",
	};

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "unknown";
}

/* The card, where the drive is a card slot. */
static void describe_card(struct text *out)
{
#ifdef TREBUCHET_SD_BASE
	uint32_t state = trebuchet_sd_state_read();

	if (!drive_ready())
		return;
	text_plain(out, state & 1u << TREBUCHET_SD_STATE_HIGH_CAPACITY_OFFSET ? "card: high capacity, " : "card: ");
	text_plain(out, state & 1u << TREBUCHET_SD_STATE_HIGH_SPEED_OFFSET ? "high speed, " : "default speed, ");
	text_unsigned(out, state >> TREBUCHET_SD_STATE_REPEATS_OFFSET);
	text_plain(out, " reads repeated\n");
#else
	(void)out;
#endif
}

static void describe(struct text *out)
{
	if (drive_ready()) {
		text_plain(out, "ready, ");
		text_unsigned(out, drive_sectors());
		text_plain(out, " sectors");
	} else {
		text_plain(out, "no medium");
	}
	text_plain(out, ", ");
	text_unsigned(out, trebuchet_drive_jobs_read());
	text_plain(out, " jobs, ");
	text_unsigned(out, trebuchet_drive_failures_read());
	text_plain(out, " failed\n");
	describe_card(out);
}

/* The CRC-32 of some sectors: a way to see that a drive can be read, and that it is the right one. */
static uint8_t checksum(uint32_t lba, uint32_t count, struct text *out)
{
	enum drive_status status;

	if (under_way) {
		text_plain(out, "files are being read from it; try again");
		return TREBUCHET_STATUS_BUSY;
	}
	status = drive_move(false, lba, count, (uintptr_t)sectors);
	if (status != DRIVE_OK) {
		text_plain(out, "the drive ended with status ");
		text_plain(out, drive_status_name(status));
		return status == DRIVE_RANGE ? TREBUCHET_STATUS_BAD_ARGUMENT : TREBUCHET_STATUS_BAD_DATA;
	}
	text_plain(out, "crc32 ");
	text_hex(out, crc32_of(0, sectors, count * DRIVE_SECTOR), 8);
	text_char(out, '\n');
	return TREBUCHET_STATUS_OK;
}

uint8_t drive_command(struct words *words, struct text *out)
{
	uint32_t lba, count = 1;

	if (words->count == 1) {
		describe(out);
		return TREBUCHET_STATUS_OK;
	}
	if (!words_is(words, 1, "crc") || words->count > 4 || !words_number(words, 2, &lba) ||
	    (words->count > 3 && !words_number(words, 3, &count)))
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	if (count == 0 || count > COMMAND_SECTORS) {
		text_plain(out, "COUNT must be 1 to 16");
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	}
	return checksum(lba, count, out);
}

#else

bool drive_ready(void)
{
	return false;
}

#endif
