/* SPDX-License-Identifier: MIT */
/* The longest stretches of a range in which trace is missing, or was switched off. */
#include "query/timing_answer.h"

#include <stdlib.h>

#define LIMIT     100
#define LIMIT_MAX 100000

struct gaps {
    struct tl_timing_ask ask;
    uint64_t all;
    struct tl_best best; /* struct tl_scale_break */
};

static int by_length(const void *a, const void *b)
{
    const struct tl_scale_break *x = a, *y = b;
    if (x->to - x->from != y->to - y->from)
        return x->to - x->from > y->to - y->from ? -1 : 1;
    return x->position < y->position ? -1 : x->position > y->position;
}

static int on_gap(void *context, const struct tl_scale_break *gap)
{
    struct gaps *const g = context;
    g->all++;
    return tl_best_add(&g->best, gap);
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct gaps *const g = context;
    (void)from;
    (void)to;
    tl_timing_ask_span(&g->ask, span);
    return TL_OK;
}

static int answer(struct gaps *g, struct tl_gap_table *out)
{
    const struct tl_lane *const lane = g->ask.cut.lane;
    const struct tl_scale_break *const gaps = g->best.rows;
    tl_best_sort(&g->best);
    out->all = g->all;
    out->p = calloc(g->best.n + 1, sizeof *out->p);
    for (size_t i = 0; out->p && i < g->best.n; i++)
        out->p[out->n++] = (struct tl_gap_row){.position = gaps[i].position,
                                               .time_from = tl_lane_time(lane, gaps[i].from),
                                               .time_to = tl_lane_time(lane, gaps[i].to),
                                               .gaps = gaps[i].count,
                                               .off = tl_scale_is_off(&gaps[i]),
                                               .reasons = gaps[i].reasons};
    return out->p ? TL_OK : TL_NOMEM;
}

void tl_gap_table_fini(struct tl_gap_table *table)
{
    free(table->p);
    tl_gen_put(table->about.gen);
    *table = (struct tl_gap_table){0};
}

int tl_lake_gap_table(struct tl_lake *lake, const struct tl_timing_range *range, uint32_t limit,
                      struct tl_gap_table *out, struct tl_fail *fail)
{
    struct gaps g = {.best = {.size = sizeof(struct tl_scale_break), .compare = by_length}};
    const struct tl_timing_sinks sinks = {.span = on_span, .gap = on_gap, .context = &g};
    *out = (struct tl_gap_table){0};
    g.best.most = limit == 0 ? LIMIT : limit < LIMIT_MAX ? limit : LIMIT_MAX;
    int r = tl_timing_ask_begin(&g.ask, lake, range, &out->about, fail);
    if (r >= 0)
        r = tl_timing_walk(&g.ask.cut, g.ask.from, g.ask.to, &sinks, fail);
    if (r >= 0)
        r = answer(&g, out);
    free(g.best.rows);
    tl_timing_ask_end(&g.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
