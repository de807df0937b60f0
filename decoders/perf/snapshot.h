/* SPDX-License-Identifier: MIT */
/*
 * Joins snapshots of a ring buffer with Intel PT: each dump has all that the ring held, so a dump
 * may begin with the end of the previous one. No side effects besides allocation; not thread-safe.
 *
 * If the trace has TSC packets, dumps are joined at the older dump's last PSB+ with a TSC: the
 * newer dump's bytes up to the older one's end are duplicates. Otherwise, at the longest suffix of
 * the older dump that occurs in the newer one.
 */
#ifndef TL_PERF_SNAPSHOT_H
#define TL_PERF_SNAPSHOT_H

#include "base/state.h"

struct tl_perf_snapshot {
    struct tl_buf tail; /* of the older dump: from its last PSB+ with a TSC on */
    uint64_t tsc;
    bool has_tsc;
    bool any; /* there was a previous dump */
};

void tl_perf_snapshot_fini(struct tl_perf_snapshot *s);

void tl_perf_snapshot_state(struct tl_perf_snapshot *s, struct tl_state *state);

#define TL_PERF_PAD_MAX 7 /* maximum zeros appended to a buffer's contents to fill a word */

/* How many of the last bytes may be padding. */
size_t tl_perf_padding(struct tl_bytes dump);

/*
 * Process the next dump: `*known` is the number of its bytes already in the older one, `*padding`
 * the number of padding bytes at the older one's end. Returns 1: the rest continues the older one;
 * 0: there is a gap in between, or no previous dump; TL_NOMEM.
 */
TL_MUST_USE int tl_perf_snapshot_join(struct tl_perf_snapshot *s, struct tl_bytes dump,
                                      size_t *known, size_t *padding);

#endif
