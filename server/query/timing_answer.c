/* SPDX-License-Identifier: MIT */
/*
 * Sums are kept in ticks and converted once, so that parts add up to the whole. Of lists only the
 * rows asked for are kept, since a function may have millions of calls.
 */
#include "query/timing_answer.h"

#include "lake/locate.h"

#include <stdlib.h>
#include <string.h>

int tl_timing_ask_begin(struct tl_timing_ask *ask, struct tl_lake *lake,
                        const struct tl_timing_range *range, struct tl_timing_about *about,
                        struct tl_fail *fail)
{
    *ask = (struct tl_timing_ask){.about = about};
    const struct tl_cut_range wanted = {range->unit, range->from, range->to};
    int r = tl_cut_open_range(&ask->cut, lake, range->trace, range->stream, &wanted, fail);
    if (r < 0)
        return r;
    about->behind = ask->cut.behind;
    about->gen = tl_gen_get(ask->cut.gen);
    const enum tl_protocol protocol = ask->cut.lane->protocol;
    /* What a DWT reports of handlers makes calls of them. */
    if (tl_protocol_has(protocol, TL_TRAIT_SOFTWARE) && protocol != TL_PROTO_ITM)
        return tl_fail_set(fail, TL_USAGE,
                           "stream %s has no instructions, and so no calls, interrupts or gaps",
                           range->stream);
    return tl_cut_resolve(&ask->cut, range->unit, range->from, range->to, &ask->from, &ask->to,
                          fail);
}

void tl_timing_ask_span(struct tl_timing_ask *ask, const struct tl_timed_span *span)
{
    const uint64_t time = span->end_time - span->time;
    if (!ask->any)
        ask->first = span->time;
    ask->any = true;
    ask->last = span->end_time;
    ask->ticks[span->kind] += time;
}

void tl_timing_ask_extent(struct tl_timing_ask *ask, const struct tl_timed_extent *x)
{
    ask->any = x->timed;
    ask->first = x->begin;
    ask->last = x->end;
    ask->ticks[TL_TIMED_RUN] = x->end - x->begin;
    for (unsigned i = TL_TIMED_LOST; i < TL_TIMED_KINDS; i++) {
        ask->ticks[i] = x->missing[i];
        ask->ticks[TL_TIMED_RUN] -= x->missing[i];
    }
}

/* The timestamps of the shards that overlap positions [from, to). */
static struct tl_rows_times times_of(const struct tl_cut *cut, uint64_t from, uint64_t to)
{
    struct tl_rows_times times = {0};
    for (size_t i = tl_cut_shard_at(cut, from); i < cut->n_rows && cut->rows[i].first < to; i++)
        tl_rows_times_add(&times, &cut->rows[i]);
    return times;
}

void tl_timing_ask_end(struct tl_timing_ask *ask)
{
    struct tl_timing_about *const about = ask->about;
    const struct tl_lane *const lane = ask->cut.lane;
    if (!lane)
        return;
    about->from = ask->from;
    about->to = ask->to;
    about->time_unit_ns = tl_lane_is_in_ns(lane);
    about->has_time = ask->last > 0 || ask->first > 0;
    about->time_from = about->has_time ? tl_lane_time(lane, ask->first) : 0;
    about->time_to = about->has_time ? tl_lane_time(lane, ask->last) : 0;
    about->ran = tl_timing_shown(lane, ask->ticks[TL_TIMED_RUN]);
    about->lost = tl_timing_shown(lane, ask->ticks[TL_TIMED_LOST]);
    about->off = tl_timing_shown(lane, ask->ticks[TL_TIMED_OFF]);
    about->switched_out = tl_timing_shown(lane, ask->ticks[TL_TIMED_SWITCHED_OUT]);
    about->time = about->ran + about->lost + about->off + about->switched_out;
    const struct tl_rows_times times = times_of(&ask->cut, ask->from, ask->to);
    about->time_step = about->has_time ? tl_timing_step(lane, &times) : 0;
    tl_cut_close(&ask->cut);
}

struct tl_duration tl_timing_duration(const struct tl_lane *lane, struct tl_moment ticks)
{
    return (struct tl_duration){
        .value = tl_timing_shown(lane, ticks.time),
        .least = tl_timing_shown(lane, ticks.least),
        .most = ticks.most == UINT64_MAX ? UINT64_MAX : tl_timing_shown(lane, ticks.most)};
}

int tl_length_add(struct tl_length_sum *sum, uint64_t length, uint64_t position)
{
    sum->min = sum->n == 0 || length < sum->min ? length : sum->min;
    if (sum->n == 0 || length > sum->max || (length == sum->max && position < sum->longest)) {
        sum->max = length;
        sum->longest = position;
    }
    sum->n++;
    sum->total += length;
    return tl_sketch_add(&sum->sketch, length);
}

/* A quantile is the middle of a class, which may be outside of what occurred. */
static uint64_t quantile(const struct tl_length_sum *sum, double part)
{
    const uint64_t q = tl_sketch_quantile(&sum->sketch, part);
    return q < sum->min ? sum->min : q > sum->max ? sum->max : q;
}

struct tl_lengths tl_length_result(const struct tl_length_sum *sum, const struct tl_lane *lane)
{
    struct tl_lengths out = {.total = sum->total,
                             .min = sum->min,
                             .max = sum->max,
                             .p50 = quantile(sum, 0.5),
                             .p90 = quantile(sum, 0.9),
                             .p99 = quantile(sum, 0.99),
                             .p999 = quantile(sum, 0.999),
                             .longest = sum->longest};
    uint64_t *const ticks[] = {&out.total, &out.min, &out.max, &out.p50,
                               &out.p90,   &out.p99, &out.p999};
    for (size_t i = 0; lane && i < sizeof ticks / sizeof *ticks; i++)
        *ticks[i] = tl_timing_shown(lane, *ticks[i]);
    return out;
}

void tl_length_fini(struct tl_length_sum *sum)
{
    tl_sketch_fini(&sum->sketch);
}

/* ---- lists ----------------------------------------------------------------------------------- */

void tl_best_sort(struct tl_best *best)
{
    if (best->n > 1)
        qsort(best->rows, best->n, best->size, best->compare);
    best->n = best->n < best->most ? best->n : best->most;
}

void tl_best_skip(struct tl_best *best, uint64_t rows)
{
    const size_t skipped = rows < best->n ? (size_t)rows : best->n;
    best->n -= skipped;
    if (best->n > 0)
        memmove(best->rows, (char *)best->rows + skipped * best->size, best->n * best->size);
}

int tl_best_add(struct tl_best *best, const void *row)
{
    if (best->most == 0)
        return TL_OK;
    if (best->n >= 2 * best->most && best->n >= 1024)
        tl_best_sort(best);
    const int r = tl_grow(&best->rows, &best->cap, best->n + 1, best->size);
    if (r >= 0)
        memcpy((char *)best->rows + best->n++ * best->size, row, best->size);
    return r;
}
