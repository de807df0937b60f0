/* SPDX-License-Identifier: MIT */
/* What the two parts of the E-Trace walk share; private to them. */
#ifndef TL_RISCV_ETRACE_WALK_PARTS_H
#define TL_RISCV_ETRACE_WALK_PARTS_H

#include "riscv/etrace_walk.h"

static inline uint64_t tl_etrace_wrap(const struct tl_etrace_walk *w, uint64_t pc)
{
    return w->walker.isa == TL_ISA_RV32 ? (uint32_t)pc : pc;
}

/* The last instruction of the block. */
static inline uint64_t tl_etrace_last_of(const struct tl_etrace_walk *w, const struct tl_block *b)
{
    return tl_etrace_wrap(w, b->pc + b->size - b->last_size);
}

static inline bool tl_etrace_infers_returns(const struct tl_etrace_walk *w)
{
    return w->options & TL_ETRACE_IMPLICIT_RETURN && w->returns.n > 0;
}

/*
 * Go from the beginning of a block to that of another, as far as each leads to one that is known
 * and nothing can end the walk there: the same as single steps, at a fraction of their cost.
 * Returns false if there is no step; `*any`: outcomes were used.
 */
bool tl_etrace_step_known(struct tl_etrace_walk *walk, const struct tl_etrace_goal *goal,
                          bool *used, uint64_t offset);

#endif
