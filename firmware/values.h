/* Numbers and addresses from text. Nothing past `length` is read; false leaves the result alone. */
#ifndef TREBUCHET_VALUES_H
#define TREBUCHET_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of text without a NUL at its end. */
struct piece {
	const char *at;
	size_t length;
};

bool piece_equals(struct piece piece, const char *string);
/* Cut what stands before the first `separator` off `rest`; false if there is none. */
bool piece_cut(struct piece *rest, char separator, struct piece *first);

/* At most nine decimal digits, no sign, no leading zeros. */
bool value_unsigned(struct piece piece, uint32_t largest, uint32_t *value);
/* "192.0.2.2" */
bool value_ip(struct piece piece, uint32_t *ip);
/* "02:00:00:00:00:01"; the first byte on the wire is the most significant one. */
bool value_mac(struct piece piece, uint64_t *mac);

/* Whether a host may have the address: no loopback, multicast or broadcast, not 0.x.x.x. */
bool value_is_host(uint32_t ip);
/* Whether a station may have the address: no group, not all zeros. */
bool value_is_station(uint64_t mac);

#endif
