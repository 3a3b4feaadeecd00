// firmware: command text
#include "fuzz.h"

#include <string.h>

#include "command.h"
#include "generated/trebuchet_status_codes.h"

const char *const fuzz_dictionary[] = {
	"help", "peek", "number", " ", "0x", "0xffffffff", "4294967295", "4294967296", "\t", "\r\n", NULL,
};

static uint8_t number(struct words *words, struct text *out)
{
	uint32_t value;

	for (unsigned i = 1; i < words->count; i++) {
		if (!words_number(words, i, &value))
			return TREBUCHET_STATUS_BAD_ARGUMENT;
		text_unsigned(out, value);
	}
	require(!words_number(words, words->count, &value));
	require(!words_is(words, words->count, ""));
	return words->count > 3 ? TREBUCHET_STATUS_BUSY : TREBUCHET_STATUS_OK;
}

static uint8_t echo(struct words *words, struct text *out)
{
	require(words->count >= 1 && words->count <= COMMAND_MAX_WORDS);
	for (unsigned i = 0; i < words->count; i++) {
		require(words->word[i][0] != '\0');
		require(words->word[i] >= words->line);
		require(words->word[i] + strlen(words->word[i]) < words->line + sizeof(words->line));
		text_plain(out, words->word[i]);
	}
	return words->count % 2 ? TREBUCHET_STATUS_OK : TREBUCHET_STATUS_BAD_ARGUMENT;
}

const struct command commands[] = {
	{ "help", "[COMMAND]", "list the commands", command_help },
	{ "peek", "ADDRESS [COUNT]", "say the words", echo },
	{ "number", "NUMBER...", "say the numbers", number },
};
const unsigned command_count = sizeof(commands) / sizeof(commands[0]);

void fuzz_one(const char *data, size_t length)
{
	/* Sometimes so small that nothing fits. */
	char buffer[256];
	struct text out = text_in(buffer, length % 7 == 0 ? length % 64 : sizeof(buffer));
	uint8_t status = command_run(data, length, &out);

	require(out.length <= out.room);
	require(command_status_name(status)[0] != '?');
	if (status != TREBUCHET_STATUS_OK && status != TREBUCHET_STATUS_NO_ROOM && out.room > 8)
		require(memcmp(buffer, "error: ", 7) == 0);
}
