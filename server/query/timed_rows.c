/* SPDX-License-Identifier: MIT */
/*
 * A range is a row of pieces, walked or stored. Exceptions that are active where one piece ends are
 * told by the next one again; only how long they ran themselves has to be added up.
 */
#include "query/timed_rows.h"

#include "query/timed_parts.h"

#include <stdlib.h>

struct gathering {
    const struct tl_cut *cut;
    const struct tl_timed_rows_sinks *sinks;
    struct tl_timed_extent all;
    uint64_t at; /* everything before is done */
    /* Exceptions that were active there. */
    struct tl_exception_span *open;
    size_t n_open, cap_open;
};

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

static int add_walked(void *context, const struct tl_timed_part *part, struct tl_fail *fail)
{
    struct gathering *const g = context;
    struct tl_timed_rows rows = {0};
    int r = tl_timed_rows_walk(g->cut, &part->walk, &rows, fail);
    if (r >= 0)
        r = add_piece(g, &rows);
    g->at = part->walk.to;
    tl_timed_rows_fini(&rows);
    return r;
}

static int add_stored(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail)
{
    struct gathering *const g = context;
    (void)row, (void)fail;
    const int r = add_piece(g, &calls->rows);
    g->at = calls->rows.extent.to;
    return r;
}

int tl_timed_rows_gather(const struct tl_cut *cut, uint64_t from, uint64_t to,
                         const struct tl_timed_rows_sinks *sinks, struct tl_timed_extent *out,
                         struct tl_fail *fail)
{
    to = to < cut->end ? to : cut->end;
    from = from < to ? from : to;
    struct gathering g = {.cut = cut, .sinks = sinks, .at = from};
    const struct tl_timed_parts parts = {.cut = cut,
                                         .from = from,
                                         .to = to,
                                         .rows = true,
                                         .walk = add_walked,
                                         .shard = add_stored,
                                         .context = &g};
    int r = tl_timed_parts_visit(&parts, fail);
    for (size_t k = 0; k < g.n_open && r >= 0 && sinks->exception; k++)
        r = sinks->exception(sinks->context, &g.open[k]);
    *out = g.all;
    out->from = from;
    out->to = to;
    free(g.open);
    return r;
}
