#include "host.h"

#include <string.h>

#include <generated/soc.h>

#include "bulk.h"
#include "dhcp.h"
#include "discover.h"
#include "nic.h"
#include "reassembly.h"

#ifdef TREBUCHET_HOST /* two frames of full size can wait */

#define ECHO_PORT 7u
#define DISCARD_PORT 9u

#define ICMP_BYTES 8u
enum { ECHO_REPLY = 0, UNREACHABLE = 3, ECHO = 8, TIME_EXCEEDED = 11 };
enum { PROTOCOL_UNREACHABLE = 2, PORT_UNREACHABLE = 3 };
#define REASSEMBLY_TIME 1

/* What an ICMP error quotes at most: the longest header and eight bytes are the least (RFC 1122, 3.2.2). */
#define QUOTE_BYTES 128u
/* RFC 1122, 3.2.2; RFC 1812, 4.3.2.8: so many errors in a row, and then one in each such time. */
#define ERRORS 10u
#define ERROR_MS 100u

/* IPv4 options that are not ignored: datagrams with source routes are dropped (RFC 7126, 4.3 and 4.4). */
enum { OPTIONS_END = 0, NO_OPERATION = 1, LOOSE_ROUTE = 131, STRICT_ROUTE = 137 };

#define MORE_FRAGMENTS 0x2000u
#define IS_FRAGMENT 0x3fffu

/* The answer that waits: its IPv4 payload, two bytes behind a word, and how much of that has been sent. */
static BULK uint32_t payload_words[REASSEMBLY_BYTES / 4 + 1];
static uint8_t *const payload = (uint8_t *)payload_words + 2;
static size_t payload_length, sent;
static uint32_t payload_to;
static uint8_t payload_mac[PACKET_MAC_BYTES], payload_protocol;
static uint16_t id;

static uint8_t mac[PACKET_MAC_BYTES];
static unsigned errors; /* that may be sent now */
static uint32_t error_ms;

void host_start(const uint8_t own[PACKET_MAC_BYTES])
{
	memcpy(mac, own, PACKET_MAC_BYTES);
	payload_length = 0;
	errors = ERRORS;
	reassembly_start();
}

bool host_busy(void)
{
	return payload_length > 0;
}

static void answer(const uint8_t *to_mac, uint32_t to, uint8_t protocol, size_t length)
{
	memcpy(payload_mac, to_mac, PACKET_MAC_BYTES);
	payload_to = to;
	payload_protocol = protocol;
	payload_length = length;
	sent = 0;
	id++;
}

static void answer_icmp(const uint8_t *to_mac, uint32_t to, size_t length)
{
	packet_put16(payload + 2, 0);
	packet_put16(payload + 2, (uint16_t)~packet_sum(payload, length, 0));
	answer(to_mac, to, PACKET_ICMP, length);
}

/* An error about a datagram, of which the header and `length` bytes behind it are there. */
static void refuse(const uint8_t *to_mac, const uint8_t *ip, size_t header, const uint8_t *data, size_t length,
	uint8_t type, uint8_t code)
{
	if (errors == 0)
		return;
	errors--;
	if (length > QUOTE_BYTES - header)
		length = QUOTE_BYTES - header;
	memset(payload, 0, ICMP_BYTES);
	payload[0] = type;
	payload[1] = code;
	memcpy(payload + ICMP_BYTES, ip, header);
	memcpy(payload + ICMP_BYTES + header, data, length);
	answer_icmp(to_mac, packet_get32(ip + 12), ICMP_BYTES + header + length);
}

/* RFC 1122, 3.2.1.8: options are ignored, but those named above. */
static bool has_good_options(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at != OPTIONS_END) {
		if (*at == NO_OPERATION) {
			at++;
			continue;
		}
		if (end - at < 2 || at[1] < 2 || at[1] > end - at || *at == LOOSE_ROUTE || *at == STRICT_ROUTE)
			return false;
		at += at[1];
	}
	return true;
}

/*
 * Bytes of the frame's IPv4 header if it is a datagram to us of a sender that may be answered; else 0. RFC 1122,
 * 3.2.1.3, 3.2.2: neither to nor from a group or broadcast address, on the link or in the network.
 */
static size_t header_of(const uint8_t *frame, size_t length, uint32_t us, uint32_t netmask)
{
	const uint8_t *ip = frame + PACKET_IP;
	uint32_t from;
	size_t header;

	if (length < PACKET_UDP || packet_get16(frame + 12) != PACKET_TYPE_IPV4 || ip[0] >> 4 != 4)
		return 0;
	header = 4u * (ip[0] & 15);
	if (header < 20 || header > packet_get16(ip + 2) || packet_get16(ip + 2) > length - PACKET_IP)
		return 0;
	if (packet_sum(ip, header, 0) != 0xffff || !has_good_options(ip + 20, ip + header))
		return 0;
	from = packet_get32(ip + 12);
	if (memcmp(frame, mac, PACKET_MAC_BYTES) != 0 || (frame[PACKET_MAC_BYTES] & 1) != 0)
		return 0;
	if (us == 0 || packet_get32(ip + 16) != us || from == us || !packet_is_host(from))
		return 0;
	/* The two that every network sets aside, if it is ours; those of 31 bits have none (RFC 3021). */
	if (~netmask > 1 && ((from ^ us) & netmask) == 0 && ((from & ~netmask) == 0 || (from | netmask) == 0xffffffffu))
		return 0;
	return header;
}

