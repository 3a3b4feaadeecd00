/*
 * The commands `config` and `image`; (rows of the table in commands.c):
 *
 *   { "config", "[show|set KEY VALUE|unset KEY|save|erase]", "settings in flash", command_config },
 *   { "image", "[show|erase|boot]", "the application in flash", command_image },
 */
#ifndef TREBUCHET_FLASH_COMMANDS_H
#define TREBUCHET_FLASH_COMMANDS_H

#include "command.h"
#include "text.h"

uint8_t command_config(struct words *words, struct text *out);
uint8_t command_image(struct words *words, struct text *out);

#endif
