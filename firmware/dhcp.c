#include "dhcp.h"

#include <string.h>

#include "packet.h"

#define SERVER_PORT 67

/* The BOOTP part of a message, from its first byte on (RFC 2131, 2). */
#define BOOTP (PACKET_UDP + 8)
#define XID (BOOTP + 4)
#define SECS (BOOTP + 8)
#define CIADDR (BOOTP + 12)
#define YIADDR (BOOTP + 16)
#define CHADDR (BOOTP + 28)
#define SERVER_NAME (BOOTP + 44)
#define FILE_NAME (BOOTP + 108)
#define COOKIE (BOOTP + 236)
#define OPTIONS (BOOTP + 240)
#define MAGIC 0x63825363u

/* The longest datagram that we take: Ethernet's. */
#define MAX_DATAGRAM 1500

#define FOR_EVER 0xffffffffu
#define BROADCAST_IP 0xffffffffu
#define LONG_PAUSE 6 /* log2 of how much longer the pauses are after the last try */
/* RFC 2131, 4.4.5: renewing, at least that many seconds between two REQUESTs. */
#define RENEWAL_PAUSE 60u

enum option {
	PAD = 0,
	NETMASK = 1,
	ROUTER = 3,
	HOST_NAME = 12,
	REQUESTED_IP = 50,
	LEASE_TIME = 51,
	OVERLOAD = 52,
	MESSAGE_TYPE = 53,
	SERVER_ID = 54,
	PARAMETERS = 55,
	MAX_SIZE = 57,
	T1 = 58,
	T2 = 59,
	END = 255,
};

/* RFC 2132, 9.3: which fields have options, too. */
enum { IN_FILE = 1, IN_SNAME = 2 };

enum message { DISCOVER = 1, OFFER = 2, REQUEST = 3, ACK = 5, NAK = 6 };

/* Marsaglia's xorshift: shifts only, since the CPU has no multiplier. Never 0. */
static uint32_t next_random(struct dhcp *dhcp)
{
	dhcp->random ^= dhcp->random << 13;
	dhcp->random ^= dhcp->random >> 17;
	dhcp->random ^= dhcp->random << 5;
	return dhcp->random;
}

static void enter_init(struct dhcp *dhcp, uint32_t now_ms, uint32_t wait_ms)
{
	memset(&dhcp->lease, 0, sizeof(dhcp->lease));
	dhcp->state = DHCP_INIT;
	dhcp->due = false;
	dhcp->sent_ms = now_ms;
	dhcp->wait_ms = wait_ms;
}

void dhcp_start(struct dhcp *dhcp, const uint8_t mac[6], uint32_t seed, uint32_t retry_ms,
	uint32_t now_ms)
{
	memset(dhcp, 0, sizeof(*dhcp));
	memcpy(dhcp->mac, mac, sizeof(dhcp->mac));
	dhcp->retry_ms = retry_ms;
	dhcp->second_ms = now_ms;
	dhcp->random = seed ^ packet_get32(mac + 2) ^ 0x9e3779b9u;
	if (dhcp->random == 0)
		dhcp->random = 1;
	for (unsigned i = 0; i < 8; i++) /* boards whose seeds are near each other part */
		next_random(dhcp);
	enter_init(dhcp, now_ms, 0);
}

/* How long to wait for an answer to try 1, 2, …: 1, 2, 4, 8, 64, 64, … times retry_ms, and up to a
 * quarter of that unit more or less, so that boards that start together do not stay together. */
static uint32_t pause_after(struct dhcp *dhcp, unsigned tries)
{
	uint32_t span = 1;
	unsigned shift = tries > DHCP_TRIES ? LONG_PAUSE : tries - 1;

	while (span <= dhcp->retry_ms / 4)
		span <<= 1; /* more than a quarter, at most a half */
	return (dhcp->retry_ms << shift) - span / 2 + (next_random(dhcp) & (span - 1));
}

/* --- what comes in ------------------------------------------------------------------------------ */

/* The options that are read: their codes, and the bytes of a value. */
enum value {
	TYPE_VALUE, SERVER_VALUE, LEASE_VALUE, NETMASK_VALUE, ROUTER_VALUE, T1_VALUE, T2_VALUE, FIELDS_VALUE,
	VALUES,
};

static const struct {
	uint8_t code, bytes;
} values[VALUES] = {
	[TYPE_VALUE] = { MESSAGE_TYPE, 1 }, [SERVER_VALUE] = { SERVER_ID, 4 }, [LEASE_VALUE] = { LEASE_TIME, 4 },
	[NETMASK_VALUE] = { NETMASK, 4 }, [ROUTER_VALUE] = { ROUTER, 4 }, /* the preferred one of a list is the first */
	[T1_VALUE] = { T1, 4 }, [T2_VALUE] = { T2, 4 }, [FIELDS_VALUE] = { OVERLOAD, 1 },
};

