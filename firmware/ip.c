#include "ip.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "buffer.h"
#include "command.h"
#include "dhcp.h"
#include "discover.h"
#include "host.h"
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

/* RFC 5227, 2.4 (c): the address is kept, and announced at most that often (DEFEND_INTERVAL). */
#define DEFEND_MS 10000

enum source { NONE, STATIC, BY_DHCP, FALLBACK };

static struct address own; /* what is configured */
static struct dhcp client;
static bool client_on;
static uint32_t current; /* the address in use, 0: none */
static enum source source;
static bool draining, announcing;
static uint16_t heard = DHCP_CLIENT_PORT; /* UDP port that the frame port listens for */
static uint32_t drain_ms, busy_ms; /* when draining began; when the engine was last seen busy */
static bool defended;
static uint32_t defended_ms; /* the last announcement because of a conflict, if there was one */

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
	board_wake_every(POLL_MS);
}

bool ip_start(const struct address *address)
{
	uint8_t mac[PACKET_MAC_BYTES];

	own = *address;
	client_on = own.dhcp && nic_exists();
	ip_mac(mac);
	host_start(mac);
	nic_start(DHCP_CLIENT_PORT);
	if (!client_on) {
		current = own.ip;
		source = STATIC;
		network_use(current);
		return true;
	}
	/* The cycle counter is no secret, unlike the key of the sequence numbers. */
	dhcp_start(&client, mac, board_cycles(), TREBUCHET_DHCP_RETRY_MS, board_uptime_ms());
	memcpy(client.name, own.name, sizeof(client.name));
	ip_listen();
	return false;
}

/* Another station uses our address: announce that it is ours. */
static void defend(const uint8_t *frame)
{
	char line[64];
	struct text text = text_in(line, sizeof(line) - 1);
	uint64_t mac = (uint64_t)packet_get16(frame + PACKET_ARP_SENDER) << 32 |
		       packet_get32(frame + PACKET_ARP_SENDER + 2);

	if (defended && board_uptime_ms() - defended_ms < DEFEND_MS)
		return;
	defended = true;
	defended_ms = board_uptime_ms();
	announcing = true;
	text_ip(&text, current);
	text_plain(&text, " is also used by ");
	text_mac(&text, mac);
	log_warn("ip", text_string(&text));
}

static void receive(void)
{
	uint8_t *frame = (uint8_t *)buffer; /* nobody has anything there between two parts' turns */
	size_t length = nic_receive(buffer);
	uint8_t mac[PACKET_MAC_BYTES];

	if (length == 0)
		return;
	ip_mac(mac);
	if (current != 0 && packet_is_conflict(frame, length, current, mac))
		defend(frame);
	if (client_on)
		dhcp_receive(&client, frame, length, board_uptime_ms());
	server_take_frame(frame, length);
	ltl_take_frame(frame, length);
	host_take_frame(frame, length, current, netmask(), board_uptime_ms());
	discover_take_frame(frame, length, &own, current, netmask(), board_uptime_ms()); /* writes over it */
	board_wake(); /* the next one, or the answer */
}

static void send(void)
{
	uint32_t frame[(DHCP_FRAME_BYTES + 3) / 4];
	uint8_t mac[PACKET_MAC_BYTES];
	size_t length = 0;

	if (nic_busy())
		return;
	if (announcing && current != 0) {
		ip_mac(mac);
		packet_arp_request((uint8_t *)frame, mac, current, current);
		length = PACKET_ARP_BYTES;
		announcing = false;
	} else if (client_on) {
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

/*
 * The frame port takes frames of any address for one UDP port only: DHCP's until there is an address and while a
 * server may answer, else that of discovery. Frames to our own address come whatever their port.
 */
static void choose_port(void)
{
	bool dhcp = current == 0 || (client_on && dhcp_listens(&client, board_uptime_ms()));
	uint16_t port = dhcp ? DHCP_CLIENT_PORT : DISCOVER_PORT;

	if (port != heard)
		nic_listen(port);
	heard = port;
}

void ip_serve(void)
{
	host_serve(current, board_uptime_ms());
	if (host_busy())
		board_wake(); /* the port has no interrupt for what was sent */
	else
		receive();
	send();
	if (client_on)
		change();
	choose_port();
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
