#include "buffer.h"

uint32_t buffer[BUFFER_BYTES / 4];

struct text buffer_text(void)
{
	return text_in((char *)buffer, sizeof(buffer));
}
