/* SPDX-License-Identifier: MIT */
/*
 * A run: bytes of one trace source in their order, as L1 (a de-multiplexer) hands them to L2 (a
 * packet decoder), with the file offset of each byte. Bytes out of CoreSight frames are not
 * adjacent in the file; then an array says where each of them is.
 */
#ifndef TL_FRAME_RUN_H
#define TL_FRAME_RUN_H

#include <stddef.h>
#include <stdint.h>

struct tl_run {
    const uint8_t *p;      /* borrowed for the call; at least 1 byte */
    size_t n;              /* bytes */
    uint64_t base;         /* file offset that places count from */
    const uint16_t *place; /* n + 1, ascending: of each byte and behind the last one; borrowed for
                              the call. NULL: byte i is at place i */
};

/* File offset of byte `i` of the run (i may equal n: the offset behind it). */
static inline uint64_t tl_run_offset(const struct tl_run *run, size_t i)
{
    return run->base + (run->place ? run->place[i] : i);
}

/* The tail of a run from byte `i` on (i <= n). */
static inline struct tl_run tl_run_from(const struct tl_run *run, size_t i)
{
    if (run->place)
        return (struct tl_run){run->p + i, run->n - i, run->base, run->place + i};
    return (struct tl_run){run->p + i, run->n - i, run->base + i, NULL};
}

#endif
