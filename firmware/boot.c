#include "boot.h"

#include <generated/mem.h>
#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>
#include <system.h>

#include "board.h"
#include "bulk.h"
#include "crc32.h"
#include "flash.h"
#include "handover.h"
#include "log.h"
#include "log_status.h"
#include "memory.h"
#include "multiboot.h"
#include "restart.h"

#define PIECE 256u

extern const char _ftext[]; /* where the linker put the first instruction */

bool boot_is_golden(void)
{
#ifdef TREBUCHET_BOOT_ROM
	return handover_found().from != HANDOVER_APPLICATION;
#else
	return (uintptr_t)_ftext - MAIN_RAM_BASE >= APPLICATION_BYTES;
#endif
}

const char *boot_name(void)
{
#ifdef TREBUCHET_BOOT_ROM
	if (handover_found().from == HANDOVER_RECEIVED)
		return "received";
#endif
	return boot_is_golden() ? "golden" : "application";
}

struct slot boot_slot(enum image_kind kind)
{
#ifdef TREBUCHET_FLASH_FIRMWARE
	if (kind == IMAGE_FIRMWARE)
		return (struct slot){ TREBUCHET_FLASH_FIRMWARE, TREBUCHET_FLASH_FIRMWARE_BYTES };
#endif
#ifdef TREBUCHET_FLASH_BITSTREAM
	if (kind == IMAGE_BITSTREAM)
		return (struct slot){ TREBUCHET_FLASH_BITSTREAM, TREBUCHET_FLASH_BITSTREAM_BYTES };
#endif
	(void)kind;
	return (struct slot){ 0, 0 };
}

uint8_t boot_check(const struct image *image)
{
	if (image->kind != IMAGE_FIRMWARE || image->load != MAIN_RAM_BASE)
		return TREBUCHET_STATUS_BAD_DATA;
	return image->length <= APPLICATION_BYTES ? TREBUCHET_STATUS_OK : TREBUCHET_STATUS_TOO_LARGE;
}

#ifndef TREBUCHET_BOOT_ROM

/* Copy to memory, and check what arrived there. */
static uint8_t copy(struct slot slot, const struct image *image)
{
	uint8_t *to = (uint8_t *)MAIN_RAM_BASE;

	for (uint32_t at = 0; at < image->length; at += PIECE) {
		uint32_t left = image->length - at;

		flash_read(slot.offset + at, to + at, left < PIECE ? left : PIECE);
	}
	if (crc32_of(0, to, image->length) != image->checksum)
		return TREBUCHET_STATUS_BAD_CHECKSUM;
	return TREBUCHET_STATUS_OK;
}

#endif

uint8_t boot_history(struct slot slot, struct slot_state state, uint32_t failures)
{
	if (!state.bad && state.confirmed && failures >= IMAGE_TRIALS) {
		state.bad = true;
		slot_give_up(slot); /* if that fails, it is found out again at the next start */
	}
	if (!state.bad && (state.confirmed || state.trials < IMAGE_TRIALS))
		return TREBUCHET_STATUS_OK;
	log_warn("image", state.bad ? "it was given up" : "it was started 3 times and never confirmed");
	return TREBUCHET_STATUS_ABORTED;
}

#ifdef TREBUCHET_BOOT_ROM

void boot_application(const uint32_t key[4])
{
	struct handover found = handover_found();
	struct slot slot = boot_slot(IMAGE_FIRMWARE);

	(void)key;
	if (found.application == HANDOVER_EMPTY)
		return;
	if (found.application == TREBUCHET_STATUS_ABORTED)
		boot_history(slot, slot_state(slot), 0); /* it writes why */
	log_status("image", "application", found.application);
}

#else

/* The application takes over everything, stack and interrupts included. */
static void jump(void)
{
	void (*entry)(void) = (void (*)(void))MAIN_RAM_BASE;

	restart_hand_over();
	board_stop();
	flush_cpu_dcache();
	flush_cpu_icache();
	entry();
}

void boot_application(const uint32_t key[4])
{
	struct slot slot = boot_slot(IMAGE_FIRMWARE);
	struct slot_state state = { 0, false, false };
	struct image image;
	uint8_t status;

	if (!boot_is_golden() || multiboot_is_application() || slot_empty(slot))
		return;
	status = slot_header(slot, TREBUCHET_BOARD, &image);
	if (status == TREBUCHET_STATUS_OK)
		status = boot_check(&image);
	if (status == TREBUCHET_STATUS_OK) {
		state = slot_state(slot);
		status = boot_history(slot, state, restart_failures());
	}
	if (status == TREBUCHET_STATUS_OK)
		status = copy(slot, &image);
	/* A start that cannot be counted could be repeated for ever. */
	if (status == TREBUCHET_STATUS_OK && !state.confirmed)
		status = slot_count_trial(slot);
	log_status("image", "application", status);
	if (status != TREBUCHET_STATUS_OK)
		return;
	memory_leave_chance(key);
	jump();
}

#endif

void boot_confirm(void)
{
	struct slot slot = boot_slot(IMAGE_FIRMWARE);
	uint8_t status;

	if (boot_is_golden() || slot_state(slot).confirmed)
		return;
	status = slot_confirm(slot);
	log_status("image", "confirmed", status);
}
