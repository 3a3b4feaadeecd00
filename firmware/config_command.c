#include "flash_commands.h"

#include <string.h>

#include <generated/trebuchet_status_codes.h>

#include "settings.h"

static struct piece piece_of(const char *string)
{
	return (struct piece){ string, strlen(string) };
}

static uint8_t show(struct text *out)
{
	const struct config *config = settings();

	if (config->copy < 0)
		text_plain(out, "# nothing is saved\n");
	for (size_t i = 0; i < config->block.length; i++)
		text_char(out, config->block.text[i]);
	return TREBUCHET_STATUS_OK;
}

/* What may be set: the form of a known key, or the keys. */
static void explain(const char *key, struct text *out)
{
	const char *form;

	if (strncmp(key, "peer", 4) == 0)
		key = "peerN";
	for (unsigned i = 0; (form = config_key_form(i)) != NULL; i++) {
		const char *end = strchr(form, '=');

		if (piece_equals((struct piece){ form, (size_t)(end - form) }, key)) {
			text_plain(out, "the form is ");
			text_plain(out, form);
			return;
		}
	}
	for (unsigned i = 0; i < CONFIG_TCP; i++) {
		const struct config_number *number = &config_tcp[i];

		if (strcmp(number->key, key) == 0) {
			text_plain(out, "from ");
			text_unsigned(out, number->low);
			text_plain(out, " to ");
			text_unsigned(out, number->high);
			return;
		}
	}
	text_plain(out, "keys are");
	for (unsigned i = 0; (form = config_key_form(i)) != NULL; i++) {
		text_char(out, ' ');
		while (*form != '=')
			text_char(out, *form++);
	}
	text_plain(out, " tcp_...");
}

static uint8_t set(const char *key, const char *value, struct text *out)
{
	uint8_t status = config_set(settings(), piece_of(key), piece_of(value));

	if (status == TREBUCHET_STATUS_BAD_ARGUMENT)
		explain(key, out);
	return status;
}

uint8_t command_config(struct words *words, struct text *out)
{
	unsigned count = words->count;

	if (settings() == NULL)
		return TREBUCHET_STATUS_NO_CONFIG;
	if (count == 1 || (count == 2 && words_is(words, 1, "show")))
		return show(out);
	if (count == 4 && words_is(words, 1, "set"))
		return set(words->word[2], words->word[3], out);
	if (count == 3 && words_is(words, 1, "unset"))
		return config_unset(settings(), piece_of(words->word[2]));
	if (count == 2 && words_is(words, 1, "save"))
		return settings_save();
	if (count == 2 && words_is(words, 1, "erase"))
		return settings_erase();
	return TREBUCHET_STATUS_BAD_ARGUMENT;
}
