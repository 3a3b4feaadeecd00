#include "flash_commands.h"

#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>

#include "boot.h"
#include "multiboot.h"
#include "restart.h"

static void put(struct text *out, const char *string, size_t most)
{
	for (size_t i = 0; i < most && string[i] != '\0'; i++)
		text_char(out, string[i] >= ' ' && string[i] <= '~' ? string[i] : '?');
}

static void show_slot(struct text *out, const char *name, enum image_kind kind)
{
	struct slot slot = boot_slot(kind);
	struct slot_state state;
	struct image image;
	uint8_t status;

	text_plain(out, name);
	if (slot_empty(slot)) {
		text_plain(out, slot.bytes == 0 ? ": no slot\n" : ": empty\n");
		return;
	}
	status = slot_header(slot, TREBUCHET_BOARD, &image);
	text_plain(out, ": ");
	if (status == TREBUCHET_STATUS_OK || status == TREBUCHET_STATUS_WRONG_BOARD) {
		put(out, image.version, sizeof(image.version));
		text_plain(out, " for ");
		put(out, image.board, sizeof(image.board));
		text_plain(out, ", ");
		text_unsigned(out, image.length);
		text_plain(out, " bytes, ");
	}
	/* A bitstream would take seconds. */
	if (status == TREBUCHET_STATUS_OK && kind == IMAGE_FIRMWARE)
		status = slot_verify(slot, &image);
	text_plain(out, command_status_name(status));
	state = slot_state(slot);
	text_plain(out, state.bad ? ", given up" : state.confirmed ? ", confirmed" : ", starts ");
	if (!state.bad && !state.confirmed)
		text_unsigned(out, state.trials);
	text_char(out, '\n');
}

static uint8_t show(struct text *out)
{
	text_plain(out, boot_is_golden() ? "running: golden\n" : "running: application\n");
#ifdef TREBUCHET_MULTIBOOT
	text_plain(out, multiboot_is_application() ? "running bitstream: application\n" :
		"running bitstream: golden\n");
#endif
	show_slot(out, "firmware", IMAGE_FIRMWARE);
	show_slot(out, "bitstream", IMAGE_BITSTREAM);
	return TREBUCHET_STATUS_OK;
}

/* Start the application, whatever happened to it before. */
static uint8_t boot(enum image_kind kind)
{
	struct slot slot = boot_slot(kind);
	struct slot_state state;
	struct image image;
	uint8_t status = slot_header(slot, TREBUCHET_BOARD, &image);

	if (status != TREBUCHET_STATUS_OK)
		return status;
	state = slot_state(slot);
	if (state.bad || (!state.confirmed && state.trials == IMAGE_TRIALS))
		status = slot_renew(slot);
	if (status == TREBUCHET_STATUS_OK)
		restart_request();
	return status;
}

uint8_t command_image(struct words *words, struct text *out)
{
	if (words->count == 1 || (words->count == 2 && words_is(words, 1, "show")))
		return show(out);
	if (words->count == 2 && words_is(words, 1, "erase"))
		return slot_erase(boot_slot(IMAGE_FIRMWARE));
	if (words->count == 2 && words_is(words, 1, "boot"))
		return boot(IMAGE_FIRMWARE);
#ifdef TREBUCHET_MULTIBOOT
	if (words->count == 3 && words_is(words, 2, "bitstream")) {
		if (words_is(words, 1, "erase"))
			return slot_erase(boot_slot(IMAGE_BITSTREAM));
		if (words_is(words, 1, "boot"))
			return boot(IMAGE_BITSTREAM);
	}
#endif
	return TREBUCHET_STATUS_BAD_ARGUMENT;
}