struct answer {
	uint32_t yiaddr;
	uint32_t value[VALUES];   /* the first value of each option, 0 if the option is absent */
	uint16_t length[VALUES];  /* bytes of the option */
	uint8_t came;             /* a bit for each option */
};

/* RFC 3396, 7: an option that occurs again is the continuation of the one before. */
static void take_option(struct answer *answer, unsigned code, const uint8_t *data, unsigned length)
{
	for (unsigned i = 0; i < VALUES; i++) {
		if (values[i].code != code)
			continue;
		answer->came |= (uint8_t)(1u << i);
		for (; length > 0; length--)
			if (answer->length[i]++ < values[i].bytes)
				answer->value[i] = answer->value[i] << 8 | *data++;
	}
}

/* Read the options from `at` to before `end`. False unless they come to their END, and each lies before it. */
static bool read_field(struct answer *answer, const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		unsigned code = *at++;

		if (code == END)
			return true;
		if (code == PAD)
			continue;
		if (at == end || (size_t)(end - at) < (size_t)*at + 1)
			return false;
		take_option(answer, code, at + 1, *at);
		at += 1 + *at;
	}
	return false;
}

/*
 * Read the options of a message, in the order of RFC 3396, 5. False unless all their fields are sound, and
 * each option that we read has one value or more.
 */
static bool read_options(struct answer *answer, const uint8_t *frame)
{
	uint32_t fields;

	if (!read_field(answer, frame + OPTIONS, frame + packet_udp_end(frame)))
		return false;
	fields = answer->value[FIELDS_VALUE];
	if (answer->length[FIELDS_VALUE] > 0 && (fields == 0 || fields > (IN_FILE | IN_SNAME)))
		return false;
	if ((fields & IN_FILE) != 0 && !read_field(answer, frame + FILE_NAME, frame + COOKIE))
		return false;
	if ((fields & IN_SNAME) != 0 && !read_field(answer, frame + SERVER_NAME, frame + FILE_NAME))
		return false;
	for (unsigned i = 0; i < VALUES; i++)
		if ((answer->came >> i & 1) != 0 &&
		    (answer->length[i] == 0 || (answer->length[i] & (values[i].bytes - 1u)) != 0))
			return false;
	return true;
}

static bool same_mac(const uint8_t *one, const uint8_t *other)
{
	return memcmp(one, other, PACKET_MAC_BYTES) == 0;
}

/* Is the frame a BOOTP reply to our last message? */
static bool is_reply(const struct dhcp *dhcp, const uint8_t *frame, size_t length)
{
	return packet_is_udp(frame, length, OPTIONS - PACKET_UDP) &&
	       (same_mac(frame, dhcp->mac) || same_mac(frame, packet_broadcast)) &&
	       packet_get16(frame + PACKET_UDP) == SERVER_PORT &&
	       packet_get16(frame + PACKET_UDP + 2) == DHCP_CLIENT_PORT &&
	       packet_get32(frame + BOOTP) >> 8 == 0x020106 && /* reply, Ethernet, 6 bytes */
	       packet_get32(frame + XID) == dhcp->xid &&
	       same_mac(frame + CHADDR, dhcp->mac) &&
	       packet_get32(frame + COOKIE) == MAGIC;
}

/* Ones above zeros, not all and not none: what RFC 950 calls natural else. */
static uint32_t netmask_for(uint32_t ip, uint32_t given)
{
	if (given != 0 && given != 0xffffffffu && (~given & (~given + 1)) == 0)
		return given;
	return ip >> 31 == 0 ? 0xff000000u : ip >> 30 == 2 ? 0xffff0000u : 0xffffff00u;
}

/* RFC 2131, 4.4.5: T1 and T2 as the server says, or half and seven eighths of the lease. */
static void set_times(struct dhcp_lease *lease)
{
	uint32_t seconds = lease->seconds;

	if (lease->t1 == 0 || lease->t1 > lease->t2 || lease->t2 > seconds) {
		lease->t1 = seconds / 2;
		lease->t2 = seconds - seconds / 8;
	}
	if (lease->t1 == 0)
		lease->t1 = 1;
}

static void take_offer(struct dhcp *dhcp, const struct answer *answer)
{
	if (!packet_is_host(answer->yiaddr) || answer->value[SERVER_VALUE] == 0)
		return;
	dhcp->lease.ip = answer->yiaddr;
	dhcp->lease.server = answer->value[SERVER_VALUE];
	dhcp->state = DHCP_REQUESTING;
	dhcp->requests = 0;
	dhcp->due = true;
}

