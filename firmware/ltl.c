#include "ltl.h"

#include <generated/trebuchet_regs.h>

#ifdef TREBUCHET_LTL_BASE

#include <generated/soc.h>
#include <generated/trebuchet_peers.h>

#include "board.h"
#include "log.h"
#include "network.h"
#include "serial.h"
#include "settings.h"
#include "text.h"

#define COMMAND_GO (1u << TREBUCHET_LTL_COMMAND_GO_OFFSET)
#define COMMAND_OPEN (1u << TREBUCHET_LTL_COMMAND_OPEN_OFFSET)
#define COMMAND_RECEIVE (1u << TREBUCHET_LTL_COMMAND_RECEIVE_OFFSET)
#define FAILURE_VALID (1u << TREBUCHET_LTL_FAILURE_VALID_OFFSET)

/* Virtual channels, and the two entries that a peer has in each table. */
#define REQUESTS 0u
#define REPLIES 1u
#define ENTRIES 2u

/* How long a failure may wait until it is seen. */
#define POLL_MS 10u

/*
 * The same at both ends, and constant, since nothing tells a peer which one we took. So a board that
 * restarts alone begins with sequence number 0 where its peers expect a later one: they take its
 * messages for repeated ones, and it takes theirs for early ones. What is sent then is lost, or the
 * connections fail. All boards that are joined, directly or not, must be started anew together.
 */
#define INCARNATION 1u

/* The engine must not see its registers change while it carries out a command. */
static void command(uint32_t table, uint32_t entry)
{
	trebuchet_ltl_command_write(COMMAND_GO | COMMAND_OPEN | table |
				    entry << TREBUCHET_LTL_COMMAND_INDEX_OFFSET);
	while (trebuchet_ltl_busy_read() != 0)
		;
}

/* Peer `number`: the configuration's, or that of the network the firmware was built for. */
static bool find_peer(uint32_t number, struct peer *peer)
{
	if (config_find_peer(settings(), number, peer))
		return true;
	if (number > TREBUCHET_PEERS)
		return false;
	*peer = peers[number - 1];
	return true;
}

/* The port of the other end and the credit are the same everywhere: what they are after reset. */
static void open_peer(uint32_t number, const struct peer *peer)
{
	uint64_t mac = (uint64_t)peer->mac_high << 32 | peer->mac_low;

	trebuchet_ltl_peer_mac_write(network_wire_order(mac));
	trebuchet_ltl_peer_ip_write(peer->ip);
	trebuchet_ltl_incarnation_write(INCARNATION);
	trebuchet_ltl_rto_write(peer->timeout_us);
	for (uint32_t vc = REQUESTS; vc <= REPLIES; vc++) {
		trebuchet_ltl_peer_connection_write(ENTRIES * peer->theirs + vc);
		trebuchet_ltl_vc_write(vc);
		command(COMMAND_RECEIVE, ENTRIES * number + vc);
		command(0, ENTRIES * number + vc);
	}
}

void ltl_start(void)
{
	uint32_t enable = 1; /* our own role */
	uint32_t count = 0;
	struct peer peer;
	char line[32];
	struct text text = text_in(line, sizeof(line) - 1);

	trebuchet_ltl_tick_cycles_write(TREBUCHET_CYCLES_PER_US);
	trebuchet_ltl_dscp_write(TREBUCHET_LTL_DSCP);
	for (uint32_t number = 1; number <= TREBUCHET_LTL_PEERS; number++) {
		if (!find_peer(number, &peer))
			continue;
		count++;
		open_peer(number, &peer);
		if (peer.called)
			enable |= 1u << number;
	}
	trebuchet_ltl_enable_write(1);
	trebuchet_cluster_enable_write(enable);
	if (count > 0)
		board_wake_every(POLL_MS);
	text_plain(&text, "ltl: ");
	text_unsigned(&text, count);
	text_plain(&text, " peers\n");
	serial_string(text_string(&text));
}

static void report(uint32_t entry)
{
	uint32_t number = entry / ENTRIES;
	struct peer peer = { 0 };
	char line[64];
	struct text text = text_in(line, sizeof(line) - 1);

	trebuchet_cluster_enable_write(trebuchet_cluster_enable_read() & ~(1u << number));
	text_plain(&text, entry % ENTRIES == REQUESTS ? "requests to" : "replies to");
	text_plain(&text, " peer ");
	text_unsigned(&text, number);
	text_plain(&text, " (");
	find_peer(number, &peer);
	text_ip(&text, peer.ip);
	text_plain(&text, ") failed");
	log_warn("ltl", text_string(&text));
}

void ltl_serve(void)
{
	for (;;) {
		uint32_t failure = trebuchet_ltl_failure_read();

		if ((failure & FAILURE_VALID) == 0)
			return;
		/* Only entries of peers have been opened, so only they fail. */
		report(failure & ((1u << TREBUCHET_LTL_FAILURE_INDEX_WIDTH) - 1));
		trebuchet_ltl_failure_next_write(1);
	}
}

#else /* a shell without LTL: this board is alone */

void ltl_start(void)
{
}

void ltl_serve(void)
{
}

#endif
