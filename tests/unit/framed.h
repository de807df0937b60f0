/* SPDX-License-Identifier: MIT */
/* Runs of a source that has all CoreSight frames for itself. Header only. */
#ifndef TL_TESTS_FRAMED_H
#define TL_TESTS_FRAMED_H

#include "frame/run.h"

#include <assert.h>

/* Offset of byte `i` of the source. */
static inline uint64_t framed_offset(uint64_t i)
{
    return i / 15 * 16 + i % 15;
}

/* The run of its bytes [i, i + n), which are at `p`; valid until the next call. */
static inline struct tl_run framed_run(const uint8_t *p, size_t n, uint64_t i)
{
    static uint16_t place[61440 + 1];
    const uint64_t base = framed_offset(i);
    assert(n < sizeof place / sizeof *place);
    for (size_t k = 0; k <= n; k++)
        place[k] = (uint16_t)(framed_offset(i + k) - base);
    return (struct tl_run){p, n, base, place};
}

#endif
