/* SPDX-License-Identifier: MIT */
/*
 * What is stored is read in parallel, in batches, and used in order. Shards without it are counted
 * together with those that follow them without it, because times continue from shard to shard.
 */
#include "query/timed_parts.h"

#include "base/cancel.h"
#include "lake/recount_calls.h"
#include "query/kept.h"
#include "query/sweep.h"

#include <stdlib.h>

enum { TOGETHER = 64 }; /* shards in memory at a time */

/* Positions that are counted already, by weight. */
struct done {
    uint64_t insns, time;
    uint64_t ticks; /* at `time`, if `timed` */
    bool timed;
};

struct visit {
    const struct tl_timed_parts *parts;
    struct done done;
    /* The shards of a batch. */
    size_t first;
    struct tl_shard_calls calls[TOGETHER];
    bool known[TOGETHER];
    struct tl_kept kept;
};

/* ---- what is stored -------------------------------------------------------------------------- */

static int read_one(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    struct visit *const v = context;
    const struct tl_timed_parts *const p = v->parts;
    struct tl_shard_calls *const calls = &v->calls[i];
    (void)worker, (void)fail;
    calls->index.only = p->only;
    calls->index.n_only = p->n_only;
    const int r = p->rows   ? tl_kept_rows_get(p->cut, v->first + i, &calls->rows)
                  : p->tree ? tl_kept_times_get(p->cut, v->first + i, calls)
                            : tl_kept_index_get(p->cut, v->first + i, &calls->index);
    v->known[i] = r >= 0;
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int take_counted(void *context, size_t row, struct tl_shard_calls *calls)
{
    struct visit *const v = context;
    const int r = tl_kept_calls_replace(&v->kept, v->parts->cut, row, calls);
    v->calls[row - v->first] = *calls;
    *calls = (struct tl_shard_calls){0};
    return r;
}

/* Get what is known of `n` shards from v->first on. */
static int get_batch(struct visit *v, size_t n, struct tl_fail *fail)
{
    const struct tl_cut *const cut = v->parts->cut;
    int r = tl_sweep(cut->gen->lake, n, read_one, v, fail);
    for (size_t i = 0, end; i < n && r >= 0; i = end) {
        for (end = i + 1; end < n && v->known[end] == v->known[i];)
            end++;
        if (!v->known[i])
            r = tl_recount_calls(cut, v->first + i, v->first + end, take_counted, v, fail);
    }
    tl_kept_store(&v->kept, cut);
    return r;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Pass on what is between v->done and `next`, by weight. */
static int walk_to(struct visit *v, const struct done *next, struct tl_fail *fail)
{
    const struct done *const done = &v->done;
    int r = TL_OK;
    for (uint64_t at = lower(done->insns, done->time); r >= 0;) {
        const bool insns = done->insns <= at && at < next->insns,
                   time = done->time <= at && at < next->time;
        uint64_t end = UINT64_MAX;
        const uint64_t edges[] = {done->insns, next->insns, done->time, next->time};
        for (size_t i = 0; i < 4; i++)
            end = edges[i] > at ? lower(end, edges[i]) : end;
        if (end == UINT64_MAX)
            break;
        const struct tl_timed_part part = {
            .walk = {.from = at,
                     .to = end,
                     .has_begin = time && at == done->time && done->timed,
                     .begin = done->ticks,
                     .has_end = time && end == next->time && next->timed,
                     .end = next->ticks},
            .insns = insns,
            .time = time};
        if (insns || time)
            r = v->parts->walk(v->parts->context, &part, fail);
        at = end;
    }
    return r;
}

/* Pass on a shard, after what is left before it; or leave it to be walked. */
static int use_shard(struct visit *v, size_t i, struct tl_fail *fail)
{
    const struct tl_timed_parts *const p = v->parts;
    const struct tl_shard_row *const row = &p->cut->rows[v->first + i];
    const struct tl_timed_extent x = p->rows ? v->calls[i].rows.extent : v->calls[i].index.extent;
    struct done *const done = &v->done;
    /* At the begin of a range the last timestamp counts, if there are several at its position. */
    if (x.timed ? x.from < done->time || (x.from == done->time && !done->timed && x.from > 0)
                : p->rows)
        return TL_OK;
    const struct done next = {.insns = p->rows ? UINT64_MAX : row->first,
                              .time = x.timed ? x.from : done->time,
                              .ticks = x.begin,
                              .timed = x.timed};
    int r = walk_to(v, &next, fail);
    if (r >= 0)
        r = p->shard(p->context, v->first + i, &v->calls[i], fail);
    done->insns = p->rows ? UINT64_MAX : row->first + row->n;
    if (x.timed)
        *done = (struct done){done->insns, x.to, x.end, true};
    return r;
}

static int use_batch(struct visit *v, size_t first, size_t n, struct tl_fail *fail)
{
    v->first = first;
    int r = get_batch(v, n, fail);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            r = use_shard(v, i, fail);
        tl_shard_calls_fini(&v->calls[i]);
        v->calls[i] = (struct tl_shard_calls){0};
    }
    return r < 0 ? r : tl_cancel_check();
}

/* Is it a shard that can be used? */
static bool is_whole(const struct tl_timed_parts *p, size_t i)
{
    const struct tl_cut *const cut = p->cut;
    if (p->walks || i >= cut->n_stored)
        return false;
    const struct tl_shard_row *const row = &cut->rows[i];
    return row->first >= p->from && row->first + row->n <= p->to &&
           (!p->rows || row->anchors > 0 || row->at.has_time) &&
           !tl_lane_is_incomplete(cut->lane, row->number);
}

static int visit(struct visit *v, struct tl_fail *fail)
{
    const struct tl_timed_parts *const p = v->parts;
    const struct tl_cut *const cut = p->cut;
    int r = TL_OK;
    for (size_t i = tl_cut_shard_at(cut, p->from), n;
         r >= 0 && i < cut->n_rows && cut->rows[i].first<p->to; i += n> 0 ? n : 1) {
        for (n = 0; n < TOGETHER && is_whole(p, i + n);)
            n++;
        r = n > 0 ? use_batch(v, i, n, fail) : TL_OK;
    }
    const struct done end = {.insns = p->rows ? UINT64_MAX : p->to, .time = p->to};
    const struct tl_timed_part behind = {
        .walk = {.from = p->to, .to = p->to}, .insns = true, .time = true};
    /* At the end of a stream there may be items without an instruction. */
    if (r >= 0 && p->from == p->to && p->to >= cut->end)
        return p->walk(p->context, &behind, fail);
    return r < 0 ? r : walk_to(v, &end, fail);
}

struct tl_timing_part tl_timed_part_of(const struct tl_shard_row *row,
                                       const struct tl_timed_extent *x, bool time)
{
    return time ? (struct tl_timing_part){.from = x->from,
                                          .to = x->to,
                                          .has_begin = true,
                                          .has_end = true,
                                          .begin = x->begin,
                                          .end = x->end}
                : (struct tl_timing_part){.from = row->first, .to = row->first + row->n};
}

int tl_timed_parts_visit(const struct tl_timed_parts *parts, struct tl_fail *fail)
{
    struct visit *const v = calloc(1, sizeof *v);
    if (!v)
        return TL_NOMEM;
    v->parts = parts;
    v->done = (struct done){.insns = parts->rows ? UINT64_MAX : parts->from, .time = parts->from};
    const int r = visit(v, fail);
    free(v);
    return r;
}
