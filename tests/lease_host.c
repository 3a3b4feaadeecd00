/* The command `lease` alone in the table; registers are an array of the test's. */
#include <stdio.h>

#include "command.h"
#include "lease.h"
#include "log.h"

uint32_t (*bus_read)(uint32_t address);
void (*bus_write)(uint32_t address, uint32_t value);
char host_log[1 << 16]; /* cleared by the test; nothing is kept */

const struct command commands[] = {
	{ "lease", "[EPOCH|on|off]", "epoch that messages must have: show or raise it", lease_command },
};
const unsigned command_count = 1;

static char output[512];

/* Carry out a line; what it says is returned. */
const char *lease_run(const char *line, unsigned length, uint8_t *status)
{
	struct text out = text_in(output, sizeof(output) - 1);

	*status = command_run(line, length, &out);
	output[out.length] = '\0';
	return output;
}

void log_write(enum log_level level, const char *part, const char *text)
{
	(void)level, (void)part, (void)text;
}
