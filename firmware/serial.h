/* The UART by interrupts, without spinning: what the CPU waits for, it waits for with `wfi`. */
#ifndef TREBUCHET_SERIAL_H
#define TREBUCHET_SERIAL_H

#include <stdbool.h>
#include <stddef.h>

void serial_start(void);
/* Write; waits while the queue of 128 bytes is full. Line breaks are written as CR LF. */
void serial_write(const char *data, size_t length);
void serial_string(const char *string);
/* The next byte that has come; false if there is none. */
bool serial_read(char *byte);
/* Write all that waits, by polling: for the time after which there is no other. */
void serial_flush(void);

#endif
