/* SPDX-License-Identifier: MIT */
/* Interface between the two halves of the AVX-512 kernels: stream state calls trace state. */
#ifndef TL_ETM4_UNROLLED_AVX512_H
#define TL_ETM4_UNROLLED_AVX512_H

#include "etm4/unrolled_parts.h"

#include <stdalign.h>

static alignas(64) const uint8_t tl_avx512_lanes[64] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* Addresses resolved at once; with the three preceding ones they fill 64 lanes. */
#define TL_AVX512_ADDRESSES 61

/* The trace state between two batches of addresses. */
struct tl_etm4_past {
    alignas(32) uint64_t last[4]; /* the last three, oldest first, bit 0: IS1; [0] is unused */
    size_t checked;               /* packets of the tape whose contexts have been examined */
};

/* Load and store the address registers. */
void tl_etm4_past_read(struct tl_etm4_past *past, const struct tl_etm4_packetizer *p);

/* Resolve the next TL_AVX512_ADDRESSES addresses found, or all. */
void tl_etm4_resolve_some(struct tl_etm4_packetizer *p, struct tl_etm4_past *past);
void tl_etm4_resolve_all(struct tl_etm4_packetizer *p, struct tl_etm4_past *past);

#endif