/* An echo request, or a datagram to the echo service: true when its answer has been made of it. */
static bool is_echo(const uint8_t *ip, const uint8_t *data, size_t length)
{
	if (ip[9] == PACKET_ICMP)
		return length >= ICMP_BYTES && data[0] == ECHO && data[1] == 0 &&
		       packet_sum(data, length, 0) == 0xffff;
	/* Echoing to another service of that kind would go round for ever. */
	return packet_get16(data + 2) == ECHO_PORT && packet_get16(data) >= 1024;
}

static void echo(const uint8_t *to_mac, const uint8_t *ip, const uint8_t *data, size_t length)
{
	packet_copy(payload, data, length);
	if (ip[9] == PACKET_ICMP) {
		payload[0] = ECHO_REPLY;
		answer_icmp(to_mac, packet_get32(ip + 12), length);
		return;
	}
	memcpy(payload, data + 2, 2); /* the checksum does not change with the ports' places */
	memcpy(payload + 2, data, 2);
	answer(to_mac, packet_get32(ip + 12), PACKET_UDP_PROTOCOL, length);
}

/* RFC 1122, 4.1.3.4: a datagram with a wrong checksum is dropped; RFC 768: 0 is none. */
static bool is_good_udp(const uint8_t *ip, const uint8_t *data, size_t length)
{
	uint32_t pseudo = packet_sum(ip + 12, 8, PACKET_UDP_PROTOCOL + (uint32_t)length);

	if (length < 8 || packet_get16(data + 4) != length)
		return false;
	return packet_get16(data + 6) == 0 || packet_sum(data, length, pseudo) == 0xffff;
}

static bool is_open(uint16_t port)
{
#ifdef TREBUCHET_UDP_SERVICES
	if (port == ECHO_PORT || port == DISCARD_PORT)
		return true;
#endif
	return port == DHCP_CLIENT_PORT || port == DISCOVER_PORT;
}

/* A whole datagram; `refusable`: it was none of several fragments. */
static void take_datagram(const uint8_t *to_mac, const uint8_t *ip, size_t header, const uint8_t *data,
	size_t length, bool refusable)
{
	bool is_udp = ip[9] == PACKET_UDP_PROTOCOL, known = is_udp || ip[9] == PACKET_ICMP;

	if (is_udp && !is_good_udp(ip, data, length))
		return;
	if (known && (!is_udp || is_open(packet_get16(data + 2)))) {
		if (is_echo(ip, data, length))
			echo(to_mac, ip, data, length);
	} else if (refusable && ip[9] != PACKET_TCP) {
		refuse(to_mac, ip, header, data, length, UNREACHABLE,
			is_udp ? PORT_UNREACHABLE : PROTOCOL_UNREACHABLE);
	}
}

void host_take_frame(const uint8_t *frame, size_t length, uint32_t us, uint32_t netmask, uint32_t now_ms)
{
	const uint8_t *ip = frame + PACKET_IP;
	size_t header = header_of(frame, length, us, netmask);
	struct reassembly *whole;

	if (header == 0)
		return;
	if ((packet_get16(ip + 6) & IS_FRAGMENT) == 0) {
		take_datagram(frame + PACKET_MAC_BYTES, ip, header, ip + header, packet_get16(ip + 2) - header, true);
		return;
	}
	if (ip[9] != PACKET_ICMP && ip[9] != PACKET_UDP_PROTOCOL)
		return;
	whole = reassembly_take(frame, header, now_ms);
	if (whole == NULL)
		return;
	take_datagram(whole->mac, whole->header, whole->header_length, whole->data, whole->length, false);
	whole->used = false;
}

/* Send the next fragment of the answer, or all of it. */
static void send_piece(uint32_t us)
{
	uint32_t words[NIC_SEND_BYTES / 4];
	uint8_t *frame = (uint8_t *)words;
	size_t left = payload_length - sent, piece = left;
	uint32_t part = (uint32_t)id << 16 | (uint32_t)(sent / 8);

	if (piece > NIC_SEND_BYTES - PACKET_UDP) {
		piece = (NIC_SEND_BYTES - PACKET_UDP) & ~7u;
		part |= MORE_FRAGMENTS;
	}
	memcpy(frame, payload_mac, PACKET_MAC_BYTES);
	memcpy(frame + PACKET_MAC_BYTES, mac, PACKET_MAC_BYTES);
	packet_copy(frame + PACKET_UDP, payload + sent, piece);
	packet_finish_ip(frame, payload_protocol, us, payload_to, piece, part);
	nic_send(words, PACKET_UDP + piece);
	sent += piece;
	if (sent == payload_length)
		payload_length = 0;
}

void host_serve(uint32_t us, uint32_t now_ms)
{
	struct reassembly *late;

	for (; errors < ERRORS && now_ms - error_ms >= ERROR_MS; error_ms += ERROR_MS)
		errors++;
	if (errors == ERRORS)
		error_ms = now_ms;
	if (us == 0)
		payload_length = 0; /* the address is gone, and what waited to be sent from it */
	if (host_busy()) {
		if (!nic_busy())
			send_piece(us);
		return;
	}
	late = reassembly_expired(now_ms);
	if (late == NULL)
		return;
	late->used = false;
	if (late->header_length != 0 && us != 0)
		refuse(late->mac, late->header, late->header_length, late->data, ICMP_BYTES, TIME_EXCEEDED,
			REASSEMBLY_TIME);
}

#else /* a board without block RAM for that */

void host_start(const uint8_t own[PACKET_MAC_BYTES])
{
	(void)own;
}

bool host_busy(void)
{
	return false;
}

void host_take_frame(const uint8_t *frame, size_t length, uint32_t us, uint32_t netmask, uint32_t now_ms)
{
	(void)frame;
	(void)length;
	(void)us;
	(void)netmask;
	(void)now_ms;
}

void host_serve(uint32_t us, uint32_t now_ms)
{
	(void)us;
	(void)now_ms;
}

#endif
