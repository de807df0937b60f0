/* SPDX-License-Identifier: MIT */
/*
 * The other hot loop of the de-framer: CoreSight frames with ID bytes among the data, four at a
 * time. The bytes 15 go, the lowest bits come into place, ID bytes stay where they are and are
 * told by bit masks: what lies between two IDs is then a stretch of the output that can be handed
 * on without another copy.
 */
#ifndef TL_FRAME_SPLIT_H
#define TL_FRAME_SPLIT_H

#include "simd/cpu.h"

#include <stddef.h>
#include <stdint.h>

#define TL_SPLIT_SLACK 64 /* bytes that may be written behind the last one of `out` */

/* Of four frames: bit i is their byte i. */
struct tl_split_marks {
    uint64_t ids;  /* ID bytes */
    uint64_t late; /* … that take effect only behind the byte that follows them */
};

/*
 * Take four frames a step from `in` while none of their even bytes is ff, at most `fours` times.
 * Writes 60 bytes a step to `out`, which has room for 60 * fours + TL_SPLIT_SLACK bytes, and one
 * of `marks`. What stands in the place of an ID byte is the same for all variants. Returns the
 * steps taken. Pure, thread-safe.
 */
typedef size_t tl_split(uint8_t *out, struct tl_split_marks *marks, const uint8_t *in,
                        size_t fours);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_split *tl_split_variant(enum tl_cpu level);

#endif
