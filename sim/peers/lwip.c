/* An lwIP host on a network device: a TCP peer for the simulated board that is not the kernel's.
 *
 *   lwip DEVICE MAC ADDRESS BOARD client PORT SIZE...
 *   lwip DEVICE MAC ADDRESS BOARD server PORT SIZE...
 *
 * It shares DEVICE with the kernel by a packet socket, under addresses of its own. A transfer is
 * SIZE bytes to the board's echo service and the same bytes back, then an orderly end; the client
 * opens the connections, the server has the board open them (sim/caller.py). Each transfer that
 * went right prints a line with its size; the first that did not ends the program with code 1 and
 * one line on standard error. After the last it prints `done` and stays until it is ended: what the
 * board sends again because an acknowledgement was lost is to be answered, whenever that comes.
 *
 * lwIP's shared library as Debian builds it: 2.1.3, its own TCP/IP thread, window scaling,
 * 64 KB of window and send buffer.
 */
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <lwip/etharp.h>
#include <lwip/netif.h>
#include <lwip/sockets.h>
#include <lwip/tcpip.h>
#include <netif/ethernet.h>

#define CALL_TYPE 0x88b5
#define CALL_MS 700
#define PATIENCE_MS 120000 /* without a byte that moves */
#define CHUNK 8192

static int wire; /* packet socket */
static uint8_t mac[6];
static struct netif interface;

