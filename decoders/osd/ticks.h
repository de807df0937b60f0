/* SPDX-License-Identifier: MIT */
/*
 * A module's 32-bit timestamps, unwrapped.
 *
 * They never go back but by a wrap, so the distance to the event before tells at most one of them.
 * A module that was quiet for longer may have wrapped unseen; how often, the times tell at which
 * its events arrived. Those are no more than upper bounds: an event lies in the module's queue, in
 * the interconnect and in buffers for a time that nobody knows. So the latency of the events lately
 * is the measure (kept as a lower bound that follows slowly, so that a clock rate that is a little
 * off does no harm), and the number of wraps is the one that comes nearest to it.
 *
 * Plain data; no clock is read here.
 */
#ifndef TL_OSD_TICKS_H
#define TL_OSD_TICKS_H

#include "base/state.h"

#define TL_OSD_NO_ARRIVAL UINT64_MAX

/* Zeroed: nothing is known. */
struct tl_osd_ticks {
    uint64_t now;    /* of the last event, unwrapped, if `begun` */
    int64_t latency; /* ticks between an event and its arrival, if `placed`; of any origin */
    uint64_t at;     /* `now` when that was measured */
    bool begun;
    bool placed;
};

/*
 * Take an event's timestamp. `arrival`: ticks of the same rate and any origin, or
 * TL_OSD_NO_ARRIVAL. True: more than half a wrap has passed, and so it is not sure how many.
 */
bool tl_osd_ticks_step(struct tl_osd_ticks *t, uint32_t ticks, uint64_t arrival);

/* Into bytes, or from them. */
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

/* `ns` as ticks of a clock of `hz`. */
uint64_t tl_osd_ticks_of(uint64_t ns, uint64_t hz);

#endif
