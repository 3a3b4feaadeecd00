#include "ltl.h"

#include <generated/trebuchet_regs.h>

#ifdef TREBUCHET_LTL_BASE

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_peers.h>

#include "board.h"
#include "dhcp.h"
#include "greeting.h"
#include "ip.h"
#include "log.h"
#include "network.h"
#include "nic.h"
#include "packet.h"
#include "role.h"
#include "serial.h"
#include "settings.h"
#include "text.h"

#define COMMAND_GO (1u << TREBUCHET_LTL_COMMAND_GO_OFFSET)
#define COMMAND_OPEN (1u << TREBUCHET_LTL_COMMAND_OPEN_OFFSET)
#define COMMAND_RECEIVE (1u << TREBUCHET_LTL_COMMAND_RECEIVE_OFFSET)
#define FAILURE_VALID (1u << TREBUCHET_LTL_FAILURE_VALID_OFFSET)

/* Virtual channels, and the two entries that a peer has in each table. */
#define REQUESTS 0u
#define REPLIES 1u
#define ENTRIES 2u

/* How long a failure may wait until it is seen. */
#define POLL_MS 10u

/* A greeting goes to the port for which the frame port listens, and comes from LTL's. */
#define FROM_PORT 0xc17au
#define PAYLOAD (PACKET_UDP + 8)

/* How it stands with each peer, by number; those without an entry in the settings are not there. */
static struct {
	bool there;
	struct peer peer;
	struct greeting greeting;
} peered[TREBUCHET_LTL_PEERS + 1];

/* The engine must not see its registers change while it carries out a command. */
static void command(uint32_t what, uint32_t entry)
{
	trebuchet_ltl_command_write(COMMAND_GO | what | entry << TREBUCHET_LTL_COMMAND_INDEX_OFFSET);
	while (trebuchet_ltl_busy_read() != 0)
		;
}

/* Peer `number`: the configuration's, or that of the network the firmware was built for. */
static bool find_peer(uint32_t number, struct peer *peer)
{
	if (config_find_peer(settings(), number, peer))
		return true;
	if (number > TREBUCHET_PEERS)
		return false;
	*peer = peers[number - 1];
	return true;
}

/*
 * Carry out a command for both channels of a peer. The port of the other end is the same everywhere:
 * what it is after reset. Messages from before a restart may still wait at the other end, so that who
 * sends begins with no credit, and asks.
 */
static void command_peer(uint32_t what, uint32_t number)
{
	const struct peer *peer = &peered[number].peer;
	uint64_t mac = (uint64_t)peer->mac_high << 32 | peer->mac_low;

	trebuchet_ltl_peer_mac_write(network_wire_order(mac));
	trebuchet_ltl_peer_ip_write(peer->ip);
	trebuchet_ltl_incarnation_write(greeting_incarnation(&peered[number].greeting));
	trebuchet_ltl_rto_write(peer->timeout_us);
	trebuchet_ltl_credit_write(what & COMMAND_RECEIVE ? TREBUCHET_LTL_WINDOW : 0);
	for (uint32_t vc = REQUESTS; vc <= REPLIES; vc++) {
		trebuchet_ltl_peer_connection_write(ENTRIES * peer->theirs + vc);
		trebuchet_ltl_vc_write(vc);
		command(what, ENTRIES * number + vc);
	}
}

/* Whether jobs may go to a peer. */
static void call_peer(uint32_t number, bool may)
{
	uint32_t enable = trebuchet_cluster_enable_read() & ~(1u << number);

	trebuchet_cluster_enable_write(may ? enable | 1u << number : enable);
}

/*
 * No more jobs go to a peer, and those that it has are answered ABORTED now: their calls or replies
 * are lost. In this order, or the slot could take another job after its reset.
 */
static void leave_peer(uint32_t number)
{
	char name[8];
	struct text text = text_in(name, sizeof(name) - 1);

	call_peer(number, false);
	text_plain(&text, "peer");
	text_unsigned(&text, number);
	role_reset(role_find(text_string(&text)));
}

static void tell(enum log_level level, const char *what, uint32_t number, const char *how)
{
	char line[64];
	struct text text = text_in(line, sizeof(line) - 1);

	text_plain(&text, what);
	text_unsigned(&text, number);
	text_plain(&text, " (");
	text_ip(&text, peered[number].peer.ip);
	text_plain(&text, how);
	log_write(level, "ltl", text_string(&text));
}

