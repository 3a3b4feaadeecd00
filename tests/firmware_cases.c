/*
 * The firmware's portable parts on inputs from outside: test_firmware_cpu.py compiles this for its
 * machine and for the board's CPU, and holds the outputs against each other.
 *
 * An input is a row of cases: what (1 byte), a number (1), bytes (2), the bytes. An output is for each
 * case: bytes (2), the bytes. All numbers have their low byte first.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "http.h"
#include "status.h"
#include "text.h"

enum { JUDGE = 1, HEAD, UNSIGNED, HEX, JSON, MAC, IP, STATUS };

/* Texts are written into so much, so that some do not fit. */
#define MAX_ROOM 4096

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *input, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned k = 0; k < bytes && input->at < input->end; k++)
		value |= (uint64_t)*input->at++ << (8 * k);
	return value;
}

static uint32_t any_register(uint32_t address)
{
	return address * 2654435761u;
}

static void status_case(struct text *text, struct input *data, unsigned count)
{
	static const struct status_entry entries[] = {
		{ "tcp", "sessions_used", 0x100, 1 }, { "tcp", "bytes", 0x104, 2 },
		{ "ltl", "frames", 0x200, 1 }, { "ecg", "jobs", 0x300, 2 },
	};
	char version[32] = "";
	struct status_info info = { .version = version, .board = "sim", .start = "power",
		.memory_test = "good", .registers = "0123" };

	info.uptime_ms = (uint32_t)take(data, 4);
	for (unsigned k = 0; k + 1 < sizeof(version) && data->at < data->end; k++)
		version[k] = (char)take(data, 1);
	status_write(text, &info, entries, count % 5, any_register);
}

static void text_case(struct text *text, unsigned what, unsigned number, struct input *data)
{
	char string[MAX_ROOM];
	size_t length = (size_t)(data->end - data->at);

	if (what == HEAD) {
		enum http_status status = (enum http_status)take(data, 2);

		http_head(text, status, (enum http_page)(number & 1), (size_t)take(data, 4));
	} else if (what == UNSIGNED) {
		text_unsigned(text, take(data, 8));
	} else if (what == HEX) {
		text_hex(text, (uint32_t)take(data, 4), number % 9);
	} else if (what == JSON && length < sizeof(string)) {
		memcpy(string, data->at, length);
		string[length] = '\0';
		text_json(text, string);
	} else if (what == MAC) {
		text_mac(text, take(data, 8));
	} else if (what == IP) {
		text_ip(text, (uint32_t)take(data, 4));
	} else if (what == STATUS) {
		status_case(text, data, number);
	}
}

static uint8_t *put(uint8_t *out, uint32_t value)
{
	out[0] = (uint8_t)value;
	out[1] = (uint8_t)(value >> 8);
	return out + 2;
}

/* Answers the cases of `input`, and returns the number of bytes written to `output`. */
size_t run_cases(const uint8_t *input, size_t length, uint8_t *output);
size_t run_cases(const uint8_t *input, size_t length, uint8_t *output)
{
	static char buffer[MAX_ROOM];
	struct input rest = { input, input + length };
	uint8_t *out = output;

	while (rest.at < rest.end) {
		unsigned what = (unsigned)take(&rest, 1), number = (unsigned)take(&rest, 1);
		size_t bytes = (size_t)take(&rest, 2);
		struct input data = { rest.at, rest.at + bytes };

		rest.at += bytes;
		if (what == JUDGE) {
			enum http_page page = HTTP_PAGE_STATUS;
			uint32_t status = (uint32_t)http_judge((const char *)data.at, bytes, &page);

			out = put(put(out, 2), status | (uint32_t)page << 15);
			continue;
		}

		size_t room = (size_t)take(&data, 2) % MAX_ROOM;
		struct text text = text_in(buffer, room);

		text_case(&text, what, number, &data);
		out = put(out, (uint32_t)text.length + 1);
		*out++ = text.overflow;
		memcpy(out, buffer, text.length);
		out += text.length;
	}
	return (size_t)(out - output);
}
