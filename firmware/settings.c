#include "settings.h"

#include <string.h>

#include <generated/soc.h>
#include <generated/trebuchet_regs.h>
#include <generated/trebuchet_status_codes.h>

#include "bulk.h"
#include "flash.h"
#include "lease.h"
#include "log.h"
#include "log_status.h"
#include "role.h"
#include "text.h"

static BULK struct config config; /* of no use before, and without the memory it is in */
static bool started;

struct config *settings(void)
{
	return started ? &config : NULL;
}

#ifdef TREBUCHET_FLASH_CONFIG
static void tell_wrong_line(void)
{
	char buffer[64];
	struct text text = text_in(buffer, sizeof(buffer) - 1);
	struct piece line;

	if (!config_wrong_line(&config, &line))
		return;
	text_plain(&text, "not used: ");
	for (size_t i = 0; i < line.length; i++)
		text_char(&text, line.at[i] >= ' ' && line.at[i] <= '~' ? line.at[i] : '?');
	buffer[text.length] = '\0';
	log_status("config", buffer, TREBUCHET_STATUS_BAD_ARGUMENT);
}
#endif

void settings_start(void)
{
	config_clear(&config);
	started = true;
#ifdef TREBUCHET_FLASH_CONFIG
	if (flash_start() != TREBUCHET_STATUS_OK) {
		log_status("flash", "does not answer", TREBUCHET_STATUS_FLASH_ERROR);
		return;
	}
	config_load(&config, TREBUCHET_FLASH_CONFIG);
	for (int copy = 0; copy < 2; copy++)
		if (config.status[copy] != TREBUCHET_STATUS_OK &&
		    config.status[copy] != TREBUCHET_STATUS_NO_CONFIG)
			log_status("config", copy ? "copy B" : "copy A", config.status[copy]);
	log_info("config", config.copy < 0 ? "none, defaults" : config.copy ? "copy B" : "copy A");
	tell_wrong_line();
#endif
}

/* config_find() gives values that are allowed only: another program may have written anything. */
void settings_address(struct address *address)
{
	struct piece name;
	uint32_t ip, dhcp;
	uint64_t mac;

	if (config_ip(&config, "ip", &ip))
		address->ip = ip;
	config_ip(&config, "netmask", &address->netmask);
	config_ip(&config, "gateway", &address->gateway);
	if (config_unsigned(&config, "dhcp", &dhcp))
		address->dhcp = dhcp != 0;
	if (config_find(&config, "name", &name)) {
		memcpy(address->name, name.at, name.length); /* at most 31 bytes, or it is not allowed */
		address->name[name.length] = '\0';
	}
	if (config_mac(&config, "mac", &mac))
		address->mac = mac;
}

static void apply_tcp(void)
{
#ifdef TREBUCHET_TCP_BASE
#ifdef TREBUCHET_TCP_PROGRAMMABLE
	static const uint32_t registers[CONFIG_TCP] = {
		TREBUCHET_TCP_RTO_MIN_ADDR,
		TREBUCHET_TCP_RTO_INITIAL_ADDR,
		TREBUCHET_TCP_SYN_RETRIES_ADDR,
		TREBUCHET_TCP_RETRIES_ADDR,
		TREBUCHET_TCP_KEEPALIVE_RETRIES_ADDR,
		TREBUCHET_TCP_KEEPALIVE_IDLE_ADDR,
		TREBUCHET_TCP_KEEPALIVE_INTERVAL_ADDR,
		TREBUCHET_TCP_USER_TIMEOUT_ADDR,
		TREBUCHET_TCP_TIME_WAIT_ADDR,
		TREBUCHET_TCP_HALF_OPEN_LIMIT_ADDR,
		TREBUCHET_TCP_EVICT_IDLE_ADDR,
		TREBUCHET_SHELL_REQUEST_TIMEOUT_ADDR,
	};
#endif
	uint32_t value;

	for (unsigned i = 0; i < CONFIG_TCP; i++) {
		if (!config_unsigned(&config, config_tcp[i].key, &value))
			continue;
#ifdef TREBUCHET_TCP_PROGRAMMABLE
		trebuchet_write32(registers[i], value);
#else
		log_status("config", config_tcp[i].key, TREBUCHET_STATUS_NOT_BUILT_IN);
#endif
	}
#endif
}

void settings_apply(void)
{
	char level[8];
	struct piece value;

	if (config_find(&config, "log", &value) && value.length < sizeof(level)) {
		memcpy(level, value.at, value.length);
		level[value.length] = '\0';
		log_set_level(level);
	}
	if (config_find(&config, "role", &value))
		role_enable_all(piece_equals(value, "on"));
	if (config_find(&config, "guard", &value) && piece_equals(value, "on"))
		lease_guard(true); /* no connection is taken before the network starts */
	apply_tcp();
}

uint32_t settings_watchdog_ms(void)
{
	uint32_t milliseconds = TREBUCHET_WATCHDOG_MS;

	config_unsigned(&config, "watchdog_ms", &milliseconds);
	return milliseconds;
}

uint8_t settings_save(void)
{
#ifdef TREBUCHET_FLASH_CONFIG
	return started ? config_save(&config, TREBUCHET_FLASH_CONFIG) : TREBUCHET_STATUS_NO_CONFIG;
#else
	return TREBUCHET_STATUS_NOT_BUILT_IN;
#endif
}

uint8_t settings_erase(void)
{
#ifdef TREBUCHET_FLASH_CONFIG
	uint8_t status = started ? config_erase(&config, TREBUCHET_FLASH_CONFIG) :
				   TREBUCHET_STATUS_NO_CONFIG;

	if (status == TREBUCHET_STATUS_OK)
		config_clear(&config);
	return status;
#else
	return TREBUCHET_STATUS_NOT_BUILT_IN;
#endif
}