void ltl_start(uint16_t chance)
{
	uint32_t count = 0;
	char line[32];
	struct text text = text_in(line, sizeof(line) - 1);

	trebuchet_ltl_tick_cycles_write(TREBUCHET_CYCLES_PER_US);
	trebuchet_ltl_dscp_write(TREBUCHET_LTL_DSCP);
	for (uint32_t number = 1; number <= TREBUCHET_LTL_PEERS; number++) {
		if (!find_peer(number, &peered[number].peer))
			continue;
		count++;
		peered[number].there = true;
		greeting_start(&peered[number].greeting, chance, board_uptime_ms());
	}
	trebuchet_ltl_enable_write(1);
	trebuchet_cluster_enable_write(1); /* our own role */
	if (count > 0) {
		ip_listen();
		board_wake_every(POLL_MS);
	}
	text_plain(&text, "ltl: ");
	text_unsigned(&text, count);
	text_plain(&text, " peers\n");
	serial_string(text_string(&text));
}

/* Which peer sent this greeting to us; 0: it is none. */
static uint32_t sender(const uint8_t *frame, size_t length)
{
	const uint8_t *from = frame + PACKET_MAC_BYTES;
	uint8_t mac[PACKET_MAC_BYTES];

	ip_mac(mac);
	if (!packet_is_udp(frame, length, 8 + GREETING_BYTES) ||
	    memcmp(frame, mac, PACKET_MAC_BYTES) != 0 ||
	    packet_get32(frame + PACKET_IP + 16) != ip_current() ||
	    packet_get16(frame + PACKET_UDP) != FROM_PORT ||
	    packet_get16(frame + PACKET_UDP + 2) != DHCP_CLIENT_PORT)
		return 0;
	for (uint32_t number = 1; number <= TREBUCHET_LTL_PEERS; number++) {
		const struct peer *peer = &peered[number].peer;

		if (peered[number].there && packet_get16(from) == peer->mac_high &&
		    packet_get32(from + 2) == peer->mac_low &&
		    packet_get32(frame + PACKET_IP + 12) == peer->ip)
			return number;
	}
	return 0;
}

void ltl_take_frame(const uint8_t *frame, size_t length)
{
	uint32_t number = sender(frame, length);
	struct greeting_news news;
	bool was_joined;

	if (number == 0)
		return;
	was_joined = peered[number].greeting.joined;
	news = greeting_take(&peered[number].greeting, frame + PAYLOAD);
	if (news.agreed) {
		if (was_joined)
			tell(LOG_WARN, "peer ", number, ") is new");
		leave_peer(number);
		command_peer(0, number);
		command_peer(COMMAND_OPEN | COMMAND_RECEIVE, number);
	}
	if (news.joined) {
		command_peer(COMMAND_OPEN, number);
		call_peer(number, peered[number].peer.called);
		tell(LOG_INFO, "peer ", number, ") joined");
	}
}

static void send_greeting(uint32_t number)
{
	const struct peer *peer = &peered[number].peer;
	uint32_t words[(PAYLOAD + GREETING_BYTES + 3) / 4];
	uint8_t *frame = (uint8_t *)words;

	packet_put16(frame, (uint16_t)peer->mac_high);
	packet_put32(frame + 2, peer->mac_low);
	ip_mac(frame + PACKET_MAC_BYTES);
	packet_put16(frame + PACKET_UDP, FROM_PORT);
	packet_put16(frame + PACKET_UDP + 2, DHCP_CLIENT_PORT);
	greeting_put(&peered[number].greeting, frame + PAYLOAD, board_uptime_ms());
	packet_finish_udp(frame, ip_current(), peer->ip, 8 + GREETING_BYTES);
	nic_send(words, PAYLOAD + GREETING_BYTES);
}

/* Send what is due while there is room. Peers take turns: one that asks a lot keeps out none. */
static void greet(void)
{
	static uint32_t number;

	for (uint32_t k = 0; k < TREBUCHET_LTL_PEERS && !nic_busy() && ip_current() != 0; k++) {
		number = number % TREBUCHET_LTL_PEERS + 1;
		if (peered[number].there &&
		    greeting_is_due(&peered[number].greeting, board_uptime_ms()))
			send_greeting(number);
	}
}

/* What is still open is closed with the next greeting. */
static void lose(uint32_t entry)
{
	uint32_t number = entry / ENTRIES;

	tell(LOG_WARN, entry % ENTRIES == REQUESTS ? "requests to peer " : "replies to peer ", number,
		") failed");
	leave_peer(number);
	greeting_again(&peered[number].greeting, board_uptime_ms());
}

void ltl_serve(void)
{
	for (;;) {
		uint32_t failure = trebuchet_ltl_failure_read();

		if ((failure & FAILURE_VALID) == 0)
			break;
		/* Only entries of peers have been opened, so only they fail. */
		lose(failure & ((1u << TREBUCHET_LTL_FAILURE_INDEX_WIDTH) - 1));
		trebuchet_ltl_failure_next_write(1);
	}
	greet();
}

#else /* a shell without LTL: this board is alone */

void ltl_start(uint16_t chance)
{
	(void)chance;
}

void ltl_take_frame(const uint8_t *frame, size_t length)
{
	(void)frame;
	(void)length;
}

void ltl_serve(void)
{
}

#endif
