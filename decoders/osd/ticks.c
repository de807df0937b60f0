/* SPDX-License-Identifier: MIT */
/*
 * The number of wraps is computed, not counted: a module may be silent for any time between two
 * events. The reference moves only to an event with a lower latency, or after a long silence, so
 * that delays in buffers are not mistaken for time.
 */
#include "osd/ticks.h"

#define HALF       ((int64_t)1 << 31)
#define SLACK_BITS 4 /* the latency bound increases by 1/16 of the elapsed time */

uint64_t tl_osd_ticks_of(uint64_t ns, uint64_t hz)
{
    const uint64_t second = 1000000000;
    return ns / second * hz + ns % second * hz / second;
}

static int64_t latency(uint64_t now, uint64_t arrival)
{
    return (int64_t)(arrival - now);
}

static void place(struct tl_osd_ticks *t, uint64_t now, uint64_t arrival)
{
    t->latency = latency(now, arrival);
    t->at = now;
    t->placed = true;
}

bool tl_osd_ticks_step(struct tl_osd_ticks *t, uint32_t ticks, uint64_t arrival)
{
    const uint64_t before = t->now;
    uint64_t now = t->begun ? before + (uint32_t)(ticks - (uint32_t)before) : ticks;
    const bool begun = t->begun;
    t->begun = true;
    if (arrival != TL_OSD_NO_ARRIVAL && t->placed) {
        const int64_t bound = t->latency + (int64_t)((now - t->at) >> SLACK_BITS);
        const int64_t late = (int64_t)((uint64_t)latency(now, arrival) - (uint64_t)bound);
        if (late > HALF)
            now += (((uint64_t)late + (uint64_t)HALF) >> 32) << 32;
        if (late < 0 || now - before > (uint64_t)HALF)
            place(t, now, arrival);
    } else if (arrival != TL_OSD_NO_ARRIVAL) {
        place(t, now, arrival);
    }
    t->now = now;
    return begun && now - before > (uint64_t)HALF;
}
