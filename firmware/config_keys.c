#include "config.h"

#include <string.h>

#define MAX_PEERS 15u

static bool is_choice(struct piece value, const char *const *choices, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (piece_equals(value, choices[i]))
			return true;
	return false;
}

static bool is_switch(struct piece value)
{
	static const char *const choices[] = { "on", "off" };

	return is_choice(value, choices, 2);
}

static bool is_level(struct piece value)
{
	static const char *const choices[] = { "error", "warn", "info", "debug" };

	return is_choice(value, choices, 4);
}

static bool is_host(struct piece value)
{
	uint32_t ip;

	return value_ip(value, &ip) && value_is_host(ip);
}

static bool is_station(struct piece value)
{
	uint64_t mac;

	return value_mac(value, &mac) && value_is_station(mac);
}

/* Ones, then zeros. */
static bool is_mask(struct piece value)
{
	uint32_t mask;

	return value_ip(value, &mask) && mask != 0 && (~mask & (~mask + 1)) == 0;
}

static bool is_flag(struct piece value)
{
	uint32_t number;

	return value_unsigned(value, 1, &number);
}

static bool server_of(struct piece value, struct config_server *server)
{
	struct piece ip, port;

	server->own = 0;
	if (!piece_cut(&value, ':', &ip) || !value_ip(ip, &server->ip) || !value_is_host(server->ip))
		return false;
	if (!piece_cut(&value, '/', &port))
		port = value;
	else if (!value_unsigned(value, 65535, &server->own) || server->own == 0)
		return false;
	return value_unsigned(port, 65535, &server->port) && server->port != 0;
}

static bool is_server(struct piece value)
{
	struct config_server server;

	return server_of(value, &server);
}

bool config_find_server(const struct config *config, struct config_server *server)
{
	struct piece value;

	return config_find(config, "server", &value) && server_of(value, server);
}

/*
 * 0 switches it off. The event loop comes round every 100 ms, but what is written to the console or to
 * the flash may take a second, and a board that restarts all the time cannot be set up anew.
 */
static bool is_watchdog(struct piece value)
{
	uint32_t number;

	return value_unsigned(value, 65535, &number) && (number == 0 || number >= 2000);
}

/* A host name of one label (RFC 1123, 2.1), in lower case. */
static bool is_name(struct piece value)
{
	if (value.length == 0 || value.length > 31)
		return false;
	for (size_t i = 0; i < value.length; i++) {
		char c = value.at[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!word && (c != '-' || i == 0 || i + 1 == value.length))
			return false;
	}
	return true;
}

bool config_peer(struct piece value, struct peer *peer)
{
	uint32_t theirs, timeout_us, called;
	struct piece field[4];
	uint64_t mac;

	for (int i = 0; i < 4; i++)
		if (!piece_cut(&value, ',', &field[i]))
			return false;
	if (!value_mac(field[0], &mac) || !value_is_station(mac) ||
	    !value_ip(field[1], &peer->ip) || !value_is_host(peer->ip) ||
	    !value_unsigned(field[2], MAX_PEERS, &theirs) || theirs == 0 ||
	    !value_unsigned(field[3], 32767, &timeout_us) || timeout_us == 0 ||
	    !value_unsigned(value, 1, &called))
		return false;
	peer->mac_high = (uint32_t)(mac >> 32);
	peer->mac_low = (uint32_t)mac;
	peer->theirs = (uint16_t)theirs;
	peer->timeout_us = (uint16_t)timeout_us;
	peer->called = called != 0;
	return true;
}

bool config_find_peer(const struct config *config, uint32_t number, struct peer *peer)
{
	char key[] = "peerNN";
	struct piece value;

	if (number < 10) {
		key[4] = (char)('0' + number);
		key[5] = '\0';
	} else {
		key[4] = '1';
		key[5] = (char)('0' + number - 10);
	}
	return config_find(config, key, &value) && config_peer(value, peer);
}

static bool is_peer(struct piece value)
{
	struct peer peer;

	return config_peer(value, &peer);
}

/*
 * Milliseconds, and how often. No time may be shorter than the wheel of the engine's timer has slots
 * (cores/tcp/config.py), or it would be late.
 */
#define WHEEL 128u
#define LONGEST 4194303u
const struct config_number config_tcp[CONFIG_TCP] = {
	{ "tcp_rto_min", WHEEL, 60000 },
	{ "tcp_rto_initial", WHEEL, 60000 },
	{ "tcp_syn_retries", 1, 15 },
	{ "tcp_retries", 1, 15 },
	{ "tcp_keepalive_retries", 1, 15 },
	{ "tcp_keepalive_idle", WHEEL, LONGEST },
	{ "tcp_keepalive_interval", WHEEL, LONGEST },
	{ "tcp_user_timeout", WHEEL, LONGEST },
	{ "tcp_time_wait", WHEEL, LONGEST },
	{ "tcp_half_open_limit", 1, 131071 },
	{ "tcp_evict_idle", 0, LONGEST },
	{ "tcp_request_timeout", 0, LONGEST },
};

static bool number_of(struct piece text, const struct config_number *number, uint32_t *value)
{
	return value_unsigned(text, number->high, value) && *value >= number->low;
}

/* Keep models/config_block.py the same; tests/test_firmware_config.py compares them. */
static const struct {
	const char *name;
	const char *form;
	bool (*allows)(struct piece value);
} keys[] = {
	{ "ip", "ip=A.B.C.D", is_host },
	{ "mac", "mac=XX:XX:XX:XX:XX:XX", is_station },
	{ "dhcp", "dhcp=0|1", is_flag },
	{ "netmask", "netmask=A.B.C.D", is_mask },
	{ "gateway", "gateway=A.B.C.D", is_host },
	{ "server", "server=A.B.C.D:PORT[/OWN]", is_server },
	{ "log", "log=error|warn|info|debug", is_level },
	{ "watchdog_ms", "watchdog_ms=0|2000..65535", is_watchdog },
	{ "role", "role=on|off", is_switch },
	{ "name", "name=HOST", is_name },
	{ "guard", "guard=on|off", is_switch },
	{ "peer", "peerN=MAC,IP,THEIRS,TIMEOUT_US,0|1", is_peer },
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))
#define PEER (KEYS - 1)

const char *config_key_form(unsigned index)
{
	return index < KEYS ? keys[index].form : NULL;
}

bool config_allows(struct piece key, struct piece value)
{
	uint32_t number;

	for (unsigned i = 0; i < PEER; i++)
		if (piece_equals(key, keys[i].name))
			return keys[i].allows(value);
	for (unsigned i = 0; i < CONFIG_TCP; i++)
		if (piece_equals(key, config_tcp[i].key))
			return number_of(value, &config_tcp[i], &number);
	if (key.length < 5 || memcmp(key.at, keys[PEER].name, 4) != 0)
		return false;
	key = (struct piece){ key.at + 4, key.length - 4 };
	return value_unsigned(key, MAX_PEERS, &number) && number != 0 && is_peer(value);
}
