/* SPDX-License-Identifier: MIT */
/*
 * A run: consecutive bytes of one trace source, as passed from a demultiplexer (L1) to a packet
 * decoder (L2), with the file offset of each byte. Bytes from CoreSight frames are not contiguous
 * in the file; for those an array gives their positions.
 */
#ifndef TL_FRAME_RUN_H
#define TL_FRAME_RUN_H

#include <stddef.h>
#include <stdint.h>

struct tl_run {
    const uint8_t *p; /* borrowed for the call; at least 1 byte */
    size_t n;         /* bytes */
    uint64_t base;    /* file offset that places are relative to */
    /* n + 1 ascending places: of each byte and of the end; borrowed for the call. NULL: byte i is
     * at place i. */
    const uint16_t *place;
};

/* File offset of byte `i` of the run (i == n: the offset after it). */
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
