/* Addresses, and the shell's switches. */
#ifndef TREBUCHET_NETWORK_H
#define TREBUCHET_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

struct address {
	uint64_t mac; /* the first byte on the wire is the most significant of 48 bits */
	uint32_t ip;      /* the static one */
	uint32_t netmask; /* 0: not known, as the gateway */
	uint32_t gateway;
	bool dhcp;        /* ask for another address first */
	char name[32];    /* host name, for the server; empty if there is none */
};

/* The addresses that the board file names. */
struct address network_default(void);
/* A MAC address as registers want it: the first byte on the wire in bits 7..0. */
uint64_t network_wire_order(uint64_t mac);
/* Give the shell its MAC address and the secret of its sequence numbers. */
void network_start(uint64_t mac, const uint32_t key[4]);
/* Give the shell its IP address and switch it on; with address 0 switch it off. */
void network_use(uint32_t ip);
/* Reset all TCP sessions and take no new ones, until network_use(). */
void network_drain(void);
/* Is there no TCP session, and nothing under way? */
bool network_is_idle(void);
/* Print lines about the addresses and the TCP engine on the console. */
void network_print(struct address address);

#endif
