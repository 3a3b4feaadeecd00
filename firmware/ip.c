#include "ip.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "buffer.h"
#include "command.h"
#include "dhcp.h"
#include "log.h"
#include "ltl.h"
#include "nic.h"
#include "packet.h"
#include "server.h"

/* Pause after the first try (boards/schema.py). */
#ifndef TREBUCHET_DHCP_RETRY_MS
#define TREBUCHET_DHCP_RETRY_MS 1000
#endif

/* How late a frame may be sent. */
#define POLL_MS 50
/* The last RST has left when the engine has been idle that long. */
#define QUIET_MS 10
/* No session needs that long to be reset; the address changes even if one does. */
#define DRAIN_MS 3000

enum source { NONE, STATIC, BY_DHCP, FALLBACK };

static struct address own; /* what is configured */
static struct dhcp client;
static bool client_on, listening;
static uint32_t current; /* the address in use, 0: none */
static enum source source;
static bool draining, announcing;
static uint32_t drain_ms, busy_ms; /* when draining began; when the engine was last seen busy */

static const char *source_name(void)
{
	static const char *const names[] = { "none", "static", "dhcp", "fallback" };

	return names[source];
}

static void report(void)
{
	char line[80];
	struct text text = text_in(line, sizeof(line) - 1);

	text_ip(&text, current);
	text_plain(&text, ", ");
	text_plain(&text, source_name());
	if (source == BY_DHCP) {
		text_plain(&text, " from ");
		text_ip(&text, client.lease.server);
	}
	line[text.length] = '\0';
	log_info("ip", line);
}

void ip_mac(uint8_t mac[PACKET_MAC_BYTES])
{
	for (unsigned i = 0; i < PACKET_MAC_BYTES; i++)
		mac[i] = (uint8_t)(own.mac >> (8 * (PACKET_MAC_BYTES - 1 - i)));
}

uint32_t ip_current(void)
{
	return current;
}

static uint32_t netmask(void)
{
	return source == BY_DHCP ? client.lease.netmask : own.netmask;
}

static uint32_t gateway(void)
{
	return source == BY_DHCP ? client.lease.gateway : own.gateway;
}

/* Without a netmask or a gateway everybody is taken to be on the link. */
uint32_t ip_next_hop(uint32_t to)
{
	return gateway() == 0 || ((to ^ current) & netmask()) == 0 ? to : gateway();
}

void ip_listen(void)
{
	listening = true;
	nic_start(DHCP_CLIENT_PORT);
	board_wake_every(POLL_MS);
}

bool ip_start(const struct address *address)
{
	uint8_t mac[PACKET_MAC_BYTES];

	own = *address;
	client_on = own.dhcp && nic_exists();
	if (!client_on) {
		current = own.ip;
		source = STATIC;
		network_use(current);
		return true;
	}
	ip_mac(mac);
	/* The cycle counter is no secret, unlike the key of the sequence numbers. */
	dhcp_start(&client, mac, board_cycles(), TREBUCHET_DHCP_RETRY_MS, board_uptime_ms());
	memcpy(client.name, own.name, sizeof(client.name));
	ip_listen();
	return false;
}

static void receive(void)
{
	size_t length = nic_receive(buffer); /* nobody has anything there between two parts' turns */

	if (length == 0)
		return;
	if (client_on)
		dhcp_receive(&client, (const uint8_t *)buffer, length, board_uptime_ms());
	server_take_frame((const uint8_t *)buffer, length);
	ltl_take_frame((const uint8_t *)buffer, length);
}

static void send(void)
{
	uint32_t frame[(DHCP_FRAME_BYTES + 3) / 4];
	size_t length;

	if (nic_busy())
		return;
	if (announcing) {
		packet_arp_request((uint8_t *)frame, client.mac, current, current);
		length = PACKET_ARP_BYTES;
		announcing = false;
	} else {
		length = dhcp_tick(&client, board_uptime_ms(), (uint8_t *)frame);
	}
	if (length > 0)
		nic_send(frame, length);
}

/* Reset all sessions; true when they are gone. */
static bool drained(void)
{
	uint32_t now = board_uptime_ms();

	if (!draining) {
		draining = true;
		drain_ms = now;
		network_drain();
	}
	if (!network_is_idle())
		busy_ms = now;
	return now - drain_ms >= DRAIN_MS || (now - busy_ms >= QUIET_MS && now - drain_ms >= QUIET_MS);
}

/* Use what the client has come to. */
static void change(void)
{
	enum source wanted = dhcp_has_lease(&client) ? BY_DHCP : client.fallen_back ? FALLBACK : NONE;
	uint32_t ip = wanted == BY_DHCP ? client.lease.ip : wanted == FALLBACK ? own.ip : 0;
	/* Another lease may have come while sessions were being reset, from the same source. */
	bool news = wanted != source || ip != current;

	if (ip != current && current != 0 && !drained())
		return;
	if (ip != current || draining)
		network_use(ip);
	announcing |= ip != current && ip != 0;
	draining = false;
	current = ip;
	source = wanted;
	if (news)
		report();
}

void ip_serve(void)
{
	if (!listening)
		return;
	receive();
	if (!client_on)
		return;
	send();
	change();
}

static void line(struct text *out, const char *name, uint32_t ip)
{
	text_plain(out, name);
	if (ip == 0)
		text_char(out, '-');
	else
		text_ip(out, ip);
	text_char(out, '\n');
}

uint8_t ip_command(struct words *words, struct text *out)
{
	bool leased = source == BY_DHCP;
	uint32_t left = dhcp_lease_left(&client);

	if (words->count > 1)
		return TREBUCHET_STATUS_BAD_ARGUMENT;
	line(out, "address    ", current);
	line(out, "netmask    ", netmask());
	line(out, "gateway    ", gateway());
	text_plain(out, "source     ");
	text_plain(out, source_name());
	if (client_on) {
		text_plain(out, "\ndhcp       ");
		text_plain(out, dhcp_state_name(client.state));
	}
	if (leased) {
		line(out, "\nserver     ", client.lease.server);
		text_plain(out, "lease left ");
		if (left == 0xffffffffu) {
			text_plain(out, "for ever");
		} else {
			text_unsigned(out, left);
			text_plain(out, " s");
		}
	}
	text_char(out, '\n');
	return TREBUCHET_STATUS_OK;
}
