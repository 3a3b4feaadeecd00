/* Fields and checksums of Ethernet, ARP, IPv4 and UDP, for protocols that firmware speaks itself. */
#ifndef TREBUCHET_PACKET_H
#define TREBUCHET_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where headers begin in a frame; the IPv4 header has no options. */
#define PACKET_IP 14
#define PACKET_UDP (PACKET_IP + 20)

#define PACKET_MAC_BYTES 6
extern const uint8_t packet_broadcast[PACKET_MAC_BYTES];

/* Numbers in network order. */
uint16_t packet_get16(const uint8_t *at);
uint32_t packet_get32(const uint8_t *at);
void packet_put16(uint8_t *at, uint16_t value);
void packet_put32(uint8_t *at, uint32_t value);

#define PACKET_TYPE_IPV4 0x0800u
enum packet_protocol { PACKET_ICMP = 1, PACKET_TCP = 6, PACKET_UDP_PROTOCOL = 17 };

/* Can a host have the address? In class A, B or C, and not in networks 0 and 127 (RFC 1122, 3.2.1.3). */
static inline bool packet_is_host(uint32_t ip)
{
	return ip >> 24 != 0 && ip >> 24 != 127 && ip >> 29 != 7;
}

/* RFC 1071: the one's complement sum of some bytes and of `sum`, folded to 16 bits. */
uint32_t packet_sum(const uint8_t *at, size_t length, uint32_t sum);
/* Copy bytes that do not overlap: by words where both lie alike, which the C library's memcpy does not. */
void packet_copy(uint8_t *to, const uint8_t *from, size_t length);

/*
 * Is the frame a whole UDP datagram over IPv4 without options, its lengths within the frame, its
 * checksums right, and at least `shortest` bytes long from the UDP header on?
 */
bool packet_is_udp(const uint8_t *frame, size_t length, size_t shortest);
/* Where the datagram of such a frame ends. */
size_t packet_udp_end(const uint8_t *frame);

/*
 * Fill in Ethertype and the IPv4 header of a payload of `length` bytes. `part` is the second word of the
 * header: identification, flags and offset.
 */
void packet_finish_ip(uint8_t *frame, enum packet_protocol protocol, uint32_t from, uint32_t to, size_t length,
	uint32_t part);

/*
 * Fill in Ethertype, the IPv4 header, and length and checksum of the UDP datagram of `udp_length`
 * bytes whose ports and payload are in place.
 */
void packet_finish_udp(uint8_t *frame, uint32_t from, uint32_t to, size_t udp_length);

#define PACKET_ARP_BYTES 42

/*
 * RFC 826: ask everybody on the link whose address `to` is. For our own address it is an announcement
 * (RFC 5227, 2.3).
 */
void packet_arp_request(uint8_t frame[PACKET_ARP_BYTES], const uint8_t *mac, uint32_t from,
	uint32_t to);
/* Where the sender's MAC address lies, and its IP address behind it. */
#define PACKET_ARP_SENDER 22
/* Is the frame an answer of the station with that address, to us or to all? */
bool packet_is_arp_reply(const uint8_t *frame, size_t length, uint32_t ip);
/* Does another station than `mac` send ARP from the address `ip`? A conflict (RFC 5227, 2.4). */
bool packet_is_conflict(const uint8_t *frame, size_t length, uint32_t ip, const uint8_t *mac);

#endif
