/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of a stream by position. Each index chunk stores the stack at its begin, so that the
 * stack at a position is found by walking at most one chunk, and the end of a frame by examining
 * the begins of some chunks and walking one.
 */
#ifndef TL_QUERY_STACKS_H
#define TL_QUERY_STACKS_H

#include "lake/cut.h"

/* Load the stack at the begin of a chunk into an initialised `calls`; empty if none is stored. */
TL_MUST_USE int tl_stack_at_chunk(const struct tl_view *view, size_t chunk,
                                  struct tl_callstack *calls, struct tl_fail *fail);

/* Find the stack at the instruction at `position`; `calls` need not be initialised. */
TL_MUST_USE int tl_stack_at(const struct tl_cut *cut, uint64_t position, struct tl_callstack *calls,
                            struct tl_fail *fail);

/* Are they the same call? */
static inline bool tl_same_frame(const struct tl_frame *a, const struct tl_frame *b)
{
    return a->insn == b->insn && a->pc == b->pc;
}

/*
 * Narrow the end of a frame at `depth` down to one chunk. The frame is active at `*low` and not any
 * more at `*high` (or that is the end of the search); they become the chunk's begin and end.
 * `calls` is scratch.
 */
TL_MUST_USE int tl_stack_bisect(const struct tl_cut *cut, const struct tl_frame *frame,
                                uint32_t depth, uint64_t *low, uint64_t *high,
                                struct tl_callstack *calls, struct tl_fail *fail);

/* The same from `*low` to the end of the stream, looking nearby first. */
TL_MUST_USE int tl_stack_end_chunk(const struct tl_cut *cut, const struct tl_frame *frame,
                                   uint32_t depth, uint64_t *low, uint64_t *high,
                                   struct tl_callstack *calls, struct tl_fail *fail);

/*
 * Find the end of a frame that is active at `position`: after its last instruction, or after the
 * last instruction of the stream. `calls` is scratch.
 */
TL_MUST_USE int tl_stack_end(const struct tl_cut *cut, const struct tl_frame *frame, uint32_t depth,
                             uint64_t position, uint64_t *end, struct tl_callstack *calls,
                             struct tl_fail *fail);

#endif
