/* SPDX-License-Identifier: MIT */
/*
 * Unwrapping of a module's 32-bit timestamps.
 *
 * Timestamps only decrease at a wrap, so the difference from the previous event reveals at most one
 * wrap. A module that was silent for longer may have wrapped more often; the number follows from
 * the arrival times of its events. Those are only upper bounds: an event spends an unknown time in
 * the module's queue, in the interconnect and in buffers. Therefore the recent latency of events is
 * tracked (as a lower bound that follows slowly, so that a slightly wrong clock rate does no harm),
 * and the number of wraps is the one that gives the closest latency.
 *
 * Plain data; does not read any clock.
 */
#ifndef TL_OSD_TICKS_H
#define TL_OSD_TICKS_H

#include "base/state.h"

#define TL_OSD_NO_ARRIVAL UINT64_MAX

/* All zero: nothing is known. */
struct tl_osd_ticks {
    uint64_t now;    /* unwrapped time of the last event, if `begun` */
    int64_t latency; /* ticks between an event and its arrival, if `placed`; of arbitrary origin */
    uint64_t at;     /* `now` when `latency` was measured */
    bool begun;
    bool placed;
};

/*
 * Process an event's timestamp. `arrival`: ticks of the same rate and any origin, or
 * TL_OSD_NO_ARRIVAL. Returns true if more than half a wrap has passed, so that the number of wraps
 * is uncertain.
 */
bool tl_osd_ticks_step(struct tl_osd_ticks *t, uint32_t ticks, uint64_t arrival);

/* Save or restore the state. */
static inline void tl_osd_ticks_state(struct tl_osd_ticks *t, struct tl_state *s)
{
    uint64_t latency = (uint64_t)t->latency;
    tl_state_u64(s, &t->now);
    tl_state_u64(s, &latency);
    t->latency = (int64_t)latency;
    tl_state_u64(s, &t->at);
    tl_state_bool(s, &t->begun);
    tl_state_bool(s, &t->placed);
}

/* Convert `ns` to ticks of a clock of `hz`. */
uint64_t tl_osd_ticks_of(uint64_t ns, uint64_t hz);

#endif