static void fail(const char *what)
{
	fprintf(stderr, "lwip: %s\n", what);
	exit(1);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

/* Byte `at` of transfer `number`; sim/peers/smoltcp has the same. */
static uint8_t pattern(uint32_t number, uint32_t at)
{
	return (uint8_t)((at * 2654435761u + number * 40503u) >> 16);
}

/* --- the device ------------------------------------------------------------------------------- */

static void open_wire(const char *device)
{
	struct sockaddr_ll place = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	place.sll_ifindex = (int)if_nametoindex(device);
	if (wire < 0 || !place.sll_ifindex || bind(wire, (struct sockaddr *)&place, sizeof place))
		fail("cannot open the device (as root, or in a network namespace of one's own)");
}

static err_t transmit(struct netif *netif, struct pbuf *p)
{
	uint8_t frame[2000];
	uint16_t size = pbuf_copy_partial(p, frame, sizeof frame, 0);

	(void)netif;
	/* What the device has no room for is lost, as on a wire. */
	return write(wire, frame, size) == size ? ERR_OK : ERR_BUF;
}

static void *receive(void *unused)
{
	uint8_t frame[65536];

	(void)unused;
	for (;;) {
		struct sockaddr_ll from;
		socklen_t length = sizeof from;
		ssize_t size = recvfrom(wire, frame, sizeof frame, 0, (struct sockaddr *)&from, &length);
		struct pbuf *p;

		if (size <= 0 || from.sll_pkttype == PACKET_OUTGOING)
			continue;
		if (memcmp(frame, mac, 6) && !(frame[0] & 1))
			continue;
		/* Not PBUF_POOL: in Debian's library its buffers are smaller than it takes them for. */
		p = pbuf_alloc(PBUF_RAW, (uint16_t)size, PBUF_RAM);
		if (!p)
			continue;
		pbuf_take(p, frame, (uint16_t)size);
		if (interface.input(p, &interface) != ERR_OK)
			pbuf_free(p);
	}
	return NULL;
}

static err_t set_up(struct netif *netif)
{
	netif->name[0] = 'b';
	netif->name[1] = 'd';
	netif->output = etharp_output;
	netif->linkoutput = transmit;
	netif->mtu = 1500;
	netif->hwaddr_len = 6;
	memcpy(netif->hwaddr, mac, 6);
	netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_LINK_UP;
	return ERR_OK;
}

static void start(void *semaphore)
{
	sys_sem_signal(semaphore);
}

static void begin(const char *address)
{
	ip4_addr_t ip, mask, gateway;
	pthread_t thread;
	sys_sem_t ready;

	sys_sem_new(&ready, 0);
	tcpip_init(start, &ready);
	sys_sem_wait(&ready);
	ip4addr_aton(address, &ip);
	IP4_ADDR(&mask, 255, 255, 255, 0);
	IP4_ADDR(&gateway, 0, 0, 0, 0);
	LOCK_TCPIP_CORE();
	if (!netif_add(&interface, &ip, &mask, &gateway, NULL, set_up, tcpip_input))
		fail("lwIP takes no interface");
	netif_set_default(&interface);
	netif_set_up(&interface);
	UNLOCK_TCPIP_CORE();
	if (pthread_create(&thread, NULL, receive, NULL))
		fail("no thread");
}

/* --- transfers -------------------------------------------------------------------------------- */

static void check(const uint8_t *data, ssize_t count, uint32_t number, uint32_t at)
{
	for (ssize_t i = 0; i < count; i++) {
		if (data[i] != pattern(number, at + (uint32_t)i))
			fail("a byte came back wrong");
	}
}

/* Send while reading back; then close this way and wait for the board to do the same. */
static void exchange(int s, uint32_t number, uint32_t size)
{
	static uint8_t buffer[CHUNK];
	uint32_t sent = 0, got = 0, moved = 0;
	int64_t deadline = now_ms() + PATIENCE_MS;

	while (got < size) {
		struct pollfd one = { .fd = s, .events = POLLIN };

		if (moved != sent + got) {
			moved = sent + got;
			deadline = now_ms() + PATIENCE_MS;
		}
		if (sent < size)
			one.events |= POLLOUT;
		if (now_ms() > deadline)
			fail("a transfer hangs");
		if (lwip_poll(&one, 1, 1000) <= 0)
			continue;
		if (one.revents & POLLOUT) {
			uint32_t want = size - sent < CHUNK ? size - sent : CHUNK;
			ssize_t done;

			for (uint32_t i = 0; i < want; i++)
				buffer[i] = pattern(number, sent + i);
			done = lwip_send(s, buffer, want, MSG_DONTWAIT);
			if (done < 0 && errno != EWOULDBLOCK && errno != EINPROGRESS)
				fail("sending failed");
			sent += done > 0 ? (uint32_t)done : 0;
		}
		if (one.revents & (POLLIN | POLLERR | POLLHUP)) {
			ssize_t done = lwip_recv(s, buffer, CHUNK, MSG_DONTWAIT);

			if (!done || (done < 0 && errno != EWOULDBLOCK))
				fail("the connection ended before all had come back");
			check(buffer, done, number, got);
			got += done > 0 ? (uint32_t)done : 0;
		}
	}
	if (lwip_shutdown(s, SHUT_WR) || lwip_recv(s, buffer, 1, 0))
		fail("no orderly end");
	lwip_close(s);
}

static struct sockaddr_in place(const char *address, uint16_t port)
{
	struct sockaddr_in p = { .sin_family = AF_INET, .sin_port = htons(port) };

	p.sin_addr.s_addr = address ? ipaddr_addr(address) : 0;
	return p;
}

static int connected(const char *board, uint16_t port)
{
	struct sockaddr_in to = place(board, port);
	int s = lwip_socket(AF_INET, SOCK_STREAM, 0);

	if (s < 0 || lwip_connect(s, (struct sockaddr *)&to, sizeof to))
		fail("no connection");
	return s;
}

/* "Open a connection from your port `local` to my port `port`." */
static void call(uint16_t port, uint16_t local)
{
	uint8_t frame[60] = { 0x02, 0, 0, 0, 0, 2 };

	memcpy(frame + 6, mac, 6);
	frame[12] = CALL_TYPE >> 8;
	frame[13] = CALL_TYPE & 0xff;
	memcpy(frame + 14, &ip_2_ip4(&interface.ip_addr)->addr, 4);
	frame[18] = (uint8_t)(port >> 8);
	frame[19] = (uint8_t)port;
	frame[20] = (uint8_t)(local >> 8);
	frame[21] = (uint8_t)local;
	if (write(wire, frame, sizeof frame) < 0)
		fail("cannot send");
}

static int accepted(int listener, uint16_t port, uint16_t local)
{
	int64_t deadline = now_ms() + PATIENCE_MS;

	while (now_ms() < deadline) {
		struct pollfd one = { .fd = listener, .events = POLLIN };
		struct sockaddr_in from;
		socklen_t length = sizeof from;
		int s;

		call(port, local);
		if (lwip_poll(&one, 1, CALL_MS) <= 0)
			continue;
		s = lwip_accept(listener, (struct sockaddr *)&from, &length);
		if (s >= 0 && ntohs(from.sin_port) == local)
			return s;
		if (s >= 0)
			lwip_close(s); /* a second call of the transfer before */
	}
	fail("the board does not call back");
	return -1;
}

int main(int count, char **arguments)
{
	unsigned octet[6];
	int listener = -1;
	uint16_t port;
	bool server;

	if (count < 8 || sscanf(arguments[2], "%x:%x:%x:%x:%x:%x", octet, octet + 1, octet + 2, octet + 3,
				octet + 4, octet + 5) != 6)
		fail("usage: lwip DEVICE MAC ADDRESS BOARD client|server PORT SIZE...");
	for (int i = 0; i < 6; i++)
		mac[i] = (uint8_t)octet[i];
	server = !strcmp(arguments[5], "server");
	port = (uint16_t)atoi(arguments[6]);
	open_wire(arguments[1]);
	begin(arguments[3]);
	if (server) {
		struct sockaddr_in here = place(NULL, port);

		listener = lwip_socket(AF_INET, SOCK_STREAM, 0);
		if (lwip_bind(listener, (struct sockaddr *)&here, sizeof here) || lwip_listen(listener, 8))
			fail("cannot listen");
	}
	srand((unsigned)now_ms());
	for (int i = 7; i < count; i++) {
		uint32_t size = (uint32_t)strtoul(arguments[i], NULL, 10);
		int64_t from = now_ms();
		uint16_t local = (uint16_t)(49152 + (rand() & 0x3fff));

		exchange(server ? accepted(listener, port, local) : connected(arguments[4], port),
			 (uint32_t)i, size);
		printf("%u bytes each way in %lld ms\n", size, (long long)(now_ms() - from));
		fflush(stdout);
	}
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