static void take_ack(struct dhcp *dhcp, const struct answer *answer, const uint8_t *frame)
{
	const uint32_t *value = answer->value;
	struct dhcp_lease *lease = &dhcp->lease;

	if (answer->yiaddr != lease->ip || value[LEASE_VALUE] == 0 || value[SERVER_VALUE] == 0)
		return;
	lease->netmask = netmask_for(lease->ip, value[NETMASK_VALUE]);
	lease->gateway = packet_is_host(value[ROUTER_VALUE]) ? value[ROUTER_VALUE] : 0;
	lease->server = value[SERVER_VALUE];
	lease->seconds = value[LEASE_VALUE];
	lease->t1 = value[T1_VALUE];
	lease->t2 = value[T2_VALUE];
	set_times(lease);
	memcpy(dhcp->server_mac, frame + 6, sizeof(dhcp->server_mac));
	dhcp->asked = dhcp->since_request; /* the lease runs from when it was asked for */
	dhcp->state = DHCP_BOUND;
	dhcp->due = false;
	dhcp->tries = 0;
	dhcp->fallen_back = false;
}

static void take_nak(struct dhcp *dhcp, uint32_t now_ms)
{
	/* A server that offers and then refuses must not make us ask as fast as it answers. */
	enter_init(dhcp, now_ms, dhcp->tries == 0 ? 0 : pause_after(dhcp, dhcp->tries));
}

void dhcp_receive(struct dhcp *dhcp, const uint8_t *frame, size_t length, uint32_t now_ms)
{
	struct answer answer;
	uint32_t type;
	bool ours;

	if (dhcp->state == DHCP_INIT || dhcp->state == DHCP_BOUND)
		return; /* nothing was asked */
	if (!is_reply(dhcp, frame, length))
		return;
	memset(&answer, 0, sizeof(answer));
	answer.yiaddr = packet_get32(frame + YIADDR);
	if (!read_options(&answer, frame))
		return;
	type = answer.value[TYPE_VALUE];
	ours = dhcp->state == DHCP_REBINDING || answer.value[SERVER_VALUE] == dhcp->lease.server;
	if (type == OFFER && dhcp->state == DHCP_SELECTING)
		take_offer(dhcp, &answer);
	else if (type == ACK && dhcp->state != DHCP_SELECTING && ours)
		take_ack(dhcp, &answer, frame);
	else if (type == NAK && dhcp->state != DHCP_SELECTING && ours)
		take_nak(dhcp, now_ms);
}

/* --- what goes out ------------------------------------------------------------------------------ */

static uint8_t *put_option32(uint8_t *at, unsigned code, uint32_t value)
{
	at[0] = (uint8_t)code;
	at[1] = 4;
	packet_put32(at + 2, value);
	return at + 6;
}

/* RFC 2131, table 5: what a message in each state carries. */
static size_t build(struct dhcp *dhcp, uint8_t *frame)
{
	static const uint8_t options[] = {
		MESSAGE_TYPE, 1, REQUEST, MAX_SIZE, 2, MAX_DATAGRAM >> 8, MAX_DATAGRAM & 0xff,
		PARAMETERS, 2, NETMASK, ROUTER,
	};
	bool renews = dhcp->state >= DHCP_BOUND;
	uint32_t own = renews ? dhcp->lease.ip : 0;
	bool unicast = dhcp->state == DHCP_RENEWING;
	uint8_t *at = frame + OPTIONS;

	memset(frame, 0, DHCP_FRAME_BYTES);
	packet_put32(frame + BOOTP, 0x01010600); /* request, Ethernet, 6 bytes, no hops */
	packet_put32(frame + XID, dhcp->xid);
	if (dhcp->state == DHCP_SELECTING)
		dhcp->secs = dhcp->asked > 0xffff ? 0 : (uint16_t)dhcp->asked;
	packet_put16(frame + SECS, renews ? 0 : dhcp->secs);
	/* The flag BROADCAST stays 0: we take answers to an address that we do not have yet. */
	packet_put32(frame + CIADDR, own);
	memcpy(frame + CHADDR, dhcp->mac, PACKET_MAC_BYTES);
	packet_put32(frame + COOKIE, MAGIC);
	memcpy(at, options, sizeof(options));
	if (dhcp->state == DHCP_SELECTING)
		at[2] = DISCOVER;
	at += sizeof(options);
	if (dhcp->state == DHCP_REQUESTING) {
		at = put_option32(at, REQUESTED_IP, dhcp->lease.ip);
		at = put_option32(at, SERVER_ID, dhcp->lease.server);
	}
	if (dhcp->name[0] != '\0') {
		at[0] = HOST_NAME;
		at[1] = (uint8_t)strlen(dhcp->name);
		memcpy(at + 2, dhcp->name, at[1]);
		at += 2 + at[1];
	}
	*at = END;
	memcpy(frame, unicast ? dhcp->server_mac : packet_broadcast, PACKET_MAC_BYTES);
	memcpy(frame + 6, dhcp->mac, PACKET_MAC_BYTES);
	packet_put16(frame + PACKET_UDP, DHCP_CLIENT_PORT);
	packet_put16(frame + PACKET_UDP + 2, SERVER_PORT);
	packet_finish_udp(frame, own, unicast ? dhcp->lease.server : BROADCAST_IP,
		DHCP_FRAME_BYTES - PACKET_UDP);
	return DHCP_FRAME_BYTES;
}

