/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of a ring buffer with Intel PT: each dump has all that the ring held, so a dump may
 * begin with what the one before ended with. Pure but for the memory; not thread-safe.
 *
 * Where the trace has TSC packets, the dumps are joined by the last PSB+ of the older one that has
 * one: what the newer one has up to the older one's end is there already. Without, by the longest
 * end of the older one that the newer one has.
 */
#ifndef TL_PERF_SNAPSHOT_H
#define TL_PERF_SNAPSHOT_H

#include "base/state.h"

struct tl_perf_snapshot {
    struct tl_buf tail; /* of the older dump: from its last PSB+ with a TSC on */
    uint64_t tsc;
    bool has_tsc;
    bool any; /* there was a dump */
};

void tl_perf_snapshot_fini(struct tl_perf_snapshot *s);

void tl_perf_snapshot_state(struct tl_perf_snapshot *s, struct tl_state *state);

#define TL_PERF_PAD_MOST 7 /* zeros behind what a buffer held, so that it is whole words */

/* How many of the last bytes may be padding. */
size_t tl_perf_padding(struct tl_bytes dump);

/*
 * The next dump: `*known` is how many of its bytes the older one had already, `*padding` how many
 * of the older one's last bytes were none. Returns 1: the rest goes on with the older one; 0: there
 * is a gap in between, or nothing before; TL_NOMEM.
 */
TL_MUST_USE int tl_perf_snapshot_join(struct tl_perf_snapshot *s, struct tl_bytes dump,
                                      size_t *known, size_t *padding);

#endif
