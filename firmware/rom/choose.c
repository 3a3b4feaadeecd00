#include "choose.h"

#include <stdbool.h>

#include <generated/mem.h>
#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "../boot.h"
#include "../flash.h"
#include "../restart.h"

/* Put an image into memory: OK, HANDOVER_EMPTY, or why it is not to be started. */
static uint8_t load(struct slot slot, bool application)
{
	struct slot_state state = { 0, true, false };
	struct image image;
	uint8_t status;

	if (slot_empty(slot))
		return HANDOVER_EMPTY;
	status = slot_header(slot, TREBUCHET_BOARD, &image);
	if (status == TREBUCHET_STATUS_OK)
		status = boot_check(&image);
	if (status == TREBUCHET_STATUS_OK && application) {
		state = slot_state(slot);
		status = boot_history(slot, state, restart_failures());
	}
	if (status == TREBUCHET_STATUS_OK &&
	    flash_load(slot.offset, (uint32_t *)MAIN_RAM_BASE, image.length) != image.checksum)
		status = TREBUCHET_STATUS_BAD_CHECKSUM;
	/* A start that cannot be counted could be repeated for ever. */
	if (status == TREBUCHET_STATUS_OK && !state.confirmed)
		status = slot_count_trial(slot);
	return status;
}

_Noreturn void choose_start(struct handover found)
{
	void (*entry)(void) = (void (*)(void))MAIN_RAM_BASE;

	handover_leave(found);
	restart_hand_over();
	flush_cpu_dcache();
	flush_cpu_icache();
	entry();
	__builtin_unreachable();
}

struct handover choose(void)
{
	struct slot golden = { TREBUCHET_FLASH_GOLDEN_FIRMWARE, TREBUCHET_FLASH_GOLDEN_FIRMWARE_BYTES };
	struct handover found = { HANDOVER_APPLICATION, HANDOVER_EMPTY, TREBUCHET_STATUS_OK, 0 };

	found.application = load(boot_slot(IMAGE_FIRMWARE), true);
	if (found.application == TREBUCHET_STATUS_OK)
		choose_start(found);
	found.from = HANDOVER_GOLDEN;
	found.golden = load(golden, false);
	if (found.golden == TREBUCHET_STATUS_OK)
		choose_start(found);
	found.from = HANDOVER_RECEIVED;
	return found;
}
