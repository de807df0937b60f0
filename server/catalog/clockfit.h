/* SPDX-License-Identifier: MIT */
/*
 * Relation of a stream's timestamps to the clock of the server that its bytes arrived at.
 *
 * A timestamp was generated before its bytes arrived, by an unknown delay that is never negative.
 * So the line that lies below all pairs (timestamp, arrival) and as close to them as possible is
 * the relation, up to the shortest delay. It is the edge of the pairs' lower convex hull that lies
 * above or below their mean: of all lines below the pairs the one with the smallest average
 * distance.
 *
 * Source: S. Moon, P. Skelly, D. Towsley, Estimation and Removal of Clock Skew from Network Delay
 * Measurements, INFOCOM 1999.
 *
 * Pure functions, bounded memory. Not thread-safe.
 */
#ifndef TL_CATALOG_CLOCKFIT_H
#define TL_CATALOG_CLOCKFIT_H

#include "base/state.h"

#define TL_CLOCKFIT_PAIRS 8                    /* minimum number of pairs */
#define TL_CLOCKFIT_SPAN  UINT64_C(1000000000) /* minimum time they must span (ns) */
#define TL_CLOCKFIT_HULL  32
#define TL_CLOCKFIT_SPLIT 128

/* unix_ns(t) = unix_ns + (t - ticks) * ns_per_tick */
struct tl_clock_relation {
    uint64_t pairs;   /* number of samples; 0: not known, and the other members are invalid */
    uint64_t ticks;   /* a timestamp in the middle of the trace */
    uint64_t unix_ns; /* its time by the server's clock, at the latest */
    double ns_per_tick;
    double error;       /* error bound of ns_per_tick, ± */
    uint64_t spread_ns; /* distance above the line within which 95 % of the pairs lie */
};

struct tl_clock_pair {
    uint64_t ticks, ns;
};

struct tl_clockfit {
    uint64_t pairs;
    struct tl_clock_pair first, last; /* `last` may still be replaced by a later one of its block */
    struct tl_clock_pair hull[TL_CLOCKFIT_HULL];  /* lower hull, by ticks */
    struct tl_clock_pair some[TL_CLOCKFIT_SPLIT]; /* every `stride`-th pair */
    uint64_t n_hull, n_some, stride;
};

/*
 * Add a sample: the data with timestamp `ticks` had arrived by `ns` (since 1970; 0: not known).
 * Samples come in the order of the bytes. Of those that arrived together only the last counts; one
 * whose ticks do not exceed all earlier ones is ignored.
 */
void tl_clockfit_add(struct tl_clockfit *fit, uint64_t ticks, uint64_t ns);
/* Compute the relation so far. `pairs` is 0 if they are too few, span too little time, or do not
 * lie on a line: their spread exceeds a tenth of the time that they span. */
void tl_clockfit_relation(const struct tl_clockfit *fit, struct tl_clock_relation *out);
void tl_clockfit_state(struct tl_clockfit *fit, struct tl_state *state);

#define TL_CLOCK_RELATION_BYTES 48

void tl_clock_relation_put(const struct tl_clock_relation *relation,
                           uint8_t out[static TL_CLOCK_RELATION_BYTES]);
/* Invalid bytes, or a wrong number of them, give no relation. */
void tl_clock_relation_get(struct tl_clock_relation *out, struct tl_bytes bytes);

#endif
