#include "network.h"

#include <stdio.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>

#include "text.h"

struct address network_default(void)
{
	struct address address = {
		.mac = (uint64_t)TREBUCHET_MAC_HIGH << 32 | (uint32_t)TREBUCHET_MAC_LOW,
		.ip = (uint32_t)TREBUCHET_IP,
	};

	return address;
}

uint64_t network_wire_order(uint64_t mac)
{
	uint64_t swapped = 0;

	for (int byte = 0; byte < 6; byte++)
		swapped = swapped << 8 | (mac >> (8 * byte) & 0xff);
	return swapped;
}

void network_start(struct address address, const uint32_t key[4])
{
#ifdef TREBUCHET_TCP_BASE
	trebuchet_tcp_isn_key_0_write(key[0]);
	trebuchet_tcp_isn_key_1_write(key[1]);
	trebuchet_tcp_isn_key_2_write(key[2]);
	trebuchet_tcp_isn_key_3_write(key[3]);
#else
	(void)key;
#endif
#ifdef TREBUCHET_SHELL_BASE
	trebuchet_shell_mac_write(network_wire_order(address.mac));
	trebuchet_shell_ip_write(address.ip);
	trebuchet_shell_enable_write(1);
#else
	(void)address;
#endif
}

void network_print(struct address address)
{
	char line[64];
	struct text text = text_in(line, sizeof(line) - 1);

	text_plain(&text, "mac ");
	text_mac(&text, address.mac);
	text_plain(&text, ", ip ");
	text_ip(&text, address.ip);
	line[text.length] = '\0';
	printf("%s\n", line);
#ifdef TREBUCHET_TCP_BASE
	printf("tcp: %lu sessions\n", (unsigned long)trebuchet_tcp_sessions_read());
#endif
}
