/*
 * Which IP address the board has: the static one, or one by DHCP, or the static one because nobody
 * answered DHCP.
 *
 * With DHCP there is no address, and the TCP engine gets no frames, until a server has given us one
 * or DHCP_TRIES tries have failed. An address that is in use changes only after every TCP session
 * was reset: its RST leaves from the old address, so that neither end is left with half a session.
 */
#ifndef TREBUCHET_IP_H
#define TREBUCHET_IP_H

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "network.h"
#include "text.h"

/* Take the static address at once or, if `address` says so, begin with DHCP: then false. */
bool ip_start(const struct address *address);
/* Everything that is due now; the event loop calls it at every turn. */
void ip_serve(void);
/* Have the event loop come round often enough for server.h, also without DHCP. */
void ip_listen(void);
/* The address in use, 0: none yet; our MAC address; who forwards what goes to an address. */
uint32_t ip_current(void);
void ip_mac(uint8_t mac[6]);
uint32_t ip_next_hop(uint32_t to);
/* The command `ip`: address, netmask, gateway, where they come from, what is left of the lease. */
uint8_t ip_command(struct words *words, struct text *out);

#endif
