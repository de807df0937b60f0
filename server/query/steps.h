/* SPDX-License-Identifier: MIT */
/*
 * A stream as a sequence of steps that can be compared with another stream's: targets of changes of
 * flow, or called functions. The key of a step does not depend on the load address of the program:
 * it is the function's name and the offset in it, as far as there are symbols, unless the other
 * stream has none at all. Reads ahead only as far as requested. Not thread-safe.
 */
#ifndef TL_QUERY_STEPS_H
#define TL_QUERY_STEPS_H

#include "lake/cut.h"

struct tl_step {
    uint64_t key;
    uint64_t position; /* of its first instruction */
};

struct tl_steps {
    const struct tl_cut *cut;
    uint64_t from, to; /* of the range, inside the stream */
    bool calls;        /* steps are calls; otherwise changes of flow */
    bool by_address;   /* keys are addresses; set by the owner before anything is read */
    bool has_symbols;  /* the program has any */
    /* The window: steps[at..n) have been read and not yet consumed. */
    struct tl_step *steps;
    size_t at, n, cap;
    bool over; /* no more steps follow */
    /* Private: */
    const struct tl_image *image;
    struct tl_cut_walk walk;
    struct tl_callstack *stack;
    uint64_t *names;  /* hashes of the image's function names */
    uint64_t next_pc; /* behind the last block: a block there is no step */
    uint32_t depth;   /* of the last call */
};

/*
 * Begin with an empty window. `cut` is borrowed. TL_USAGE: the range ends before it begins;
 * TL_NOMEM. Free with tl_steps_fini(), also after an error.
 */
TL_MUST_USE int tl_steps_init(struct tl_steps *s, const struct tl_cut *cut, uint64_t from,
                              uint64_t to, bool calls, struct tl_fail *fail);
void tl_steps_fini(struct tl_steps *s);
/* Read until there are `n` steps in the window, or no more. TL_NOMEM, TL_IO, TL_BAD,
 * TL_CANCELLED. */
TL_MUST_USE int tl_steps_want(struct tl_steps *s, size_t n, struct tl_fail *fail);
/* End of step `i` of the window: the begin of the next one, or the end of the range. */
uint64_t tl_steps_end(const struct tl_steps *s, size_t i);

#endif
