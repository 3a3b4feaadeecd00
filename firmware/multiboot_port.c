#include "multiboot_port.h"

void multiboot_port_wait(void)
{
	for (;;) /* if nothing happens, the watchdog will */
		__asm__ volatile("");
}
