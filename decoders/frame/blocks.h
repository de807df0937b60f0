/* SPDX-License-Identifier: MIT */
/*
 * Where the blocks of a DSTREAM capture begin: 504 bytes of frames, then an 8-byte footer. What a
 * footer looks like is documented nowhere; but without the footers, FSYNCs have whole frames
 * between them.
 *
 * No state; threads as one likes.
 */
#ifndef TL_FRAME_BLOCKS_H
#define TL_FRAME_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#define TL_BLOCK_BYTES 512
#define TL_BLOCK_USE   504 /* the rest is the footer */

/*
 * Bytes to look at, about a place where a frame was cut short. With an FSYNC in front of each frame
 * each fifth block is alike, and one of them at least tells to the byte where its footer is, by an
 * FSYNC beside it or cut by it; where there are fewer of them, the footer in front of that place.
 */
#define TL_BLOCKS_BEHIND ((size_t)2 * TL_BLOCK_BYTES)
#define TL_BLOCKS_AHEAD  ((size_t)10 * TL_BLOCK_BYTES)
#define TL_BLOCKS_WINDOW (TL_BLOCKS_BEHIND + TL_BLOCKS_AHEAD)

/*
 * Where the first block of p[n] (TL_BLOCKS_WINDOW at most) begins: 0 unless another place is
 * better; of such as are alike, the one with the fewest bytes lost or added.
 */
unsigned tl_blocks_find(const uint8_t *p, size_t n);

#endif
