/*
 * Hands the parsers of images and configuration blocks copies of what comes on standard input, cut,
 * with flipped bits and with random changes, that end where the address sanitizer sees it.
 *
 *   flash_parsers image|config COUNT [SEED]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"
#include "image.h"
#include "flash.h"
#include "flash_port.h"
static uint64_t state;
static uint32_t chance(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}
void flash_working(void) { }
uint8_t flash_erase(uint32_t a, uint32_t n) { (void)a, (void)n; return 0; }
uint8_t flash_program(uint32_t a, const void *f, size_t n) { (void)a, (void)f, (void)n; return 0; }
void flash_read(uint32_t a, void *t, size_t n) { (void)a; memset(t, 0xff, n); }
static unsigned parse(const uint8_t *data, size_t size, int kind)
{
	uint8_t *copy = malloc(size ? size : 1);
	unsigned status;
	memcpy(copy, data, size);
	if (kind) {
		status = image_check((struct image *)copy, size, "sim");
	} else {
		struct config *config = malloc(sizeof(*config));
		struct piece line;
		char *text = (char *)config->block.text;
		status = config_check((struct config_block *)copy, size);
		/* Whatever the text is: its lines are looked through and changed. */
		config_clear(config);
		config->block.length = (uint16_t)(size < CONFIG_TEXT ? size : CONFIG_TEXT);
		memcpy(text, copy, config->block.length);
		config_wrong_line(config, &line);
		config_set(config, (struct piece){ "ip", 2 }, (struct piece){ "10.0.0.1", 8 });
		config_unset(config, (struct piece){ "ip", 2 });
		config_allows((struct piece){ "peer7", 5 }, (struct piece){ (char *)copy, size });
		free(config);
	}
	free(copy);
	return status;
}
int main(int argc, char **argv)
{
	static const uint8_t words[] = "=\n.:,0";
	static uint8_t data[4096], mutant[4096];
	unsigned long count = strtoul(argv[2], NULL, 0), good = 0;
	size_t size = fread(data, 1, sizeof(data), stdin);
	int kind = argv[1][0] == 'i';
	state = argc > 3 ? strtoul(argv[3], NULL, 0) : 1;
	for (size_t n = 0; n < size; n++)
		if (parse(data, n, kind) == 0)
			return 1;
	for (size_t bit = 0; bit < 8 * size; bit++) {
		data[bit / 8] ^= 1 << bit % 8;
		if (parse(data, size, kind) == 0)
			return 2;
		data[bit / 8] ^= 1 << bit % 8;
	}
	for (unsigned long i = 0; i < count; i++) {
		size_t length = chance(4) ? size : chance((uint32_t)size + 1);
		memcpy(mutant, data, size);
		for (uint32_t n = chance(8); n > 0; n--)
			mutant[chance((uint32_t)size)] = chance(2) ? (uint8_t)chance(256) : words[chance(6)];
		good += parse(mutant, length, kind) == 0;
	}
	printf("%lu\n", good);
	return 0;
}
