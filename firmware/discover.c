#include "discover.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_build.h>

#include "ip.h"
#include "nic.h"
#include "packet.h"
#include "text.h"

#define PAYLOAD (PACKET_UDP + 8)
/* Services have lower ports: what answers to answers would go round for ever. */
#define FIRST_CLIENT_PORT 1024u

/* Is the frame a request to us or to all stations, of a host that may be answered? */
static bool is_request(const uint8_t *frame, size_t length, uint32_t us, uint32_t netmask)
{
	static const char request[] = DISCOVER_REQUEST;
	uint32_t from = packet_get32(frame + PACKET_IP + 12);
	uint16_t port = packet_get16(frame + PACKET_UDP);

	if (!packet_is_udp(frame, length, 8 + sizeof(request) - 1) ||
	    memcmp(frame + PAYLOAD, request, sizeof(request) - 1) != 0)
		return false;
	if (memcmp(frame, packet_broadcast, PACKET_MAC_BYTES) != 0 && packet_get32(frame + PACKET_IP + 16) != us)
		return false;
	if (packet_get16(frame + PACKET_UDP + 2) != DISCOVER_PORT || port == DISCOVER_PORT || port < FIRST_CLIENT_PORT)
		return false;
	return (frame[PACKET_MAC_BYTES] & 1) == 0 && packet_is_host(from) && from != us &&
	       ((from ^ us) & netmask) == 0 && (from | netmask) != 0xffffffffu;
}

void discover_take_frame(uint8_t *frame, size_t length, const struct address *own, uint32_t us, uint32_t netmask,
	uint32_t now_ms)
{
	static uint32_t answered_ms;
	uint8_t mac[PACKET_MAC_BYTES];
	struct text answer;
	uint32_t to;

	if (us == 0 || now_ms - answered_ms < DISCOVER_PAUSE_MS || nic_busy() ||
	    !is_request(frame, length, us, netmask))
		return;
	/* Names of boards, hosts and roles are of letters, digits, - and _. */
	answer = text_in((char *)frame + PAYLOAD, packet_udp_end(frame) - PAYLOAD);
	text_plain(&answer, "{\"trebuchet\":1,\"version\":\"" TREBUCHET_VERSION "\",\"board\":\"" TREBUCHET_BOARD
		"\",\"roles\":" TREBUCHET_ROLE_NAMES ",\"mac\":\"");
	text_mac(&answer, own->mac);
	text_plain(&answer, "\",\"name\":\"");
	text_plain(&answer, own->name);
	text_plain(&answer, "\"}\n");
	if (answer.overflow)
		return;
	answered_ms = now_ms;
	ip_mac(mac);
	to = packet_get32(frame + PACKET_IP + 12);
	memcpy(frame, frame + PACKET_MAC_BYTES, PACKET_MAC_BYTES);
	memcpy(frame + PACKET_MAC_BYTES, mac, PACKET_MAC_BYTES);
	packet_put16(frame + PACKET_UDP + 2, packet_get16(frame + PACKET_UDP));
	packet_put16(frame + PACKET_UDP, DISCOVER_PORT);
	packet_finish_udp(frame, us, to, 8 + answer.length);
	nic_send((const uint32_t *)(const void *)frame, PAYLOAD + answer.length);
}
