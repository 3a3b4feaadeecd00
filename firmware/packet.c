#include "packet.h"

#include <string.h>

#define TIME_TO_LIVE 64u

const uint8_t packet_broadcast[PACKET_MAC_BYTES] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

uint16_t packet_get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

uint32_t packet_get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

void packet_put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

void packet_put32(uint8_t *at, uint32_t value)
{
	packet_put16(at, (uint16_t)(value >> 16));
	packet_put16(at + 2, (uint16_t)value);
}

/* Four bytes of whatever they are of. */
typedef uint32_t __attribute__((may_alias)) any_word;

/* The sum of whole words, in the order of bytes of a number on the wire (RFC 1071, 2 (B)). */
static uint32_t sum_of_words(const uint8_t *at, size_t length)
{
	uint32_t sum = 0;

	for (; length > 3; length -= 4, at += 4) {
		uint32_t word = *(const any_word *)at;

		sum += word;
		sum += sum < word;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xff) << 8 | sum >> 8;
}

/* As a board without caches adds up words in a third of the time, most of it is by words. */
uint32_t packet_sum(const uint8_t *at, size_t length, uint32_t sum)
{
	if (length > 1 && ((uintptr_t)at & 3) == 2) {
		sum += packet_get16(at);
		length -= 2;
		at += 2;
	}
	if (((uintptr_t)at & 3) == 0) {
		sum += sum_of_words(at, length);
		at += length & ~(size_t)3;
		length &= 3;
	}
	for (; length > 1; length -= 2, at += 2)
		sum += packet_get16(at);
	if (length == 1)
		sum += (uint32_t)at[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

void packet_copy(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length > 1 && ((uintptr_t)to & 3) == 2 && ((uintptr_t)from & 3) == 2) {
		memcpy(to, from, 2);
		length -= 2;
		to += 2;
		from += 2;
	}
	if ((((uintptr_t)to | (uintptr_t)from) & 3) == 0)
		for (; length > 3; length -= 4, to += 4, from += 4)
			*(any_word *)to = *(const any_word *)from;
	memcpy(to, from, length);
}

/* Over the datagram and RFC 768's pseudo header: 0xffff when its checksum is right. */
static uint32_t udp_sum(const uint8_t *frame, size_t udp_length)
{
	return packet_sum(frame + PACKET_IP + 12, 8 + udp_length, PACKET_UDP_PROTOCOL + (uint32_t)udp_length);
}

bool packet_is_udp(const uint8_t *frame, size_t length, size_t shortest)
{
	const uint8_t *ip = frame + PACKET_IP;
	size_t total, udp_length;

	if (length < PACKET_UDP + 8 || packet_get16(frame + 12) != PACKET_TYPE_IPV4 || ip[0] != 0x45)
		return false;
	total = packet_get16(ip + 2);
	udp_length = packet_get16(frame + PACKET_UDP + 4);
	if (total > length - PACKET_IP || total < 20 + 8 || udp_length > total - 20)
		return false;
	if (udp_length < 8 || udp_length < shortest || (packet_get16(ip + 6) & 0x3fff) != 0)
		return false;
	if (ip[9] != PACKET_UDP_PROTOCOL || packet_sum(ip, 20, 0) != 0xffff)
		return false;
	return packet_get16(frame + PACKET_UDP + 6) == 0 || udp_sum(frame, udp_length) == 0xffff;
}

size_t packet_udp_end(const uint8_t *frame)
{
	return PACKET_UDP + packet_get16(frame + PACKET_UDP + 4);
}

void packet_finish_ip(uint8_t *frame, enum packet_protocol protocol, uint32_t from, uint32_t to, size_t length,
	uint32_t part)
{
	uint8_t *ip = frame + PACKET_IP;

	packet_put16(frame + 12, PACKET_TYPE_IPV4);
	packet_put32(ip, 0x45000000u | (uint32_t)(20 + length));
	packet_put32(ip + 4, part);
	packet_put32(ip + 8, TIME_TO_LIVE << 24 | (uint32_t)protocol << 16);
	packet_put32(ip + 12, from);
	packet_put32(ip + 16, to);
	packet_put16(ip + 10, (uint16_t)~packet_sum(ip, 20, 0));
}

void packet_finish_udp(uint8_t *frame, uint32_t from, uint32_t to, size_t udp_length)
{
	uint8_t *udp = frame + PACKET_UDP;
	uint16_t checksum;

	packet_finish_ip(frame, PACKET_UDP_PROTOCOL, from, to, udp_length, 0);
	packet_put16(udp + 4, (uint16_t)udp_length);
	packet_put16(udp + 6, 0);
	checksum = (uint16_t)~udp_sum(frame, udp_length);
	packet_put16(udp + 6, checksum == 0 ? 0xffff : checksum); /* RFC 768: 0 says "none" */
}

/* ARP; Ethernet and IPv4, the lengths of their addresses; a request. */
static const uint8_t arp_head[] = { 0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1 };

void packet_arp_request(uint8_t frame[PACKET_ARP_BYTES], const uint8_t *mac, uint32_t from,
	uint32_t to)
{
	memset(frame, 0, PACKET_ARP_BYTES);
	memcpy(frame, packet_broadcast, PACKET_MAC_BYTES);
	memcpy(frame + 6, mac, PACKET_MAC_BYTES);
	memcpy(frame + 12, arp_head, sizeof(arp_head));
	memcpy(frame + PACKET_ARP_SENDER, mac, PACKET_MAC_BYTES);
	packet_put32(frame + 28, from);
	packet_put32(frame + 38, to);
}

/* ARP for Ethernet and IPv4 whose sender has this address; `operation` 0 is any. */
static bool is_arp_from(const uint8_t *frame, size_t length, uint32_t ip, uint8_t operation)
{
	return length >= PACKET_ARP_BYTES && memcmp(frame + 12, arp_head, sizeof(arp_head) - 1) == 0 &&
	       (operation == 0 || frame[21] == operation) && packet_get32(frame + 28) == ip;
}

bool packet_is_arp_reply(const uint8_t *frame, size_t length, uint32_t ip)
{
	return is_arp_from(frame, length, ip, 2) && (frame[PACKET_ARP_SENDER] & 1) == 0;
}

bool packet_is_conflict(const uint8_t *frame, size_t length, uint32_t ip, const uint8_t *mac)
{
	return is_arp_from(frame, length, ip, 0) && memcmp(frame + PACKET_ARP_SENDER, mac, PACKET_MAC_BYTES) != 0;
}
