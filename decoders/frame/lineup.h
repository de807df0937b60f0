/* SPDX-License-Identifier: MIT */
/*
 * CoreSight frames with ID bytes among the data made easy to deal out (frame/deal.h): the bytes 15
 * go, the lowest bits come into place, an ID is in force from the byte behind it to the next ID,
 * and where they all are is a list. Four frames are a group.
 */
#ifndef TL_FRAME_LINEUP_H
#define TL_FRAME_LINEUP_H

#include "simd/cpu.h"

#include <stddef.h>
#include <stdint.h>

#define TL_LINEUP_GROUPS 128 /* at once */
#define TL_LINEUP_BYTES  60  /* of a group */
#define TL_LINEUP_SLACK  64  /* bytes behind the last one that may be read and written */

/*
 * Frames lined up. An ID that takes effect only behind the byte that follows it has changed places
 * with that byte: it is an odd byte of the 15 of its frame.
 */
struct tl_lined {
    size_t groups;
    size_t quiet; /* groups at the end without an ID */
    size_t n_ids;
    uint16_t at[TL_LINEUP_GROUPS * 32 + 16]; /* the bytes that are IDs, as they stand in a frame */
    uint8_t bytes[TL_LINEUP_GROUPS * TL_LINEUP_BYTES + TL_LINEUP_SLACK];
};

/*
 * Line up more groups, those of `in` behind the ones there are, until there are `groups`, the last
 * `quiet` have no ID, or the next one has ff in an even byte. Pure, thread-safe.
 */
typedef void tl_lineup(struct tl_lined *lined, const uint8_t *in, size_t groups, size_t quiet);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_lineup *tl_lineup_variant(enum tl_cpu level);

#endif
