/* SPDX-License-Identifier: MIT */
/*
 * A shard's stored counts have the instructions of the shard, but the time between two timestamps
 * that are the last before it and the last in it. So what is left to walk differs by weight, and is
 * walked in pieces of which each counts one or both.
 */
#include "query/timed_counts.h"

#include "query/kept.h"

#include <stdlib.h>

/* Positions that are counted already, by weight. */
struct done {
    uint64_t insns, time;
    uint64_t ticks; /* at `time`, if `timed` */
    bool timed;
};

/* ---- walking --------------------------------------------------------------------------------- */

struct piece {
    struct tl_timed_counts *counts;
    struct tl_call_index index; /* sums are open until the end */
    const struct tl_timing_part *part;
    bool insns, time;
    uint32_t paths[TL_CALLSTACK_MAX + 1];
};

static struct tl_call_sums *sums_of(struct piece *p, uint32_t function)
{
    const size_t n = p->index.n_functions;
    const int64_t place = tl_call_index_function(&p->index, function);
    if (place < 0)
        return NULL;
    struct tl_call_sums *const by = p->index.functions[place].by;
    if ((size_t)place == n)
        by[TL_BY_INSNS] = by[TL_BY_TIME] = TL_CALL_SUMS_OPEN;
    return by;
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct piece *const p = context;
    struct tl_timed_counts *const c = p->counts;
    const uint64_t time = p->time ? span->end_time - span->time : 0;
    if (p->time && !c->any)
        c->first = span->time;
    c->any |= p->time;
    c->last = p->time ? span->end_time : c->last;
    if (span->kind != TL_TIMED_RUN)
        *(span->kind == TL_TIMED_LOST ? &c->lost : &c->off) += time;
    else
        c->ran += time;
    if (p->time && c->span) {
        const int r = c->span(c->context, span, from, to);
        if (r < 0)
            return r;
    }
    if (span->kind != TL_TIMED_RUN)
        return TL_OK;
    struct tl_call_sums *const by = sums_of(p, span->function);
    if (!by)
        return TL_NOMEM;
    const uint64_t insns = p->insns ? span->end - span->position : 0;
    struct tl_calltree_node *const node = &c->tree.nodes[p->paths[span->depth]];
    node->self += insns;
    node->time += time;
    by[TL_BY_INSNS].self += insns;
    by[TL_BY_TIME].self += time;
    return TL_OK;
}

static int on_begin(void *context, const struct tl_frame *frame, uint32_t depth,
                    const struct tl_moment *at)
{
    struct piece *const p = context;
    const int64_t path = tl_calltree_path(&p->counts->tree, p->paths[depth], frame->function);
    struct tl_call_sums *const by = sums_of(p, frame->function);
    (void)at;
    if (path < 0 || !by)
        return TL_NOMEM;
    p->paths[depth + 1] = (uint32_t)path;
    if (!tl_frame_is_call(frame) || frame->insn < p->part->from)
        return TL_OK;
    p->counts->tree.nodes[path].calls += p->insns;
    by[TL_BY_INSNS].calls += p->insns;
    by[TL_BY_TIME].calls += p->time;
    return TL_OK;
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct piece *const p = context;
    const uint64_t begin = call->frame.insn;
    struct tl_call_sums *const by = sums_of(p, call->frame.function);
    if (!by)
        return TL_NOMEM;
    if (call->open || !tl_frame_is_call(&call->frame))
        return TL_OK;
    int r = p->insns ? tl_call_sums_end(&by[TL_BY_INSNS], begin, call->end - begin) : TL_OK;
    if (r >= 0 && p->time)
        r = tl_call_sums_end(&by[TL_BY_TIME], begin, call->to.time - call->from.time);
    return r;
}

static int close_piece(struct piece *p)
{
    for (size_t i = 0; i < p->index.n_functions; i++)
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS; weight++)
            tl_call_sums_close(&p->index.functions[i].by[weight]);
    return tl_call_index_merge(&p->counts->index, &p->index);
}

