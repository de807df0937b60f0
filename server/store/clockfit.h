/* SPDX-License-Identifier: MIT */
/*
 * How a stream's timestamps relate to the clock of the server that its bytes arrived at.
 *
 * A timestamp was made before its bytes arrived, by a delay that nobody measures and that is never
 * negative. So the line that lies below all pairs (timestamp, arrival), as near to them as one can,
 * is the relation but for the shortest delay. It is the edge of the pairs' lower convex hull that
 * stands above or below their middle: of all lines below them the one nearest to them on average.
 *
 * Source: S. Moon, P. Skelly, D. Towsley, Estimation and Removal of Clock Skew from Network Delay
 * Measurements, INFOCOM 1999.
 *
 * Pure functions, bounded memory. Not thread-safe.
 */
#ifndef TL_STORE_CLOCKFIT_H
#define TL_STORE_CLOCKFIT_H

#include "base/state.h"

#define TL_CLOCKFIT_PAIRS 8                    /* fewer tell nothing, … */
#define TL_CLOCKFIT_SPAN  UINT64_C(1000000000) /* … nor does less than a second (ns) */
#define TL_CLOCKFIT_HULL  32
#define TL_CLOCKFIT_SPLIT 128

/* unix_ns(t) = unix_ns + (t - ticks) * ns_per_tick */
struct tl_clock_relation {
    uint64_t pairs;   /* that it rests upon; 0: not known, and nothing else holds */
    uint64_t ticks;   /* a timestamp in the middle of the trace, and … */
    uint64_t unix_ns; /* … when it was at the latest, by the server's clock */
    double ns_per_tick;
    double error;       /* of ns_per_tick: it lies within ± this */
    uint64_t spread_ns; /* within which 95 of 100 pairs lie above the line */
};

struct tl_clock_pair {
    uint64_t ticks, ns;
};

struct tl_clockfit {
    uint64_t pairs;
    struct tl_clock_pair first, last; /* `last` may still be replaced by a later one of its block */
    struct tl_clock_pair hull[TL_CLOCKFIT_HULL];  /* the lower one, by ticks */
    struct tl_clock_pair some[TL_CLOCKFIT_SPLIT]; /* every `stride`-th pair */
    uint64_t n_hull, n_some, stride;
};

/*
 * What had `ticks` had arrived by `ns` (since 1970; 0: not known). Pairs come in the order of the
 * bytes; of those that arrived together the last counts, and one whose ticks are not above those
 * before it is left out.
 */
void tl_clockfit_add(struct tl_clockfit *fit, uint64_t ticks, uint64_t ns);
/* What is known by now. `pairs` is 0 where they are too few, span too little, or lie on no line:
 * their spread is more than a tenth of the time that they span. */
void tl_clockfit_relation(const struct tl_clockfit *fit, struct tl_clock_relation *out);
void tl_clockfit_state(struct tl_clockfit *fit, struct tl_state *state);

#define TL_CLOCK_RELATION_BYTES 48

void tl_clock_relation_put(const struct tl_clock_relation *relation,
                           uint8_t out[static TL_CLOCK_RELATION_BYTES]);
/* Bytes of another number, or that say nonsense, are no relation. */
void tl_clock_relation_get(struct tl_clock_relation *out, struct tl_bytes bytes);

#endif