/* Whole seconds that have passed since the last call. */
static void count_seconds(struct dhcp *dhcp, uint32_t now_ms)
{
	while (now_ms - dhcp->second_ms >= 1000) {
		dhcp->second_ms += 1000;
		if (dhcp->asked < FOR_EVER)
			dhcp->asked++;
		if (dhcp->since_request < FOR_EVER)
			dhcp->since_request++;
	}
}

static bool waited(const struct dhcp *dhcp, uint32_t now_ms)
{
	return now_ms - dhcp->sent_ms >= dhcp->wait_ms;
}

static void discover(struct dhcp *dhcp)
{
	if (dhcp->tries >= DHCP_TRIES)
		dhcp->fallen_back = true;
	else if (dhcp->tries == 0)
		dhcp->asked = 0;
	if (dhcp->tries <= DHCP_TRIES)
		dhcp->tries++;
	/* The same number for all tries: a slow server's answer to the last one counts, too. */
	if (dhcp->state == DHCP_INIT)
		dhcp->xid = next_random(dhcp);
	dhcp->state = DHCP_SELECTING;
	dhcp->wait_ms = pause_after(dhcp, dhcp->tries);
	dhcp->due = true;
}

static void request_again(struct dhcp *dhcp, uint32_t now_ms)
{
	if (dhcp->requests >= DHCP_TRIES) {
		dhcp->tries = DHCP_TRIES; /* as many as there are before the static address is taken */
		enter_init(dhcp, now_ms, 0);
		return;
	}
	dhcp->requests++;
	dhcp->wait_ms = pause_after(dhcp, dhcp->requests);
	dhcp->due = true;
}

/* With a lease: ask again when T1 and T2 are over, and halfway to the next of these times. */
static void renew(struct dhcp *dhcp, uint32_t now_ms)
{
	const struct dhcp_lease *lease = &dhcp->lease;
	enum dhcp_state state = dhcp->asked >= lease->t2 ? DHCP_REBINDING :
				dhcp->asked >= lease->t1 ? DHCP_RENEWING : DHCP_BOUND;
	uint32_t left;

	if (lease->seconds == FOR_EVER)
		return;
	if (dhcp->asked >= lease->seconds) {
		enter_init(dhcp, now_ms, 0);
		return;
	}
	if (state == DHCP_BOUND)
		return;
	left = (state == DHCP_RENEWING ? lease->t2 : lease->seconds) - dhcp->asked;
	if (state == dhcp->state && (dhcp->since_request < RENEWAL_PAUSE || dhcp->since_request < left))
		return;
	if (dhcp->state == DHCP_BOUND)
		dhcp->xid = next_random(dhcp);
	dhcp->state = state;
	dhcp->due = true;
}

size_t dhcp_tick(struct dhcp *dhcp, uint32_t now_ms, uint8_t frame[DHCP_FRAME_BYTES])
{
	count_seconds(dhcp, now_ms);
	if (dhcp_has_lease(dhcp))
		renew(dhcp, now_ms);
	if (dhcp->state == DHCP_REQUESTING && (dhcp->due || waited(dhcp, now_ms)))
		request_again(dhcp, now_ms);
	if (dhcp->state <= DHCP_SELECTING && waited(dhcp, now_ms))
		discover(dhcp);
	if (!dhcp->due)
		return 0;
	dhcp->due = false;
	dhcp->sent_ms = now_ms;
	if (dhcp->state >= DHCP_REQUESTING)
		dhcp->since_request = 0;
	return build(dhcp, frame);
}

bool dhcp_listens(const struct dhcp *dhcp, uint32_t now_ms)
{
	return dhcp->state != DHCP_INIT && dhcp->state != DHCP_BOUND && now_ms - dhcp->sent_ms < DHCP_LISTEN_MS;
}

bool dhcp_has_lease(const struct dhcp *dhcp)
{
	return dhcp->state >= DHCP_BOUND;
}

uint32_t dhcp_lease_left(const struct dhcp *dhcp)
{
	if (!dhcp_has_lease(dhcp))
		return 0;
	if (dhcp->lease.seconds == FOR_EVER)
		return FOR_EVER;
	return dhcp->lease.seconds > dhcp->asked ? dhcp->lease.seconds - dhcp->asked : 0;
}

const char *dhcp_state_name(enum dhcp_state state)
{
	static const char *const names[] = {
		"init", "selecting", "requesting", "bound", "renewing", "rebinding",
	};

	return names[state];
}
