#include "network.h"

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>

#include "serial.h"
#include "text.h"

struct address network_default(void)
{
	struct address address = {
		.mac = (uint64_t)TREBUCHET_MAC_HIGH << 32 | (uint32_t)TREBUCHET_MAC_LOW,
		.ip = (uint32_t)TREBUCHET_IP,
#ifdef TREBUCHET_DHCP
		.dhcp = TREBUCHET_DHCP != 0,
#endif
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

void network_start(uint64_t mac, const uint32_t key[4])
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
	trebuchet_shell_mac_write(network_wire_order(mac));
#else
	(void)mac;
#endif
}

void network_use(uint32_t ip)
{
#ifdef TREBUCHET_SHELL_BASE
	trebuchet_shell_ip_write(ip);
	trebuchet_shell_enable_write(ip != 0);
#else
	(void)ip;
#endif
#ifdef TREBUCHET_TCP_BASE
	trebuchet_tcp_abort_all_write(0);
	trebuchet_tcp_enable_write(1);
#endif
}

void network_drain(void)
{
#ifdef TREBUCHET_TCP_BASE
	trebuchet_tcp_enable_write(0);
	trebuchet_tcp_abort_all_write(1);
#endif
}

bool network_is_idle(void)
{
#ifdef TREBUCHET_TCP_BASE
	return trebuchet_tcp_idle_read() != 0;
#else
	return true;
#endif
}

void network_print(struct address address)
{
	char line[80];
	struct text text = text_in(line, sizeof(line) - 1);

	text_plain(&text, "mac ");
	text_mac(&text, address.mac);
	text_plain(&text, ", ip ");
	if (address.dhcp)
		text_plain(&text, "by DHCP, or ");
	text_ip(&text, address.ip);
#ifdef TREBUCHET_TCP_BASE
	text_plain(&text, "\ntcp: ");
	text_unsigned(&text, trebuchet_tcp_sessions_read());
	text_plain(&text, " sessions");
#endif
	text_char(&text, '\n');
	serial_string(text_string(&text));
}
