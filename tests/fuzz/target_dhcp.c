// firmware: dhcp packet
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "dhcp.h"
#include "packet.h"

/*
 * An input is a state to bring the client to, and what it then gets: a whole frame, or else the
 * options of a message around which everything is right (a mutated frame has no right checksum).
 */
#define STATE 0x07
#define WHOLE_FRAME 0x08
#define ANOTHER_ADDRESS 0x10

#define BOOTP (PACKET_UDP + 8)
#define OPTIONS (BOOTP + 240)
#define MAX_FRAME 1514

const char *const fuzz_dictionary[] = {
	"\x35\x01\x02", "\x35\x01\x05", "\x35\x01\x06", "\x36\x04\x0a\x01\x01\x01", "\x33\x04\x01\x01\x01\x01",
	"\x01\x04\xff\xff\xff\x80", "\x03\x08\x0a\x01\x01\x02\x0a\x01\x01\x03", "\x3a\x04\x7f\x01\x01\x01",
	"\x3b\x04\x7f\x01\x01\x02", "\x34\x01\x01", "\x34\x01\x02", "\x34\x01\x03", "\x33\x02\x01\x01", "\x33\x04\xff\xff\xff\xff", "\xff",
	NULL,
};

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 };
static const uint8_t right_options[] = {
	53, 1, 5, 54, 4, 10, 0, 0, 1, 51, 4, 0, 0, 0, 100, 1, 4, 255, 255, 255, 0, 255,
};

/* A reply whose fields are right, with these options; returns its length. */
static size_t reply(uint8_t *frame, const struct dhcp *dhcp, const char *options, size_t length)
{
	static const uint8_t cookie[] = { 0x63, 0x82, 0x53, 0x63 };

	memset(frame, 0, OPTIONS);
	memcpy(frame, mac, sizeof(mac));
	packet_put16(frame + PACKET_UDP, 67);
	packet_put16(frame + PACKET_UDP + 2, 68);
	packet_put32(frame + BOOTP, 0x02010600);
	packet_put32(frame + BOOTP + 4, dhcp->xid);
	packet_put32(frame + BOOTP + 16, 0x0a00004d);
	memcpy(frame + BOOTP + 28, mac, sizeof(mac));
	memcpy(frame + BOOTP + 236, cookie, sizeof(cookie));
	memcpy(frame + OPTIONS, options, length);
	packet_finish_udp(frame, 0x0a000001, 0xffffffff, OPTIONS - PACKET_UDP + length);
	return OPTIONS + length;
}

static void check(struct dhcp *dhcp, uint32_t now)
{
	const struct dhcp_lease *lease = &dhcp->lease;
	uint8_t frame[DHCP_FRAME_BYTES];

	require(dhcp->state <= DHCP_REBINDING);
	if (dhcp_has_lease(dhcp)) {
		require(lease->ip == 0x0a00004d && lease->server != 0 && lease->seconds != 0);
		require(lease->t1 >= 1 && lease->t1 <= lease->t2 && lease->t2 <= lease->seconds);
		require(lease->netmask != 0 && (~lease->netmask & (~lease->netmask + 1)) == 0);
		require(dhcp_lease_left(dhcp) <= lease->seconds);
	} else {
		require(dhcp_lease_left(dhcp) == 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		size_t length = dhcp_tick(dhcp, now + 700 * i, frame);

		require(length == 0 || (length == DHCP_FRAME_BYTES && packet_is_udp(frame, length, 308)));
		require(strlen(dhcp_state_name(dhcp->state)) > 0);
	}
}

/* Bring a new client to a state by proper answers. */
static uint32_t bring_to(struct dhcp *dhcp, enum dhcp_state state)
{
	uint8_t frame[MAX_FRAME];
	char options[sizeof(right_options)];
	uint32_t now = 0;

	dhcp_start(dhcp, mac, 1, 1000, now);
	if (state == DHCP_INIT)
		return now;
	dhcp_tick(dhcp, now, frame);
	memcpy(options, right_options, sizeof(options));
	for (char type = 2; dhcp->state < state && type <= 5; type = (char)(type + 3)) {
		size_t length;

		options[2] = type;
		length = reply(frame, dhcp, options, sizeof(options));
		dhcp_receive(dhcp, frame, length, now);
		dhcp_tick(dhcp, now, frame);
	}
	while (dhcp->state < state) {
		now += 1000;
		dhcp_tick(dhcp, now, frame);
	}
	require(dhcp->state == state);
	return now;
}

void fuzz_one(const char *data, size_t length)
{
	struct dhcp dhcp;
	unsigned how = length > 0 ? (uint8_t)data[0] : 0;
	uint32_t now = bring_to(&dhcp, (enum dhcp_state)((how & STATE) % 6));

	if (length > 0) {
		data++;
		length--;
	}
	if (how & WHOLE_FRAME) {
		dhcp_receive(&dhcp, (const uint8_t *)data, length, now);
	} else {
		uint8_t frame[MAX_FRAME];
		size_t room = MAX_FRAME - OPTIONS;
		uint8_t *exact; /* ASan knows where it ends */

		length = reply(frame, &dhcp, data, length < room ? length : room);
		if (how & ANOTHER_ADDRESS) {
			packet_put32(frame + BOOTP + 16, 0x0a00004e);
			packet_finish_udp(frame, 0x0a000001, 0xffffffff, length - PACKET_UDP);
		}
		exact = malloc(length);
		require(exact != NULL);
		memcpy(exact, frame, length);
		dhcp_receive(&dhcp, exact, length, now);
		free(exact);
		if (dhcp.lease.ip == 0x0a00004e)
			return; /* an offer of it was taken; that it is not mixed up is for the unit tests */
	}
	check(&dhcp, now);
}
