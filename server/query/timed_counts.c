/* SPDX-License-Identifier: MIT */
/*
 * Counts calls of ranges that are no whole shards. Walked parts are counted into an index of their
 * own, whose sums are closed before they are added: extremes are known then.
 */
#include "query/timed_counts.h"

#include "lake/locate.h"
#include "query/timed_parts.h"

#include <stdlib.h>

struct adding {
    struct tl_timed_counts *counts;
    const struct tl_cut *cut;
};

struct piece {
    struct tl_timed_counts *counts;
    struct tl_call_index index; /* sums are open until the end */
    const struct tl_timed_part *part;
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
    const uint64_t time = p->part->time ? span->end_time - span->time : 0;
    if (p->part->time) {
        tl_timed_extent_span(&c->extent, span);
        const int r = c->span ? c->span(c->context, span, from, to) : TL_OK;
        if (r < 0)
            return r;
    }
    if (span->kind != TL_TIMED_RUN)
        return TL_OK;
    struct tl_call_sums *const by = sums_of(p, span->function);
    if (!by)
        return TL_NOMEM;
    const uint64_t insns = p->part->insns ? span->end - span->position : 0;
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
    if (!tl_frame_is_call(frame) || frame->insn < p->part->walk.from)
        return TL_OK;
    p->counts->tree.nodes[path].calls += p->part->insns;
    by[TL_BY_INSNS].calls += p->part->insns;
    by[TL_BY_TIME].calls += p->part->time;
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
    int r = p->part->insns ? tl_call_sums_end(&by[TL_BY_INSNS], begin, call->end - begin) : TL_OK;
    if (r >= 0 && p->part->time)
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

static int walk_part(void *context, const struct tl_timed_part *part, struct tl_fail *fail)
{
    struct adding *const a = context;
    struct piece *const p = calloc(1, sizeof *p);
    if (!p)
        return TL_NOMEM;
    p->counts = a->counts;
    p->part = part;
    const struct tl_timing_sinks sinks = {
        .span = on_span, .begin = on_begin, .end = on_end, .context = p};
    struct tl_timing_part walked = part->walk;
    walked.cycles = a->counts->cycles;
    int r = tl_timing_walk_part(a->cut, &walked, &sinks, fail);
    if (r >= 0)
        r = close_piece(p);
    tl_call_index_fini(&p->index);
    free(p);
    return r;
}

static int add_shard(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail)
{
    struct tl_timed_counts *const c = ((struct adding *)context)->counts;
    (void)row, (void)fail;
    const struct tl_bytes index = {calls->index_bytes.p, calls->index_bytes.n};
    tl_timed_extent_join(&c->extent, &calls->index.extent);
    c->shards++;
    int r = tl_calltree_merge(&c->tree, &calls->tree);
    if (r >= 0)
        r = index.n > 0 ? tl_call_index_decode(&c->index, index)
                        : tl_call_index_merge(&c->index, &calls->index);
    return r == TL_NOTFOUND ? TL_BAD : r; /* its checksum was right */
}

int tl_timed_counts_add(struct tl_timed_counts *counts, const struct tl_cut *cut, uint64_t from,
                        uint64_t to, struct tl_fail *fail)
{
    to = to < cut->end ? to : cut->end;
    struct adding adding = {counts, cut};
    counts->index.unlisted = true;
    const struct tl_timed_parts parts = {.cut = cut,
                                         .from = from < to ? from : to,
                                         .to = to,
                                         .tree = true,
                                         .walks = counts->walks || counts->cycles,
                                         .walk = walk_part,
                                         .shard = add_shard,
                                         .context = &adding};
    return tl_calltree_root(&counts->tree) < 0 ? TL_NOMEM : tl_timed_parts_visit(&parts, fail);
}

void tl_timed_counts_fini(struct tl_timed_counts *counts)
{
    tl_calltree_fini(&counts->tree);
    tl_call_index_fini(&counts->index);
}

static uint64_t shown(const struct tl_timed_counts *counts, const struct tl_lane *lane,
                      uint64_t ticks)
{
    return counts->cycles ? ticks : tl_timing_shown(lane, ticks);
}

/* The tree by time: own times take the place of own instructions, lengths of calls likewise. */
static int weigh(struct tl_timed_counts *counts, const struct tl_lane *lane)
{
    struct tl_calltree *const t = &counts->tree;
    int r = TL_OK;
    for (size_t i = 0; i < t->n_nodes; i++)
        t->nodes[i].self = shown(counts, lane, t->nodes[i].time);
    t->n_functions = 0;
    tl_numbers_reset(&t->numbers);
    for (size_t i = 0; i < counts->index.n_functions && r >= 0; i++) {
        const struct tl_function_calls *const f = &counts->index.functions[i];
        const struct tl_call_sums *const s = &f->by[TL_BY_TIME];
        const int64_t place = tl_calltree_function(t, f->function);
        if (place < 0)
            return TL_NOMEM;
        t->functions[place] = (struct tl_calltree_function){.function = f->function,
                                                            .calls = f->by[TL_BY_INSNS].calls,
                                                            .ended = s->ended,
                                                            .total = shown(counts, lane, s->total),
                                                            .min = shown(counts, lane, s->min),
                                                            .max = shown(counts, lane, s->max),
                                                            .longest = s->longest};
    }
    return r;
}

/* A range that is not empty has cycles, if any were counted; its stream has times, or none. */
static int check_weight(const struct tl_timed_counts *counts, const struct tl_cut *cut,
                        uint64_t from, uint64_t to, struct tl_fail *fail)
{
    const struct tl_timed_extent *const x = &counts->extent;
    if (from >= to || from >= cut->end || (x->timed && x->end > x->begin))
        return TL_OK;
    if (!counts->cycles)
        return tl_cut_need_time(cut, fail);
    return tl_fail_set(fail, TL_USAGE,
                       "stream %s has no cycle counts there: weigh by insns or time, or trace with "
                       "cycle counting",
                       cut->lane->name);
}

int tl_timed_tree_add(struct tl_calltree *tree, const struct tl_cut *cut, uint64_t from,
                      uint64_t to, enum tl_weight weight, struct tl_fail *fail)
{
    struct tl_timed_counts counts = {.cycles = weight == TL_WEIGHT_CYCLES};
    int r = tl_timed_counts_add(&counts, cut, from, to, fail);
    if (r >= 0)
        r = check_weight(&counts, cut, from, to, fail);
    if (r >= 0)
        r = weigh(&counts, cut->lane);
    if (r >= 0)
        r = tl_calltree_merge(tree, &counts.tree);
    tl_timed_counts_fini(&counts);
    return r;
}
