#include "multiboot_port.h"

#include <generated/csr.h>

/*
 * If nothing happens, the watchdog will. An empty loop would keep the bus from the write that starts
 * it all, which waits in a buffer; a read waits for it (restart.c).
 */
void multiboot_port_wait(void)
{
	for (;;)
		ctrl_scratch_read();
}
