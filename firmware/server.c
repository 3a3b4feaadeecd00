#include "server.h"

#include <stdbool.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "board.h"
#include "ip.h"
#include "log.h"
#include "log_status.h"
#include "network.h"
#include "nic.h"
#include "packet.h"
#include "settings.h"

#ifdef TREBUCHET_TCP_CONNECT_ADDR

/* Where what the server sends goes to. */
#ifdef TREBUCHET_SMP_SERVICE
#define SERVICE TREBUCHET_SMP_SERVICE
#else
#define SERVICE TREBUCHET_MAILBOX_SERVICE
#endif

/* Pauses between two tries: the first, and what they double to. */
#define FIRST_PAUSE_MS 1000u
#define LAST_PAUSE_MS 64000u
/* RFC 1122, 2.3.2.1: ARP is asked once a second. */
#define ASK_MS 1000u
#define ASKS 3u
/* The engine takes a request at once; and a SYN that nobody answers ends sooner. */
#define OPENING_MS 120000u
/* Local ports, the dynamic ones (RFC 6335, 6). */
#define FIRST_PORT 49152u
#define PORTS 16384u

/* The engine's (cores/tcp/connect.py). */
enum { CONNECT_ASKED = 1, CONNECT_REFUSED, CONNECT_OPENING, CONNECT_OPEN, CONNECT_CLOSED };

static enum { OFF, RESTING, ASKING, OPENING, OPEN } state;
static struct config_server server;
static uint32_t hop;         /* whose MAC address is asked for: the server's or the gateway's */
static uint32_t since_ms;    /* when the state began */
static uint32_t pause_ms;
static unsigned asks;
static uint16_t port;

static void enter(int next)
{
	state = next;
	since_ms = board_uptime_ms();
}

static void report(uint8_t status)
{
	char line[24];
	struct text text = text_in(line, sizeof(line) - 1);

	text_ip(&text, server.ip);
	text_char(&text, ':');
	text_unsigned(&text, server.port);
	log_status("server", text_string(&text), status);
}

static void rest(uint8_t status)
{
	report(status);
	pause_ms = pause_ms == 0 ? FIRST_PAUSE_MS : 2 * pause_ms;
	if (pause_ms > LAST_PAUSE_MS)
		pause_ms = LAST_PAUSE_MS;
	enter(RESTING);
}

void server_start(void)
{
	if (!config_find_server(settings(), &server))
		return;
	port = (uint16_t)(board_cycles() % PORTS);
	ip_listen();
	enter(RESTING);
}

static void ask(void)
{
	uint32_t frame[(PACKET_ARP_BYTES + 3) / 4];
	uint8_t mac[PACKET_MAC_BYTES];

	hop = ip_next_hop(server.ip);
	ip_mac(mac);
	packet_arp_request((uint8_t *)frame, mac, ip_current(), hop);
	nic_send(frame, PACKET_ARP_BYTES);
	asks++;
	enter(ASKING);
}

void server_take_frame(const uint8_t *frame, size_t length)
{
	uint64_t mac = 0;

	if (state != ASKING || !packet_is_arp_reply(frame, length, hop))
		return;
	for (unsigned i = 0; i < PACKET_MAC_BYTES; i++)
		mac |= (uint64_t)frame[PACKET_ARP_SENDER + i] << (8 * i);
	trebuchet_tcp_connect_mac_write(mac);
	trebuchet_tcp_connect_ip_write(server.ip);
	trebuchet_tcp_connect_port_write(server.port);
	trebuchet_tcp_connect_local_write(FIRST_PORT + port);
	trebuchet_tcp_connect_service_write(server.own == TREBUCHET_MAILBOX_PORT ?
		TREBUCHET_MAILBOX_SERVICE : SERVICE);
	trebuchet_tcp_connect_write(1);
	port = (uint16_t)((port + 1) % PORTS);
	enter(OPENING);
}

static void watch(uint32_t waited)
{
	switch (trebuchet_tcp_connect_state_read()) {
	case CONNECT_OPEN:
		if (state == OPENING) {
			report(TREBUCHET_STATUS_OK);
			pause_ms = 0;
			enter(OPEN);
		}
		return;
	case CONNECT_REFUSED:
		rest(TREBUCHET_STATUS_NO_ROOM);
		return;
	case CONNECT_CLOSED:
		rest(state == OPEN ? TREBUCHET_STATUS_ABORTED : TREBUCHET_STATUS_NO_ANSWER);
		return;
	default:
		if (waited >= OPENING_MS)
			rest(TREBUCHET_STATUS_NO_ANSWER);
	}
}

void server_serve(void)
{
	uint32_t waited = board_uptime_ms() - since_ms;

	switch (state) {
	case OFF:
		return;
	case RESTING:
		asks = 0;
		if (waited >= pause_ms && ip_current() != 0 && !nic_busy())
			ask();
		return;
	case ASKING:
		if (waited < ASK_MS || nic_busy())
			return;
		if (asks < ASKS)
			ask();
		else
			rest(TREBUCHET_STATUS_NO_ANSWER);
		return;
	default:
		watch(waited);
	}
}

#else /* an engine that opens no connections */

void server_start(void)
{
	struct config_server server;

	if (config_find_server(settings(), &server))
		log_status("config", "server", TREBUCHET_STATUS_NOT_BUILT_IN);
}

void server_serve(void)
{
}

void server_take_frame(const uint8_t *frame, size_t length)
{
	(void)frame;
	(void)length;
}

#endif
