/* SPDX-License-Identifier: MIT */
/*
 * A stream as a sequence of steps that can be compared with another stream's: where the flow turned
 * to, or which functions were called. What a step is named by does not depend on where a program
 * was loaded: it is the function's name and the place in it, as far as there are symbols. Reads
 * ahead no more than it is asked to. Not thread-safe.
 */
#ifndef TL_LAKE_STEPS_H
#define TL_LAKE_STEPS_H

#include "lake/lakeint.h"

struct tl_step {
    uint64_t key;
    uint64_t position; /* of its first instruction */
};

struct tl_steps {
    const struct tl_cut *cut;
    uint64_t from, to; /* of the range, inside the stream */
    bool calls;        /* steps are calls; else turns */
    /* The window: steps[at..n) are read and not passed yet. */
    struct tl_step *steps;
    size_t at, n, cap;
    bool over; /* there are no more behind them */
    /* Its own: */
    const struct tl_image *image;
    struct tl_cut_walk walk;
    struct tl_callstack *stack;
    uint64_t *names; /* of the image's functions: hashes */
    uint64_t next_pc;
    uint32_t depth; /* of the last call */
    int result;     /* of adding a call */
};

/* TL_USAGE: the range ends before it begins; TL_NOMEM. Free with tl_steps_fini(), also then. */
TL_MUST_USE int tl_steps_init(struct tl_steps *s, const struct tl_cut *cut, uint64_t from,
                              uint64_t to, bool calls, struct tl_fail *fail);
void tl_steps_fini(struct tl_steps *s);
/* Read until there are `n` steps in the window, or no more. TL_NOMEM, TL_IO, TL_BAD, TL_CANCELLED.
 */
TL_MUST_USE int tl_steps_want(struct tl_steps *s, size_t n, struct tl_fail *fail);
/* Where step `i` of the window ends: the next one begins, or the range ends. */
uint64_t tl_steps_end(const struct tl_steps *s, size_t i);

#endif
