/*
 * main.c on this machine, on what boot_host.c has of the board. Memory does as the test says; the
 * services that main.c starts are nothing here.
 */
#include "boot_host.c"

#include "flash.h"

#define main firmware_main
#include "main.c"
#undef main

/* How host_main() ends when the firmware goes on for ever; boot_host.c has the other ends. */
enum { RUNS = 4, HANGS };

/* The memory: does not come up, comes up, or is never done. */
enum { FAILS, WORKS, NEVER_DONE };
uint32_t host_memory;
/* How often the network was started. */
uint32_t host_network;

bool memory_start(void)
{
	if (host_memory == NEVER_DONE)
		longjmp(leave, HANGS);
	return host_memory == WORKS;
}

void memory_gather_chance(uint32_t key[4])
{
	(void)key;
}

void settings_start(void)
{
	flash_start();
}

void settings_apply(void)
{
}

void settings_address(struct address *address)
{
	(void)address;
}

uint32_t settings_watchdog_ms(void)
{
	return TREBUCHET_WATCHDOG_MS;
}

struct address network_default(void)
{
	return (struct address){ 0 };
}

void network_print(struct address address)
{
	(void)address;
}

void network_start(uint64_t mac, const uint32_t key[4])
{
	(void)mac, (void)key;
	host_network++;
}

bool ip_start(const struct address *address)
{
	(void)address;
	return true;
}

void ip_serve(void)
{
}

void page_start(void)
{
}

void ltl_start(uint16_t chance)
{
	(void)chance;
}

void ltl_serve(void)
{
}

void role_serve(void)
{
}

void server_start(void)
{
}

void smp_serve(void)
{
}

void server_serve(void)
{
}

void mailbox_start(void)
{
}

void web_serve(void)
{
}

void mailbox_serve(void)
{
}

void serial_string(const char *string)
{
	(void)string;
}

void console_log(void)
{
}

void console_start(void)
{
}

void console_serve(void)
{
}

void crash_start(void)
{
}

void crash_check_stack(void)
{
}

void log_start(void)
{
}

void board_start(void)
{
}

void board_wake_every(uint32_t milliseconds)
{
	(void)milliseconds;
}

void board_wait(void)
{
	longjmp(leave, RUNS);
}

/* The CPU begins, as after host_begin(), and runs until one of the ends. */
int host_main(void)
{
	int left = setjmp(leave);

	if (left == 0) {
		cause = RESTART_NONE;
		requested = false;
		host_uptime_ms = 0;
		firmware_main();
	}
	return left;
}
