/* SPDX-License-Identifier: MIT */
/* What the de-framer's kernels share. Not for users. */
#ifndef TL_FRAME_VECTORS_H
#define TL_FRAME_VECTORS_H

#include "frame/gather.h"

#include <stdbool.h>
#include <stdint.h>

/* The even bytes of four frames, where IDs may be, as bits. */
#define EVEN 0x5555555555555555u
/* The bytes 15. */
#define AUX_BYTES 0x8000800080008000u
/* An ID there has no byte behind it that could delay it. */
#define BYTE_14 0x4000400040004000u

/* Of each byte of a frame: the bit of byte 15 that is its lowest bit; 0: it has its own. */
#define TL_BIT_OF_BYTE 1, 0, 2, 0, 4, 0, 8, 0, 16, 0, 32, 0, 64, 0, (char)128, 0

/* Of the halves of a frame: is any even byte ff? */
static inline bool has_ff(uint64_t low, uint64_t high)
{
    const uint64_t even = 0x00ff00ff00ff00ffu, ones = TL_GATHER_ID_BITS;
    const uint64_t a = (~low & even) - ones, b = (~high & even) - ones;
    return ((a | b) & 0x8000800080008000u) != 0;
}

/* The lowest bits of the even bytes of half a frame, as bits 0, 2, 4 and 6. */
static inline unsigned pack_even(uint64_t half)
{
    const uint64_t places = (uint64_t)1 << 48 | (uint64_t)1 << 34 | 1 << 20 | 1 << 6;
    return (unsigned)((half & TL_GATHER_ID_BITS) * places >> 48) & 0x55;
}

/* The bytes of four frames in their order, without the bytes 15. */
extern const uint8_t tl_frame_squeeze[64];

#if defined(__aarch64__)
#include <arm_neon.h>

/* One bit of each of 64 bytes, which are all ones or zeros. */
static inline uint64_t bits_neon(const uint8x16_t byte[4])
{
    static const uint8_t place[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(place);
    const uint8x16_t low = vpaddq_u8(vandq_u8(byte[0], bit), vandq_u8(byte[1], bit));
    const uint8x16_t high = vpaddq_u8(vandq_u8(byte[2], bit), vandq_u8(byte[3], bit));
    const uint8x16_t all = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}
#endif

#endif
