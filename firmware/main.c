/* Trebuchet's firmware: brings the board up, then serves its status page. */
#include <stdio.h>

#include <generated/soc.h>

#include "board.h"
#include "ltl.h"
#include "mailbox.h"
#include "memory.h"
#include "network.h"
#include "page.h"

int main(void)
{
	uint32_t key[4] = { 1, 2, 3, 4 };
	struct address address = network_default();

	board_start();
	printf("\nTrebuchet %s on %s\n", TREBUCHET_VERSION, TREBUCHET_BOARD);
	if (!memory_start()) {
		printf("error: the SDRAM does not work; stopped\n");
		for (;;)
			board_wait();
	}
	memory_gather_chance(key);
	network_print(address);
	page_start();
	network_start(address, key);
	ltl_start();
	mailbox_start();
	printf("shell: enabled\nready\n");
	for (;;) {
		mailbox_serve();
		ltl_serve();
		board_wait();
	}
}
