#include "web.h"

#include <generated/trebuchet_status_codes.h>

uint8_t web_judge(const struct web_image *image, size_t size, const struct web_room *room)
{
	uint32_t offset = image->index - room->base;
	uint32_t buckets = image->buckets;

	size -= sizeof(*image);
	if (image->layout != room->layout)
		return TREBUCHET_STATUS_WRONG_BOARD;
	if (size != image->length)
		return size < image->length ? TREBUCHET_STATUS_TRUNCATED : TREBUCHET_STATUS_BAD_LENGTH;
	if (image->length > room->bytes)
		return TREBUCHET_STATUS_TOO_LARGE;
	if (image->base != room->base)
		return TREBUCHET_STATUS_STALE;
	if (buckets == 0 || (buckets & (buckets - 1)) != 0 || buckets > room->bytes >> 6 ||
	    offset % 64 != 0 || offset > image->length || image->length - offset < buckets << 6)
		return TREBUCHET_STATUS_BAD_DATA;
	return TREBUCHET_STATUS_OK;
}
