#include "log_status.h"

#include <generated/trebuchet_status_codes.h>

#include "command.h"
#include "log.h"

#define MOST 96

void log_status(const char *part, const char *text, uint8_t status)
{
	char line[MOST];
	struct text all = text_in(line, sizeof(line) - 1);

	text_plain(&all, text);
	text_plain(&all, ": ");
	text_plain(&all, command_status_name(status));
	line[all.length] = '\0';
	log_write(status == TREBUCHET_STATUS_OK ? LOG_INFO : LOG_WARN, part, line);
}
