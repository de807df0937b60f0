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

/* How execution leaves an instruction. */
enum way {
    WAY_STRAIGHT, /* also: the end of the image, and traps of harts that retire them */
    WAY_DIRECT,   /* jumps that the program determines */
    WAY_BRANCH,   /* conditional */
    WAY_RETURN,   /* as a return, if the encoder infers it */
    WAY_JUMP      /* uninferable jumps and trap returns */
};

/* ---- etrace_walk.c ------------------------------------------------------------------------- */

/* The block at `pc`, with at least one instruction; NULL: nothing is mapped, or out of memory. */
struct tl_block *tl_etrace_block_at(struct tl_etrace_walk *w, uint64_t pc);

/* The rest of tl_etrace_walk_to(), behind a first tl_etrace_step_known(), which told to go on;
 * `began`: with a step. */
enum tl_etrace_end tl_etrace_walk_rest(struct tl_etrace_walk *w, const struct tl_etrace_goal *goal,
                                       bool began, uint64_t offset);

/* The block that the walk is in. If the image changed under it: the part at pc. */
struct tl_block *tl_etrace_here(struct tl_etrace_walk *w);

/* Is pc at the last instruction of the block, and can that change the flow? */
static inline bool tl_etrace_at_end(const struct tl_etrace_walk *w, const struct tl_block *b)
{
    return w->n == b->n && b->end == TL_BLOCK_WAYPOINT;
}

/* Behind the instruction at pc. */
static inline uint64_t tl_etrace_after(const struct tl_etrace_walk *w, const struct tl_block *b)
{
    const uint32_t bytes = w->n == b->n ? b->size : tl_block_bytes(b, w->n);
    return tl_etrace_wrap(w, b->pc + bytes);
}

/* ---- etrace_ways.c ------------------------------------------------------------------------- */

/* How the instruction at pc is left, and `*to` where if the program determines it. */
enum way tl_etrace_way_of(struct tl_etrace_walk *w, struct tl_block *b, uint64_t *to);

/* Is the jump at the block's end one to a constant: JALR with x0 as its base? */
static inline bool tl_etrace_is_absolute(const struct tl_block *b)
{
    return b->last_size == 4 && (tl_le32(b->code + b->size - 4) & 0xf807f) == 0x67;
}

/*
 * May the encoder have left out where the jump at the block's end goes, which is not known here?
 * Its table is missing, or the walk begins at it, and an instruction in front of it, which was not
 * followed, may have determined its target.
 */
bool tl_etrace_is_unclear(struct tl_etrace_walk *w, const struct tl_block *b);

/* ---- etrace_walk_known.c ------------------------------------------------------------------- */

/* Should the walk end at the instruction at pc? */
enum tl_etrace_arrival {
    TL_ETRACE_GO_ON,
    TL_ETRACE_JUMPED,  /* behind an uninferable jump */
    TL_ETRACE_REACHED, /* for sure */
    TL_ETRACE_INFERRED,
    TL_ETRACE_WRONG
};

/*
 * Go from the beginning of a block to that of another, as far as each leads to one that is known
 * and nothing else than the branch with the last outcome or an uninferable jump can end the walk
 * there: the same as single steps, at a fraction of their cost. `*steps`: there was a step; `*any`:
 * … that used outcomes. Returns TL_ETRACE_GO_ON without asking whether the walk ends where it
 * stands, REACHED or JUMPED.
 */
enum tl_etrace_arrival tl_etrace_step_by_map(struct tl_etrace_walk *walk,
                                             const struct tl_etrace_goal *goal, bool *any,
                                             bool *steps, uint64_t offset);
/* The same with a branch predictor. */
enum tl_etrace_arrival tl_etrace_step_by_prediction(struct tl_etrace_walk *walk,
                                                    const struct tl_etrace_goal *goal, bool *any,
                                                    bool *steps, uint64_t offset);
static inline enum tl_etrace_arrival tl_etrace_step_known(struct tl_etrace_walk *w,
                                                          const struct tl_etrace_goal *goal,
                                                          bool *any, bool *steps, uint64_t offset)
{
    return w->outcomes.size > 0 ? tl_etrace_step_by_prediction(w, goal, any, steps, offset)
                                : tl_etrace_step_by_map(w, goal, any, steps, offset);
}

#endif
