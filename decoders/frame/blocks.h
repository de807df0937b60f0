/* SPDX-License-Identifier: MIT */
/*
 * Block boundaries of a DSTREAM capture: 504 bytes of frames, then an 8-byte footer. The footer's
 * format is undocumented; but once footers are removed, there are whole frames between FSYNCs.
 *
 * Stateless; thread-safe.
 */
#ifndef TL_FRAME_BLOCKS_H
#define TL_FRAME_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define TL_BLOCK_BYTES 512
#define TL_BLOCK_USE   504 /* bytes before the footer */

/*
 * Bytes to examine around a place where a frame was cut short. With an FSYNC before each frame, the
 * layout repeats every five blocks, and at least one of those has an FSYNC next to or cut by its
 * footer, which locates the footer to the byte. With fewer FSYNCs, the footer is taken to be before
 * that place.
 */
#define TL_BLOCKS_AFTER  ((size_t)2 * TL_BLOCK_BYTES)
#define TL_BLOCKS_AHEAD  ((size_t)10 * TL_BLOCK_BYTES)
#define TL_BLOCKS_WINDOW (TL_BLOCKS_AFTER + TL_BLOCKS_AHEAD)

/*
 * Find the start of the first block in p[n] (at most TL_BLOCKS_WINDOW): 0 unless another position
 * is better; among equals, the one with the fewest bytes lost or added.
 */
unsigned tl_blocks_find(const uint8_t *p, size_t n);

#endif
