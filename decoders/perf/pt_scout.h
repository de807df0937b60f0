/* SPDX-License-Identifier: MIT */
/*
 * Scans ahead in an Intel PT trace for the positions where perf's records take effect: a record of
 * time t belongs before the first user code after t, since context switches and mappings happen in
 * the kernel. Trace time is coarse, so each entry into user code gets an upper bound: the first
 * time reported after it, before user code is left again. Within the kernel, each reported time is
 * such a position.
 *
 * Examines only packets, not code. Positions count input bytes. Not thread-safe.
 */
#ifndef TL_PERF_PT_SCOUT_H
#define TL_PERF_PT_SCOUT_H

#include "perf/info.h"
#include "pt/packetizer.h"
#include "pt/time.h"

/* Records up to `time` (ns) take effect before the byte at `position`. */
struct tl_perf_point {
    uint64_t position, time;
};

struct tl_perf_scout {
    struct tl_clock ns; /* conversion of the trace's ticks to ns */
    struct tl_pt_config config;
    struct tl_pt_packetizer packetizer;
    struct tl_pt_clock clock;
    uint8_t where; /* private */
    bool header;   /* within PSB+ */
    bool open;     /* the last point has no time yet */
    bool failed;   /* out of memory */
    struct tl_perf_point *points;
    size_t first, n, cap; /* points[first..n) have not been taken yet */
};

/* Start at `position`, the offset of the first byte. Known points are kept. */
void tl_perf_scout_begin(struct tl_perf_scout *s, const struct tl_pt_config *config,
                         const struct tl_clock *ns, uint64_t position);
void tl_perf_scout_fini(struct tl_perf_scout *s);
TL_MUST_USE int tl_perf_scout_push(struct tl_perf_scout *s, struct tl_bytes in);
/* The trace ends or is interrupted here. */
TL_MUST_USE int tl_perf_scout_end(struct tl_perf_scout *s);

/* Save or restore; call after tl_perf_scout_begin(). */
void tl_perf_scout_state(struct tl_perf_scout *s, struct tl_state *state);

/* The first point not taken yet; NULL: none, or its time is not known yet. */
const struct tl_perf_point *tl_perf_scout_first(const struct tl_perf_scout *s);
void tl_perf_scout_take(struct tl_perf_scout *s);
/* Position before which all points are known. */
uint64_t tl_perf_scout_known(const struct tl_perf_scout *s);

#endif
