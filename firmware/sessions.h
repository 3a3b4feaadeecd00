/* The command `sessions`: use of the TCP engine, or what its sessions are doing. */
#ifndef TREBUCHET_SESSIONS_H
#define TREBUCHET_SESSIONS_H

#include "command.h"

uint8_t sessions_command(struct words *words, struct text *out);

#endif
