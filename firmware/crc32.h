/* The CRC-32 of Ethernet, zip and zlib: reflected, polynomial 0x04C11DB7. */
#ifndef TREBUCHET_CRC32_H
#define TREBUCHET_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of some bytes after others, whose CRC is `before`; 0 before the first. */
uint32_t crc32_of(uint32_t before, const void *data, size_t length);

#endif
