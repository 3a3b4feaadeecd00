/*
 * The log: lines for the console, and the last ones of them for the command `log`. They are kept
 * over a restart, so that they tell what led to it. Not to be called from interrupt handlers.
 */
#ifndef TREBUCHET_LOG_H
#define TREBUCHET_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* A line in the log is at most so long; more is cut. */
#define LOG_MAX_LINE 127

/* Take over what is left of the lines before the restart, if anything. */
void log_start(void);
/* From now on lines are printed in this way; a line has no line break. */
void log_print_with(void (*print)(const char *line, size_t length));

/* A line `[   12.345] info PART: TEXT`. All are kept, those of the set level or above printed. */
void log_write(enum log_level level, const char *part, const char *text);

static inline void log_error(const char *part, const char *text)
{
	log_write(LOG_ERROR, part, text);
}

static inline void log_warn(const char *part, const char *text)
{
	log_write(LOG_WARN, part, text);
}

static inline void log_info(const char *part, const char *text)
{
	log_write(LOG_INFO, part, text);
}

static inline void log_debug(const char *part, const char *text)
{
	log_write(LOG_DEBUG, part, text);
}

/* What is printed: this level and those above it. LOG_INFO after start. */
enum log_level log_level(void);
const char *log_level_name(enum log_level level);
/* Set the level by its name; false when there is none of this name. */
bool log_set_level(const char *name);

/* Append the lines that are kept, the oldest first. */
void log_show(struct text *out);

#endif
