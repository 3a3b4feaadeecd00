/* Outcomes in the log. */
#ifndef TREBUCHET_LOG_STATUS_H
#define TREBUCHET_LOG_STATUS_H

#include <stdint.h>

/* A line "PART: TEXT: STATUS", a warning unless the status is OK. */
void log_status(const char *part, const char *text, uint8_t status);

#endif
