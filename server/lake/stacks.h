/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of a stream by position. Each index chunk tells the one at its begin, so that a
 * position's is found by walking no more than a chunk, and a frame's end by looking at the begins
 * of some chunks and walking one.
 */
#ifndef TL_LAKE_STACKS_H
#define TL_LAKE_STACKS_H

#include "lake/lakeint.h"

/* The stack where a chunk begins, into an initialised `calls`; no frames where none is told. */
TL_MUST_USE int tl_stack_at_chunk(const struct tl_view *view, size_t chunk,
                                  struct tl_callstack *calls, struct tl_fail *fail);

/* The stack at the instruction at `position`, into `calls`, which need not be initialised. */
TL_MUST_USE int tl_stack_at(const struct tl_cut *cut, uint64_t position, struct tl_callstack *calls,
                            struct tl_fail *fail);

/* Are they the same call? */
static inline bool tl_same_frame(const struct tl_frame *a, const struct tl_frame *b)
{
    return a->insn == b->insn && a->pc == b->pc;
}

/*
 * A frame at `depth` is there at `*low` and not at `*high` any more (or that is the end of what is
 * looked at): narrow that down to a chunk, whose begin and end they are then. `calls` is scratch.
 */
TL_MUST_USE int tl_stack_bisect(const struct tl_cut *cut, const struct tl_frame *frame,
                                uint32_t depth, uint64_t *low, uint64_t *high,
                                struct tl_callstack *calls, struct tl_fail *fail);

/*
 * Where a frame that is there at `position` ends: behind its last instruction, or behind the last
 * instruction there is. `calls` is scratch.
 */
TL_MUST_USE int tl_stack_end(const struct tl_cut *cut, const struct tl_frame *frame, uint32_t depth,
                             uint64_t position, uint64_t *end, struct tl_callstack *calls,
                             struct tl_fail *fail);

#endif
