/*
 * printf for LiteX's libraries (Makefile: --wrap), which know of no other way to say something:
 * picolibc's takes 5 KB, and a divider that the CPU does not have. Conversions %c %s %d %u %x %p %%,
 * with a width, zeros and `l`; not with a precision, `ll` or signs. New code uses text.h.
 *
 * LiteX's start measures and prints the DRAM's bandwidth, too, which the CPU limits: 700 bytes, for
 * which the ROM of the boards with DDR3 would need four more block RAMs.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "serial.h"
#include "text.h"

int __wrap_printf(const char *format, ...);
void __wrap_memspeed(unsigned *address, unsigned long size, bool read_only, bool random);

struct conversion {
	unsigned width;
	bool zeros;
	char kind;
};

/* Read what follows a `%`; returns the place after it. */
static const char *parse(const char *at, struct conversion *to)
{
	to->zeros = *at == '0';
	to->width = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		to->width = (to->width << 3) + (to->width << 1) + (unsigned)(*at - '0');
	while (*at == 'l')
		at++;
	to->kind = *at;
	return *at == '\0' ? at : at + 1;
}

static void hexadecimal(struct text *text, uint32_t value)
{
	unsigned digits = 1;

	while (digits < 8 && value >> (4 * digits) != 0)
		digits++;
	text_hex(text, value, digits);
}

static void number(struct text *text, char kind, uint32_t value)
{
	if (kind == 'd' && value >> 31) {
		text_char(text, '-');
		value = -value;
	}
	if (kind == 'x' || kind == 'p')
		hexadecimal(text, value);
	else
		text_unsigned(text, value);
}

static void write_padded(const char *string, size_t length, const struct conversion *as)
{
	for (size_t i = length; i < as->width; i++)
		serial_write(as->zeros ? "0" : " ", 1);
	serial_write(string, length);
}

int __wrap_printf(const char *format, ...)
{
	va_list arguments;
	char buffer[16];

	va_start(arguments, format);
	while (*format != '\0') {
		struct text text = text_in(buffer, sizeof(buffer));
		struct conversion as;
		const char *end = strchr(format, '%');

		if (end == NULL)
			end = format + strlen(format);
		serial_write(format, (size_t)(end - format));
		if (*end == '\0')
			break;
		format = parse(end + 1, &as);
		if (as.kind == 's') {
			const char *string = va_arg(arguments, const char *);

			write_padded(string, strlen(string), &as);
			continue;
		}
		if (as.kind == 'c')
			text_char(&text, (char)va_arg(arguments, int));
		else if (strchr("duxp", as.kind) != NULL)
			number(&text, as.kind, va_arg(arguments, uint32_t));
		else
			text_char(&text, as.kind);
		write_padded(buffer, text.length, &as);
	}
	va_end(arguments);
	return 0;
}

void __wrap_memspeed(unsigned *address, unsigned long size, bool read_only, bool random)
{
	(void)address;
	(void)size;
	(void)read_only;
	(void)random;
}
