/* SPDX-License-Identifier: MIT */
/*
 * Representative regions of an execution (SimPoint): intervals that run the same code are taken
 * together, and of each such phase the interval nearest to its middle stands for it, with a weight.
 *
 *     tl_simpoints_init(&points);
 *     tl_vectors_new(&vectors, interval, tl_simpoints_add, &points);
 *     …                                       instructions into the vectors
 *     tl_simpoints_choose(&points, 30, &chosen);
 *
 * Vectors are projected at once to 15 dimensions, and to 15 more for memory where the trace has
 * accesses; so an interval takes 240 bytes. Not thread-safe.
 */
#ifndef TL_REGIONS_SIMPOINTS_H
#define TL_REGIONS_SIMPOINTS_H

#include "regions/vectors.h"

#define TL_SIMPOINT_DIMS 15 /* of each kind of vector, as SimPoint 3.2 has them */

struct tl_simpoints {
    double *at; /* 2 * TL_SIMPOINT_DIMS for each interval: blocks, then memory */
    uint64_t *firsts, *insns;
    size_t n, cap_at, cap_firsts, cap_insns;
    bool has_memory;
    uint64_t total; /* instructions */
};

/* One phase. */
struct tl_simpoint {
    uint64_t first, insns; /* the interval that stands for it */
    uint64_t interval;     /* its number, from 0 */
    double weight;         /* the phase's share of all instructions */
    size_t intervals;      /* in the phase */
};

void tl_simpoints_init(struct tl_simpoints *points);
void tl_simpoints_fini(struct tl_simpoints *points);
/* A tl_vector_sink; `context` is the struct tl_simpoints. */
TL_MUST_USE int tl_simpoints_add(void *context, const struct tl_vector *vector);

/* Add the intervals of `more`, which come behind those of `points`; their `first` goes on from
 * there. TL_NOMEM. */
TL_MUST_USE int tl_simpoints_join(struct tl_simpoints *points, const struct tl_simpoints *more);

/*
 * At most `most` phases, in order of their intervals, into `*chosen`, which the caller frees;
 * weights add up to 1. None where there is no interval. TL_NOMEM, TL_CANCELLED.
 */
TL_MUST_USE int tl_simpoints_choose(const struct tl_simpoints *points, uint32_t most,
                                    struct tl_simpoint **chosen, size_t *n);

#endif