static int walk_piece(struct tl_timed_counts *counts, const struct tl_cut *cut,
                      const struct tl_timing_part *part, bool insns, bool time,
                      struct tl_fail *fail)
{
    struct piece *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    p->counts = counts;
    p->part = part;
    p->insns = insns;
    p->time = time;
    const struct tl_timing_sinks sinks = {
        .span = on_span, .begin = on_begin, .end = on_end, .context = p};
    int r = tl_timing_walk_part(cut, part, &sinks, fail);
    if (r >= 0)
        r = close_piece(p);
    tl_call_index_fini(&p->index);
    free(p);
    return r;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Count what is between `done` and `next`, by weight. */
static int walk_between(struct tl_timed_counts *counts, const struct tl_cut *cut,
                        const struct done *done, const struct done *next, struct tl_fail *fail)
{
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
        const struct tl_timing_part part = {.from = at,
                                            .to = end,
                                            .has_begin = time && at == done->time && done->timed,
                                            .begin = done->ticks,
                                            .has_end = time && end == next->time && next->timed,
                                            .end = next->ticks};
        if (insns || time)
            r = walk_piece(counts, cut, &part, insns, time, fail);
        at = end;
    }
    return r;
}

/* ---- whole shards ---------------------------------------------------------------------------- */

static bool is_whole(const struct tl_cut *cut, size_t i, uint64_t from, uint64_t to)
{
    const struct tl_shard_row *const row = &cut->rows[i];
    return i < cut->n_stored && row->first >= from && row->first + row->n <= to &&
           !tl_lane_is_incomplete(cut->lane, row->number);
}

static int merge(struct tl_timed_counts *c, const struct tl_shard_calls *calls)
{
    const struct tl_timed_extent *const x = &calls->index.extent;
    int r = tl_calltree_merge(&c->tree, &calls->tree);
    if (r >= 0)
        r = tl_call_index_merge(&c->index, &calls->index);
    if (r < 0 || !x->timed)
        return r;
    c->first = c->any ? c->first : x->begin;
    c->any = true;
    c->last = x->end;
    c->lost += x->lost;
    c->off += x->off;
    c->ran += x->end - x->begin - x->lost - x->off;
    return r;
}

/* Count shard `i` by what is stored, after what is left before it. TL_NOTFOUND: nothing that goes
 * on from there is. */
static int add_shard(struct tl_timed_counts *c, const struct tl_cut *cut, size_t i,
                     struct done *done, struct tl_fail *fail)
{
    const struct tl_shard_row *const row = &cut->rows[i];
    struct tl_shard_calls calls = {0};
    int r = tl_kept_times_get(cut, i, &calls);
    const struct tl_timed_extent *const x = &calls.index.extent;
    /* At the begin of a range the last timestamp counts, if there are several at its position. */
    if (r >= 0 && x->timed &&
        (x->from < done->time || (x->from == done->time && !done->timed && x->from > 0)))
        r = TL_NOTFOUND;
    const struct done next = {.insns = row->first,
                              .time = x->timed ? x->from : done->time,
                              .ticks = x->begin,
                              .timed = x->timed};
    if (r >= 0)
        r = walk_between(c, cut, done, &next, fail);
    if (r >= 0)
        r = merge(c, &calls);
    if (r >= 0) {
        done->insns = row->first + row->n;
        done->time = x->timed ? x->to : done->time;
        done->ticks = x->timed ? x->end : done->ticks;
        done->timed = done->timed || x->timed;
        c->shards++;
    }
    tl_shard_calls_fini(&calls);
    return r;
}

int tl_timed_counts_add(struct tl_timed_counts *counts, const struct tl_cut *cut, uint64_t from,
                        uint64_t to, struct tl_fail *fail)
{
    to = lower(to, cut->end);
    from = lower(from, to);
    struct done done = {.insns = from, .time = from};
    int r = tl_calltree_root(&counts->tree) < 0 ? TL_NOMEM : TL_OK;
    for (size_t i = tl_cut_shard_at(cut, from); i < cut->n_rows && r >= 0; i++) {
        if (cut->rows[i].first >= to)
            break;
        if (!counts->walks && is_whole(cut, i, from, to))
            r = add_shard(counts, cut, i, &done, fail);
        r = r == TL_NOTFOUND ? TL_OK : r;
    }
    const struct done end = {.insns = to, .time = to};
    return r < 0 ? r : walk_between(counts, cut, &done, &end, fail);
}

void tl_timed_counts_fini(struct tl_timed_counts *counts)
{
    tl_calltree_fini(&counts->tree);
    tl_call_index_fini(&counts->index);
}
