/* SPDX-License-Identifier: MIT */
/*
 * Looks ahead in an Intel PT trace for the places where what perf's records say takes effect: a
 * record of time t belongs in front of the first user code behind t, since switches and mappings
 * happen in the kernel. The trace tells its time coarsely. So each entry into user code gets the
 * upper bound of its time: the first time that the trace tells behind it, before it is left again.
 * Within the kernel, each time that the trace tells is such a place.
 *
 * Only packets are looked at, no code. Positions count the bytes given. Not thread-safe.
 */
#ifndef TL_PERF_PT_SCOUT_H
#define TL_PERF_PT_SCOUT_H

#include "perf/info.h"
#include "pt/packetizer.h"
#include "pt/time.h"

/* Records up to `time` (ns) belong in front of the byte at `position`. */
struct tl_perf_point {
    uint64_t position, time;
};

struct tl_perf_scout {
    struct tl_clock ns; /* of the trace's ticks */
    struct tl_pt_config config;
    struct tl_pt_packetizer packetizer;
    struct tl_pt_clock clock;
    uint8_t where; /* private */
    bool header;   /* within PSB+ */
    bool open;     /* the last point has no time yet */
    bool failed;   /* out of memory */
    struct tl_perf_point *points;
    size_t first, n, cap; /* points[first..n) were not taken yet */
};

/* The first byte is at `position`. What is known of points stays. */
void tl_perf_scout_begin(struct tl_perf_scout *s, const struct tl_pt_config *config,
                         const struct tl_clock *ns, uint64_t position);
void tl_perf_scout_fini(struct tl_perf_scout *s);
TL_MUST_USE int tl_perf_scout_push(struct tl_perf_scout *s, struct tl_bytes in);
/* The trace ends, or is interrupted, here. */
TL_MUST_USE int tl_perf_scout_end(struct tl_perf_scout *s);

/* Behind tl_perf_scout_begin(). */
void tl_perf_scout_state(struct tl_perf_scout *s, struct tl_state *state);

/* The first point that was not taken yet; NULL: there is none, or its time is not known. */
const struct tl_perf_point *tl_perf_scout_first(const struct tl_perf_scout *s);
void tl_perf_scout_take(struct tl_perf_scout *s);
/* No point that is not known yet lies in front of this position. */
uint64_t tl_perf_scout_known(const struct tl_perf_scout *s);

#endif
