/* SPDX-License-Identifier: MIT */
/* What the de-framer's kernels share. Not for users. */
#ifndef TL_FRAME_VECTORS_H
#define TL_FRAME_VECTORS_H

#include <stdint.h>

/* The even bytes of four frames, where IDs may be, as bits. */
#define EVEN 0x5555555555555555u
/* An ID there has no byte behind it that could delay it. */
#define BYTE_14 0x4000400040004000u

/* Of each byte of a frame: the bit of byte 15 that is its lowest bit; 0: it has its own. */
#define TL_BIT_OF_BYTE 1, 0, 2, 0, 4, 0, 8, 0, 16, 0, 32, 0, 64, 0, (char)128, 0

/* The bytes of four frames in their order, without the bytes 15. */
extern const uint8_t tl_frame_squeeze[64];

#endif
