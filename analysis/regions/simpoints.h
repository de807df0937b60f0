/* SPDX-License-Identifier: MIT */
/*
 * Representative regions of an execution (SimPoint): intervals that execute the same code form a
 * phase; the interval closest to a phase's centre represents it, with a weight.
 *
 *     tl_simpoints_init(&points);
 *     tl_vectors_new(&vectors, interval, tl_simpoints_add, &points);
 *     …                                       add instructions to the vectors
 *     tl_simpoints_choose(&points, 30, NULL, &chosen, &n);
 *
 * Vectors are projected immediately to 15 dimensions, and to 15 more for memory if the trace has
 * accesses, so that an interval needs 256 bytes. Not thread-safe.
 */
#ifndef TL_REGIONS_SIMPOINTS_H
#define TL_REGIONS_SIMPOINTS_H

#include "regions/vectors.h"

#define TL_SIMPOINT_DIMS 15 /* of each kind of vector, as in SimPoint 3.2 */

struct tl_simpoints {
    double *at; /* 2 * TL_SIMPOINT_DIMS per interval: blocks, then memory */
    uint64_t *firsts, *insns;
    size_t n, cap_at, cap_firsts, cap_insns;
    bool has_memory;
    uint64_t total; /* instructions */
};

/* A phase. */
struct tl_simpoint {
    uint64_t first, insns; /* the interval that represents it */
    uint64_t interval;     /* its number, from 0 */
    double weight;         /* the phase's share of all instructions */
    size_t intervals;      /* intervals in the phase */
};

void tl_simpoints_init(struct tl_simpoints *points);
void tl_simpoints_fini(struct tl_simpoints *points);
/* A tl_vector_sink; `context` is the struct tl_simpoints. */
TL_MUST_USE int tl_simpoints_add(void *context, const struct tl_vector *vector);

/* Append the intervals of `more` after those of `points`; their `first` is continued. TL_NOMEM. */
TL_MUST_USE int tl_simpoints_join(struct tl_simpoints *points, const struct tl_simpoints *more);

/*
 * Choose at most `most` phases, in order of their intervals. The caller frees `*chosen`; weights
 * add up to 1. None if there are no intervals. `effort`: of struct tl_points (regions/cluster.h).
 * TL_NOMEM, TL_LIMIT, TL_CANCELLED.
 */
TL_MUST_USE int tl_simpoints_choose(const struct tl_simpoints *points, uint32_t most,
                                    uint64_t *effort, struct tl_simpoint **chosen, size_t *n);

#endif
