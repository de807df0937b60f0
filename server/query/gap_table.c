/* SPDX-License-Identifier: MIT */
/*
 * The longest stretches of a range in which trace is missing, or was switched off. Shards have
 * their longest ones stored; only whoever asks for more has all of the range walked.
 */
#include "query/timed_rows.h"
#include "query/timing_answer.h"

#include <stdlib.h>

#define LIMIT     100
#define LIMIT_MAX 100000

struct gaps {
    struct tl_timing_ask ask;
    uint64_t all;
    struct tl_best best; /* struct tl_gap_span */
};

static int on_gap(void *context, const struct tl_scale_break *gap)
{
    struct gaps *const g = context;
    const struct tl_gap_span span = tl_timed_rows_gap_of(gap);
    g->all++;
    return tl_best_add(&g->best, &span);
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

static int on_piece(void *context, const struct tl_timed_rows *rows)
{
    struct gaps *const g = context;
    int r = TL_OK;
    g->all += rows->all_gaps;
    for (size_t i = 0; i < rows->n_gaps && r >= 0; i++)
        r = tl_best_add(&g->best, &rows->gaps[i]);
    return r;
}

static int gather(struct gaps *g, struct tl_fail *fail)
{
    const struct tl_timing_sinks walked = {.span = on_span, .gap = on_gap, .context = g};
    const struct tl_timed_rows_sinks stored = {.piece = on_piece, .context = g};
    struct tl_timed_extent all;
    if (g->best.most > TL_GAPS_KEPT)
        return tl_timing_walk(&g->ask.cut, g->ask.from, g->ask.to, &walked, fail);
    const int r = tl_timed_rows_gather(&g->ask.cut, g->ask.from, g->ask.to, &stored, &all, fail);
    tl_timing_ask_extent(&g->ask, &all);
    return r;
}

static int answer(struct gaps *g, struct tl_gap_table *out)
{
    const struct tl_lane *const lane = g->ask.cut.lane;
    const struct tl_gap_span *const gaps = g->best.rows;
    tl_best_sort(&g->best);
    out->all = g->all;
    out->p = calloc(g->best.n + 1, sizeof *out->p);
    for (size_t i = 0; out->p && i < g->best.n; i++)
        out->p[out->n++] =
            (struct tl_gap_row){.position = gaps[i].position,
                                .time_from = tl_lane_time(lane, gaps[i].time),
                                .time_to = tl_lane_time(lane, gaps[i].end_time),
                                .gaps = gaps[i].gaps,
                                .off = gaps[i].kind == TL_TIMED_OFF,
                                .switched_out = gaps[i].kind == TL_TIMED_SWITCHED_OUT,
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
    struct gaps g = {.best = {.size = sizeof(struct tl_gap_span), .compare = tl_gap_span_compare}};
    *out = (struct tl_gap_table){0};
    g.best.most = limit == 0 ? LIMIT : limit < LIMIT_MAX ? limit : LIMIT_MAX;
    int r = tl_timing_ask_begin(&g.ask, lake, range, &out->about, fail);
    if (r >= 0)
        r = gather(&g, fail);
    if (r >= 0)
        r = answer(&g, out);
    free(g.best.rows);
    tl_timing_ask_end(&g.ask);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}
