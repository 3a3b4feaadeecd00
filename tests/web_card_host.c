/* A drive and what else the firmware's files of a card need, for tests/test_firmware_web_card.py. */
#include <stdint.h>
#include <string.h>

#include "board.h"
#include "command.h"
#include "drive.h"
#include "log.h"

uint32_t (*bus_read)(uint32_t);
void (*bus_write)(uint32_t, uint32_t);

const uint8_t *host_image; /* of the medium, or NULL */
uint32_t host_sectors;
bool host_changed;
uint32_t host_latency; /* polls that a job takes */
uint32_t host_bad = 0xffffffff; /* a sector that cannot be read */
uint32_t host_jobs, host_ms, host_wakes;
uint32_t host_end; /* behind the last sector that was asked for */
uint32_t host_low, host_high; /* jobs of more than a sector may only write here */
uint32_t host_outside; /* those that would have written elsewhere */
char host_log[1 << 16];

static uint32_t left;
static enum drive_status result;
static bool under_way;

void board_wake(void)
{
	host_wakes++;
}

uint32_t board_uptime_ms(void)
{
	return host_ms;
}

void log_write(enum log_level level, const char *part, const char *text)
{
	(void)level, (void)part;
	if (strlen(host_log) + strlen(text) + 2 < sizeof(host_log))
		strcat(strcat(host_log, text), "\n");
}

bool words_is(const struct words *words, unsigned index, const char *word)
{
	return index < words->count && strcmp(words->word[index], word) == 0;
}

bool drive_ready(void)
{
	return host_image != NULL;
}

uint64_t drive_sectors(void)
{
	return host_image != NULL ? host_sectors : 0;
}

bool drive_changed(void)
{
	bool changed = host_changed;

	host_changed = false;
	return changed;
}

static bool is_memory(uintptr_t address, uint32_t count)
{
	return address >= host_low && address + (uintptr_t)count * DRIVE_SECTOR <= host_high;
}

void drive_start(bool write, uint64_t lba, uint32_t count, uintptr_t address)
{
	if (write || under_way || count == 0)
		__builtin_trap();
	host_jobs++;
	host_end = (uint32_t)lba + count;
	under_way = true;
	left = host_latency;
	result = host_image == NULL ? DRIVE_ABSENT : lba + count > host_sectors ? DRIVE_RANGE : DRIVE_OK;
	if (result != DRIVE_OK)
		return;
	if (lba <= host_bad && host_bad < lba + count)
		result = DRIVE_DATA;
	else if (address < UINT32_MAX && !is_memory(address, count))
		host_outside++;
	else
		memcpy((void *)address, host_image + lba * DRIVE_SECTOR, (size_t)count * DRIVE_SECTOR);
}

bool drive_poll(enum drive_status *status)
{
	if (!under_way)
		__builtin_trap();
	if (left > 0) {
		left--;
		return false;
	}
	under_way = false;
	*status = host_image == NULL ? DRIVE_ABSENT : result;
	return true;
}
