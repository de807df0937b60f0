/* SPDX-License-Identifier: MIT */
/*
 * A range is a row of pieces, walked or stored. Exceptions that are active where one piece ends are
 * told by the next one again; only how long they ran themselves has to be added up.
 */
#include "query/timed_rows.h"

#include "base/cancel.h"
#include "lake/recount_calls.h"
#include "query/kept.h"
#include "query/sweep.h"

#include <stdlib.h>

enum { TOGETHER = 64 }; /* shards in memory at a time */

struct gathering {
    const struct tl_cut *cut;
    const struct tl_timed_rows_sinks *sinks;
    struct tl_timed_extent all;
    /* Everything before is done: */
    uint64_t at, ticks;
    bool timed; /* `ticks` is known */
    /* Exceptions that were active there. */
    struct tl_exception_span *open;
    size_t n_open, cap_open;
    /* The shards of a batch. */
    size_t first;
    struct tl_timed_rows rows[TOGETHER];
    bool known[TOGETHER];
    struct tl_kept kept;
};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The exception was active where the pieces before ended: add what is known of it from there. A
 * walk knows only where the last function of its handler began. */
static void add_earlier(const struct gathering *g, struct tl_exception_span *e)
{
    for (size_t i = 0; i < g->n_open; i++) {
        const struct tl_exception_span *const earlier = &g->open[i];
        if (earlier->level != e->level || earlier->number != e->number)
            continue;
        e->begin = earlier->begin;
        e->time = earlier->time;
        e->self += earlier->self;
        e->self_time += earlier->self_time;
    }
}

/* A piece whose exceptions begin where those before it ended. */
static int add_piece(struct gathering *g, const struct tl_timed_rows *rows)
{
    struct tl_exception_span *open = NULL;
    size_t n_open = 0, cap_open = 0;
    tl_timed_extent_join(&g->all, &rows->extent);
    int r = TL_OK;
    if (g->sinks->piece)
        r = g->sinks->piece(g->sinks->context, rows);
    for (size_t i = 0; i < rows->n_exceptions && r >= 0 && g->sinks->exception; i++) {
        struct tl_exception_span e = rows->exceptions[i];
        if (e.begin < g->at)
            add_earlier(g, &e);
        if (!(e.flags & TL_EXCEPTION_OPEN))
            r = g->sinks->exception(g->sinks->context, &e);
        else if ((r = tl_grow(&open, &cap_open, n_open + 1, sizeof *open)) >= 0)
            open[n_open++] = e;
    }
    free(g->open);
    g->open = open;
    g->n_open = n_open;
    g->cap_open = cap_open;
    return r;
}

/* Walk what is not done before a position; `to`: of the extent that begins there. */
static int walk_to(struct gathering *g, uint64_t position, const struct tl_timed_extent *to,
                   struct tl_fail *fail)
{
    const struct tl_timing_part part = {.from = g->at,
                                        .to = position,
                                        .has_begin = g->timed,
                                        .begin = g->ticks,
                                        .has_end = to != NULL,
                                        .end = to ? to->begin : 0};
    struct tl_timed_rows rows = {0};
    if (position <= g->at)
        return TL_OK;
    int r = tl_timed_rows_walk(g->cut, &part, &rows, fail);
    if (r >= 0)
        r = add_piece(g, &rows);
    g->at = position;
    tl_timed_rows_fini(&rows);
    return r;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* Is it one whose rows can be used? */
static bool is_whole(const struct tl_cut *cut, size_t i, uint64_t from, uint64_t to)
{
    const struct tl_shard_row *const row = &cut->rows[i];
    return i < cut->n_stored && row->first >= from && row->first + row->n <= to &&
           (row->anchors > 0 || row->at.has_time) && !tl_lane_is_incomplete(cut->lane, row->number);
}

static int read_one(void *context, unsigned worker, size_t i, struct tl_fail *fail)
{
    struct gathering *const g = context;
    (void)worker, (void)fail;
    const int r = tl_kept_rows_get(g->cut, g->first + i, &g->rows[i]);
    g->known[i] = r >= 0;
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int take_counted(void *context, size_t row, struct tl_shard_calls *calls)
{
    struct gathering *const g = context;
    const int r = tl_kept_calls_replace(&g->kept, g->cut, row, calls);
    g->rows[row - g->first] = calls->rows;
    calls->rows = (struct tl_timed_rows){0};
    return r;
}

/* Get the rows of `n` shards from g->first on. */
static int get_rows(struct gathering *g, size_t n, struct tl_fail *fail)
{
    int r = tl_sweep(g->cut->gen->lake, n, read_one, g, fail);
    for (size_t i = 0, end; i < n && r >= 0; i = end) {
        for (end = i + 1; end < n && g->known[end] == g->known[i];)
            end++;
        if (!g->known[i])
            r = tl_recount_calls(g->cut, g->first + i, g->first + end, take_counted, g, fail);
    }
    tl_kept_store(&g->kept, g->cut);
    return r;
}

/* Add a shard, after what is left before it; or leave it to be walked. */
static int add_shard(struct gathering *g, const struct tl_timed_rows *rows, struct tl_fail *fail)
{
    const struct tl_timed_extent *const x = &rows->extent;
    /* At the begin of a range the last timestamp counts, if there are several at its position. */
    if (!x->timed || x->from < g->at || (x->from == g->at && !g->timed && x->from > 0))
        return TL_OK;
    int r = walk_to(g, x->from, x, fail);
    if (r >= 0)
        r = add_piece(g, rows);
    g->at = x->to;
    g->ticks = x->end;
    g->timed = true;
    return r;
}

/* Add shards [first, first + n). */
static int add_batch(struct gathering *g, size_t first, size_t n, struct tl_fail *fail)
{
    g->first = first;
    int r = get_rows(g, n, fail);
    for (size_t i = 0; i < n; i++) {
        if (r >= 0)
            r = add_shard(g, &g->rows[i], fail);
        tl_timed_rows_fini(&g->rows[i]);
    }
    return r < 0 ? r : tl_cancel_check();
}

static int gather(struct gathering *g, uint64_t from, uint64_t to, struct tl_fail *fail)
{
    const struct tl_cut *const cut = g->cut;
    int r = TL_OK;
    size_t i = tl_cut_shard_at(cut, from);
    while (r >= 0 && i < cut->n_rows && cut->rows[i].first < to) {
        size_t n = 0;
        while (n < TOGETHER && i + n < cut->n_rows && is_whole(cut, i + n, from, to))
            n++;
        r = n > 0 ? add_batch(g, i, n, fail) : TL_OK;
        i += n > 0 ? n : 1;
    }
    if (r >= 0)
        r = walk_to(g, to, NULL, fail);
    for (size_t k = 0; k < g->n_open && r >= 0 && g->sinks->exception; k++)
        r = g->sinks->exception(g->sinks->context, &g->open[k]);
    return r;
}

int tl_timed_rows_gather(const struct tl_cut *cut, uint64_t from, uint64_t to,
                         const struct tl_timed_rows_sinks *sinks, struct tl_timed_extent *out,
                         struct tl_fail *fail)
{
    struct gathering *const g = calloc(1, sizeof *g);
    if (!g)
        return TL_NOMEM;
    to = to < cut->end ? to : cut->end;
    from = from < to ? from : to;
    g->cut = cut;
    g->sinks = sinks;
    g->at = from;
    const int r = gather(g, from, to, fail);
    *out = g->all;
    out->from = from;
    out->to = to;
    free(g->open);
    free(g);
    return r;
}
