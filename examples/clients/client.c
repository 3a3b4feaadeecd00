/* client HOST PORT TEXT: have a board's role work on TEXT; its result goes to standard output.
 * cc -Wall -o client client.c */
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t get32(const unsigned char *p)
{
	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(unsigned char *p, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		p[i] = (unsigned char)(value >> 8 * i);
}

static void die(const char *what)
{
	fprintf(stderr, "client: %s\n", what);
	exit(1);
}

static void receive(FILE *board, void *to, size_t size)
{
	if (fread(to, 1, size, board) != size)
		die("the board closed the connection");
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *to;
	unsigned char head[12] = { 3 }; /* a data message: type, 3 zero bytes, size, ID */

	if (argc != 4 || getaddrinfo(argv[1], argv[2], &hints, &to) != 0)
		die("use: client HOST PORT TEXT");
	int s = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
	if (s < 0 || connect(s, to->ai_addr, to->ai_addrlen) != 0)
		die("cannot connect");
	FILE *board = fdopen(s, "r+b");
	size_t length = strlen(argv[3]);
	put32(head + 4, (uint32_t)(4 + length)); /* the ID counts */
	put32(head + 8, 1);
	fwrite(head, 1, sizeof head, board);
	fwrite(argv[3], 1, length, board);
	fflush(board);
	receive(board, head, 12); /* every answer has 12 bytes at least */
	if (head[0] == 2) {
		fprintf(stderr, "client: refused with status %d\n", head[8]);
		return 1;
	}
	uint32_t size = get32(head + 4) - 4;
	char *result = malloc(size + 1);
	receive(board, result, size);
	fwrite(result, 1, size, stdout);
	return 0;
}
