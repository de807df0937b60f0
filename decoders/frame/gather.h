/* SPDX-License-Identifier: MIT */
/*
 * The hot loop of the de-framer: CoreSight frames without an ID byte to plain bytes.
 *
 * In a frame, the lowest bit of each even byte tells data (0) from an ID (1); the data's own
 * lowest bits are in byte 15. A frame whose eight even bytes are all data gives 15 bytes.
 */
#ifndef TL_FRAME_GATHER_H
#define TL_FRAME_GATHER_H

#include "simd/cpu.h"

#include <stddef.h>
#include <stdint.h>

#define TL_GATHER_SLACK 64 /* bytes that may be written behind the last one of `out` */

/*
 * Take frames from `in` while they hold nothing but data, at most `frames`; write 15 bytes
 * for each to `out`, which has room for 15 * frames + TL_GATHER_SLACK bytes. Returns how many
 * frames were taken. Pure, thread-safe.
 */
typedef size_t tl_gather(uint8_t *out, const uint8_t *in, size_t frames);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_gather *tl_gather_variant(enum tl_cpu level);

#define TL_GATHER_ID_BITS 0x0001000100010001u /* of eight bytes: where an ID says so */

/*
 * The lowest bits of a frame's even bytes, spread to their places: OR it to the frame's first
 * (half 0) or last (half 1) eight bytes, read as little-endian numbers. `aux` is byte 15.
 *
 * The multiplication puts bit i to bit 16 * i; its other products fall between those places.
 */
static inline uint64_t tl_gather_bits(uint8_t aux, unsigned half)
{
    const uint64_t bits = (half ? aux >> 4 : aux) & 15;
    return bits * 0x0000200040008001u & TL_GATHER_ID_BITS;
}

#endif
