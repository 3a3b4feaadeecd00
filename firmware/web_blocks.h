/*
 * Blocks of the drive for the reader of volumes (store/fat.h), read one at a time by DMA and without waiting. The
 * last eight are kept, as are the numbers of those that could not be read.
 */
#ifndef TREBUCHET_WEB_BLOCKS_H
#define TREBUCHET_WEB_BLOCKS_H

#include "store/fat.h"

void web_blocks_start(void);
/* A fat_read: FAT_BLOCK_LATER has the block read. */
enum fat_block web_blocks_read(void *context, uint32_t lba, uint8_t *block);
/* See whether a block has come, and begin to read the next; only if nobody else uses the drive. */
void web_blocks_serve(bool may);
/* Nothing is being read, or to be read. */
bool web_blocks_idle(void);
/* Forget which blocks could not be read; or `all`, as of another medium. */
void web_blocks_forget(bool all);

#endif
