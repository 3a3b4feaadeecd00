#include "multiboot.h"

#ifdef TREBUCHET_MULTIBOOT

#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "boot.h"
#include "flash.h"
#include "image.h"
#include "log.h"
#include "log_status.h"
#include "multiboot_port.h"
#include "restart.h"
#include "serial.h"

#define KEY 0xb007c0deu
/* What the FPGA takes of an address (UG570, WBSTAR): of four bytes the upper three. */
#define ADDRESS_SHIFT (TREBUCHET_FLASH_SIZE > 0x1000000 ? 8 : 0)

bool multiboot_is_application(void)
{
	return trebuchet_multiboot_application_read() != 0;
}

/* The FPGA loads another bitstream: everything ends here. */
static void jump(uint32_t offset)
{
	serial_flush();
	trebuchet_multiboot_address_write(offset >> ADDRESS_SHIFT);
	trebuchet_multiboot_start_write(KEY);
	multiboot_port_wait();
}

void multiboot_leave(void)
{
	if (multiboot_is_application())
		jump(TREBUCHET_FLASH_GOLDEN);
}

void multiboot_check(void)
{
	struct slot slot = boot_slot(IMAGE_BITSTREAM);
	struct slot_state state;

	if (!multiboot_is_application())
		return;
	flash_start();
	state = slot_state(slot);
	if (!state.bad && restart_failures() >= IMAGE_TRIALS) {
		state.bad = true;
		/* Neither tried nor confirmed: another image, which has come meanwhile. */
		if (state.trials > 0 || state.confirmed)
			slot_give_up(slot); /* if that fails, it is found out again */
	}
	if (!state.bad)
		return;
	log_warn("image", "this bitstream was given up: back to golden");
	multiboot_leave();
}

static uint8_t check_slot(struct slot slot)
{
	struct slot_state state;
	struct image image;
	uint8_t status = slot_header(slot, TREBUCHET_BOARD, &image);

	if (status == TREBUCHET_STATUS_OK && image.kind != IMAGE_BITSTREAM)
		status = TREBUCHET_STATUS_BAD_DATA;
	if (status != TREBUCHET_STATUS_OK)
		return status;
	state = slot_state(slot);
	/* Failures up to here were golden's: the other bitstream's memory begins anew. */
	status = boot_history(slot, state, 0);
	if (status == TREBUCHET_STATUS_OK)
		status = slot_verify(slot, &image);
	/* A start that cannot be counted could be repeated for ever. */
	if (status == TREBUCHET_STATUS_OK && !state.confirmed)
		status = slot_count_trial(slot);
	return status;
}

void multiboot_start(void)
{
	struct slot slot = boot_slot(IMAGE_BITSTREAM);
	uint8_t status;

	if (!boot_is_golden() || multiboot_is_application() || slot_empty(slot))
		return;
	/* The FPGA may refuse one that was confirmed, again and again: this is the way out. */
	if (restart_cause() == RESTART_BUTTON) {
		log_warn("image", "reset by hand: golden stays");
		return;
	}
	status = check_slot(slot);
	log_status("image", "application bitstream", status);
	if (status == TREBUCHET_STATUS_OK)
		jump(slot.offset);
}

/*
 * Only after the FPGA was configured: later there may be another image in the slot than the one
 * that runs.
 */
void multiboot_confirm(void)
{
	struct slot slot = boot_slot(IMAGE_BITSTREAM);

	if (!multiboot_is_application() || restart_cause() != RESTART_POWER)
		return;
	if (!slot_state(slot).confirmed)
		log_status("image", "bitstream confirmed", slot_confirm(slot));
}

#endif
