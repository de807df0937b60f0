/* SPDX-License-Identifier: MIT */
/*
 * A run: consecutive bytes of one trace source, as L1 (a de-multiplexer) hands them to L2
 * (a packet decoder), with the true file offset of each byte.
 *
 * Bytes of CoreSight frames are not adjacent in the file: 15 of a frame's 16 bytes can be
 * data. A run that spans frames covers only frames without an ID change, so that every
 * offset follows from the first byte's place alone and nothing has to be stored per byte.
 */
#ifndef TL_FRAME_RUN_H
#define TL_FRAME_RUN_H

#include <stddef.h>
#include <stdint.h>

#define TL_RUN_LINEAR 0xff /* slot of a run whose bytes are adjacent in the file */

struct tl_run {
    const uint8_t *p; /* borrowed for the call; at least 1 byte */
    size_t n;
    uint64_t offset; /* file offset of p[0] */
    uint8_t slot;    /* p[0]'s byte position in its frame, 0..14, or TL_RUN_LINEAR */
};

/* File offset of byte `i` of the run (i may equal n: the offset behind it). */
static inline uint64_t tl_run_offset(const struct tl_run *run, size_t i)
{
    if (run->slot == TL_RUN_LINEAR)
        return run->offset + i;
    const size_t at = run->slot + i;
    return run->offset - run->slot + at / 15 * 16 + at % 15;
}

/* The tail of a run from byte `i` on (i <= n). */
static inline struct tl_run tl_run_from(const struct tl_run *run, size_t i)
{
    struct tl_run tail = {run->p + i, run->n - i, tl_run_offset(run, i), run->slot};
    if (run->slot != TL_RUN_LINEAR)
        tail.slot = (uint8_t)((run->slot + i) % 15);
    return tail;
}

#endif
