/* Addresses, and the shell's switches. */
#ifndef TREBUCHET_NETWORK_H
#define TREBUCHET_NETWORK_H

#include <stdint.h>

struct address {
	uint64_t mac; /* the first byte on the wire is the most significant of 48 bits */
	uint32_t ip;
};

/* The addresses that the board file names. */
struct address network_default(void);
/* A MAC address as registers want it: the first byte on the wire in bits 7..0. */
uint64_t network_wire_order(uint64_t mac);
/* Give the shell its addresses and the secret of its sequence numbers, and switch it on. */
void network_start(struct address address, const uint32_t key[4]);
/* Print one line about the addresses and the engines on the console. */
void network_print(struct address address);

#endif
