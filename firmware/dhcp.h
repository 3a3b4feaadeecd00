/*
 * DHCP client (RFC 2131, RFC 2132) as a state machine of frames and times; it touches no hardware.
 *
 * Frames are whole Ethernet frames without FCS. Hand each one that came in to dhcp_receive(), and
 * call dhcp_tick() at least every second: it says what to send. All times are milliseconds modulo
 * 2**32; the lease is counted in seconds, so that it may be longer than 49 days.
 *
 * What is not done: the address is not probed with ARP before it is used, so DHCPDECLINE is never
 * sent; nothing is released.
 */
#ifndef TREBUCHET_DHCP_H
#define TREBUCHET_DHCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ethernet, IPv4 and UDP headers, and the 300 bytes that BOOTP relays ask for at least. */
#define DHCP_FRAME_BYTES 342
/* Where servers send to; what the frame port listens for. */
#define DHCP_CLIENT_PORT 68u
/* Bytes of the longest host name. */
#define DHCP_NAME 31

/* Tries before the board takes its static address; after them it tries 64 times as seldom. */
#define DHCP_TRIES 4

enum dhcp_state {
	DHCP_INIT,       /* no address; a DISCOVER is due after a pause */
	DHCP_SELECTING,  /* DISCOVER sent */
	DHCP_REQUESTING, /* REQUEST for an offer sent */
	DHCP_BOUND,
	DHCP_RENEWING,   /* T1 is over: asking our server */
	DHCP_REBINDING,  /* T2 is over: asking any server */
};

struct dhcp_lease {
	uint32_t ip;
	uint32_t netmask;
	uint32_t gateway; /* 0: none */
	uint32_t server;
	uint32_t seconds; /* 0xffffffff: for ever */
	uint32_t t1, t2;  /* seconds */
};

struct dhcp {
	uint8_t mac[6];
	uint8_t server_mac[6];  /* who handed the last ACK to us: the server, or a relay to it */
	enum dhcp_state state;
	bool fallen_back;       /* nobody gave us an address in DHCP_TRIES tries */
	bool due;               /* something is to be sent now */
	uint8_t tries;          /* DISCOVERs sent since we had an address, up to DHCP_TRIES + 1 */
	uint8_t requests;       /* REQUESTs sent for this offer */
	uint16_t secs;          /* of the last DISCOVER; its REQUEST has the same (RFC 2131, 4.4.1) */
	uint32_t retry_ms;      /* pause after the first try; it doubles with each */
	uint32_t xid;
	uint32_t random;
	uint32_t sent_ms, wait_ms; /* the last frame, and how long to wait for an answer */
	uint32_t second_ms;     /* when the newest whole second began */
	uint32_t asked;         /* seconds since the lease's REQUEST; before that since the start */
	uint32_t since_request; /* seconds since the last REQUEST that renews: becomes `asked` */
	struct dhcp_lease lease; /* the offer in REQUESTING; all 0 before */
	char name[DHCP_NAME + 1]; /* host name for the server (RFC 2132, 3.14); set it after dhcp_start() */
};

/* Begin, or begin anew, with the board's MAC address. `seed` should differ from start to start; `retry_ms` at least 4. */
void dhcp_start(struct dhcp *dhcp, const uint8_t mac[6], uint32_t seed, uint32_t retry_ms,
	uint32_t now_ms);

/* A frame came in. Whatever is not a proper answer to what we sent last changes nothing. */
void dhcp_receive(struct dhcp *dhcp, const uint8_t *frame, size_t length, uint32_t now_ms);

/* Build what is to be sent now, if there is something; its length, or 0. */
size_t dhcp_tick(struct dhcp *dhcp, uint32_t now_ms, uint8_t frame[DHCP_FRAME_BYTES]);

/* How long a server's answer is waited for while the board has an address; dnsmasq probes it for 3 s. */
#define DHCP_LISTEN_MS 4000u
/* May a server answer now? Answers come to DHCP_CLIENT_PORT of any address. */
bool dhcp_listens(const struct dhcp *dhcp, uint32_t now_ms);

/* Is there a lease now? */
bool dhcp_has_lease(const struct dhcp *dhcp);

/* Seconds until the lease ends, 0 without one; 0xffffffff: it does not end. */
uint32_t dhcp_lease_left(const struct dhcp *dhcp);

/* "init", "selecting", … */
const char *dhcp_state_name(enum dhcp_state state);

#endif
