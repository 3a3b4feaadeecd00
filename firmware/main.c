/* Trebuchet's firmware: brings the board up, then serves its status page and its console. */
#include <stdbool.h>

#include <generated/soc.h>

#include "board.h"
#include "boot.h"
#include "console.h"
#include "crash.h"
#include "ip.h"
#include "log.h"
#include "ltl.h"
#include "mailbox.h"
#include "memory.h"
#include "multiboot.h"
#include "network.h"
#include "page.h"
#include "restart.h"
#include "role.h"
#include "serial.h"
#include "server.h"
#include "settings.h"
#include "smp.h"
#include "web.h"
#include "web_card.h"

/* How often the watchdog is fed while nothing happens. */
#define BEAT_MS 100u
/* What training and testing the memory may take; nothing feeds the watchdog then. */
#define START_MS 60000u

/* 16 bits of the key, each half of a word in each of them: no more of it becomes known. */
static uint16_t fold(const uint32_t key[4])
{
	uint32_t word = key[0] ^ key[1] ^ key[2] ^ key[3];

	return (uint16_t)(word ^ word >> 16);
}

/* Everything but the console, which needs no external memory. */
static void start_services(void)
{
	uint32_t key[4] = { 1, 2, 3, 4 };
	struct address address = network_default();
	bool has_address;

	memory_gather_chance(key);
	settings_start();
	multiboot_start();
	boot_application(key);
	settings_apply();
	settings_address(&address);
	network_print(address);
	page_start();
	network_start(address.mac, key);
	has_address = ip_start(&address);
	ltl_start(fold(key));
	server_start();
	mailbox_start();
#ifdef WEB_CARD
	web_card_start();
#endif
	serial_string(has_address ? "shell: enabled\n" : "shell: waits for an address\n");
	serial_string("ready\n");
	boot_confirm();
	multiboot_confirm();
}

static void start(void)
{
	crash_start();
	restart_start();
	log_start();
	board_start();
	watchdog_start(TREBUCHET_WATCHDOG_MS > 0 ? START_MS : 0);
	serial_string("\nTrebuchet " TREBUCHET_VERSION " on " TREBUCHET_BOARD "\nstart: ");
	serial_string(restart_cause_name());
	serial_string("\nfirmware: ");
	serial_string(boot_name());
	serial_string("\n");
	console_log();
	log_debug("start", restart_cause_name());
	if (restart_cause() == RESTART_CRASH || restart_cause() == RESTART_WATCHDOG)
		log_warn("start", "after a failure; the command 'crash' shows the last one kept");
}

int main(void)
{
	bool up;

	start();
	multiboot_check();
	up = memory_start();
	if (up) {
		start_services();
	} else {
		log_error("memory", "the SDRAM does not work; there is only the console");
		/* Golden would only start it again; after three failures it is given up. */
		if (multiboot_is_application())
			restart_now(RESTART_CRASH);
	}
	/* From here on the timer is no cycle counter any more. */
	board_wake_every(BEAT_MS);
	watchdog_start(up ? settings_watchdog_ms() : TREBUCHET_WATCHDOG_MS);
	console_start();
	for (;;) {
		if (up) {
			mailbox_serve();
			smp_serve();
			web_serve();
#ifdef WEB_CARD
			web_card_serve();
#endif
			ltl_serve();
			role_serve();
			ip_serve();
			server_serve();
		}
		console_serve();
		restart_serve();
		watchdog_feed();
		crash_check_stack();
		board_wait();
	}
}
