/* SPDX-License-Identifier: MIT */
/*
 * Keeps the cycle counts since a timestamp as points, and turns them into times when the next one
 * is known. A gap makes what the counts say worthless, since nothing tells when it was.
 */
#include "shard/timeknots.h"

#include "decode/point.h"
#include "shard/bucket.h"

#include <stdlib.h>

#define COUNTS_MAX (UINT64_C(1) << 62) /* cycles: more are as many */

void tl_time_knots_init(struct tl_time_knots *k, enum tl_protocol protocol)
{
    k->steps = tl_protocol_has_own_clock(protocol);
    k->protocol = protocol;
}

void tl_time_knots_fini(struct tl_time_knots *k)
{
    free(k->points);
    *k = (struct tl_time_knots){.steps = k->steps, .protocol = k->protocol};
}

static int add_point(struct tl_time_knots *k, uint64_t position, uint64_t value)
{
    const int r = tl_grow(&k->points, &k->cap, k->n + 1, sizeof *k->points);
    if (r >= 0)
        k->points[k->n++] = (struct tl_time_point){position, value};
    return r;
}

/* Every count is a point, as long as there are not too many, and they have room. 4096 counts of 32
 * bits are no more than COUNTS_MAX. */
static void set_quick(struct tl_time_knots *k)
{
    const size_t most = TL_TIME_KNOTS + 1;
    k->quick = k->broken || k->steps || k->stride != 1 || k->counts + 1 != k->n ? 0
               : k->cap < most                                                  ? k->cap
                                                                                : most;
    if (k->n > 0 && k->points[k->n - 1].time >> 32 != 0)
        k->quick = 0;
}

int tl_time_knots_begin(struct tl_time_knots *k, uint64_t position, uint64_t time)
{
    k->n = 0;
    k->broken = false;
    k->flags = 0;
    k->gaps = k->reasons = 0;
    k->begin = time;
    k->counts = 0;
    k->stride = 1;
    const int r = add_point(k, position, 0);
    if (r >= 0)
        set_quick(k);
    return r;
}

static void note_break(struct tl_time_knots *k, uint64_t position, const struct tl_item *item)
{
    const uint8_t flags = tl_bucket_flags(item);
    if (!k->broken) {
        k->place = position;
        k->flags = 0;
    }
    k->broken = true;
    k->gaps += flags != 0;
    k->flags |= flags;
    if (item->kind == TL_ITEM_GAP && item->sub < TL_GAP_KINDS)
        k->reasons |= 1u << item->sub;
    if (k->flags == 0)
        k->flags = TL_FLAG_OFF;
    k->quick = 0;
}

/* Keep every second point of those that are kept, and the last, which is not one of them. */
static void thin_out(struct tl_time_knots *k)
{
    for (size_t i = 1; 2 * i < k->n; i++)
        k->points[i] = k->points[2 * i];
    k->points[1 + (k->n - 1) / 2] = k->points[k->n - 1];
    k->n = 2 + (k->n - 1) / 2;
    k->stride *= 2;
}

static int note_cycles(struct tl_time_knots *k, uint64_t position, uint64_t cycles)
{
    const uint64_t all = k->points[k->n - 1].time, room = COUNTS_MAX - all;
    if (position == k->points[0].position || k->broken || k->steps)
        return TL_OK;
    if (k->counts % k->stride != 0)
        k->n--; /* it is not the last one any more */
    k->counts++;
    const int r = add_point(k, position, all + (cycles < room ? cycles : room));
    if (k->counts % k->stride == 0 && k->n > TL_TIME_KNOTS + 1)
        thin_out(k);
    set_quick(k);
    return r;
}

int tl_time_knots_item(struct tl_time_knots *k, uint64_t position, const struct tl_item *item)
{
    if (item->kind == TL_ITEM_CYCLES)
        return note_cycles(k, position, item->value);
    if (tl_item_is_break(k->protocol, item->kind))
        note_break(k, position, item);
    else if (item->kind == TL_ITEM_TRACE_ON && !k->broken && position == k->points[0].position)
        k->flags = TL_FLAG_OFF;
    return TL_OK;
}

/* All before `place` has the time of the begin, all behind it that of the end. */
static int jump(struct tl_time_knots *k, uint64_t place, uint64_t position, uint64_t time)
{
    k->n = 1;
    k->points[0].time = k->begin;
    int r = add_point(k, place, k->begin);
    if (r >= 0)
        r = add_point(k, place, time);
    return r < 0 ? r : add_point(k, position, time);
}

/* Cycles become times: the last count's by positions, the others in proportion to it. */
static void share(struct tl_time_knots *k, uint64_t position, uint64_t time)
{
    const struct tl_time_point *const last = &k->points[k->n - 1];
    const uint64_t all = last->time, first = k->points[0].position;
    if (all == 0)
        k->n = 1;
    const uint64_t span =
        k->n > 1 ? tl_time_share(last->position - first, time - k->begin, position - first) : 0;
    for (size_t i = 0; i < k->n; i++) {
        const uint64_t cycles = k->points[i].time;
        k->points[i].time = k->begin + (cycles > 0 ? tl_time_share(cycles, span, all) : 0);
    }
}

int tl_time_knots_end(struct tl_time_knots *k, uint64_t position, uint64_t time)
{
    if (!k->broken && k->flags && position == k->points[0].position) {
        k->broken = true;
        k->place = position;
    }
    if (k->broken)
        return jump(k, k->place, position, time);
    if (k->steps)
        return jump(k, position, position, time);
    share(k, position, time);
    return add_point(k, position, time);
}

void tl_time_knots_state(struct tl_time_knots *k, struct tl_state *s)
{
    tl_state_array(s, &k->points, &k->n, &k->cap, sizeof *k->points);
    tl_state_u64(s, &k->begin);
    tl_state_bool(s, &k->broken);
    tl_state_u8(s, &k->flags, UINT8_MAX);
    tl_state_u64(s, &k->place);
    tl_state_u64(s, &k->gaps);
    tl_state_u32(s, &k->reasons);
    tl_state_u64(s, &k->counts);
    tl_state_u64(s, &k->stride);
    tl_state_check(s, k->stride > 0 || k->n == 0);
    for (size_t i = 1; i < k->n; i++)
        tl_state_check(s, k->points[i].position > k->points[0].position &&
                              k->points[i].position >= k->points[i - 1].position &&
                              k->points[i].time >= k->points[i - 1].time &&
                              k->points[i].time <= COUNTS_MAX);
    set_quick(k);
}
