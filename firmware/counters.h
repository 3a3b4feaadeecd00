/* The state and the counters of this board, as text. */
#ifndef TREBUCHET_COUNTERS_H
#define TREBUCHET_COUNTERS_H

#include <stdint.h>

#include "command.h"
#include "text.h"

/* The status page. */
void counters_status(struct text *out);

/* The rows `status` and `counters` of the table of commands. */
uint8_t counters_status_command(struct words *words, struct text *out);
uint8_t counters_command(struct words *words, struct text *out);

#endif
