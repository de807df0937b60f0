/* SPDX-License-Identifier: MIT */
/*
 * Hits of a search by column. They are counted, not listed: the effort is that of counting, and a
 * picture shows where all of them are, however many.
 */
#include "query/columns.h"
#include "query/seek_count.h"

#include <stdlib.h>

static int refine(const void *context, size_t shard, uint64_t *edges, struct tl_fail *fail)
{
    return tl_columns_refine(context, shard, edges, fail);
}

static int count(struct tl_lake *lake, const struct tl_columns *c, const struct tl_sought *sought,
                 struct tl_hit_columns *out, struct tl_fail *fail)
{
    /* What follows the last instruction belongs to the last column. */
    const struct tl_seek_range range = {
        .from = c->edges[0], .to = c->edges[c->n], .tail = c->edges[c->n] >= c->cut.end};
    const struct tl_seek_edges edges = {
        .p = c->edges, .n = c->n + 1, .refine = refine, .context = c};
    uint64_t *const counts = calloc(c->n + 2, sizeof *counts);
    int r = counts ? TL_OK : TL_NOMEM;
    if (r >= 0 && (range.from < range.to || range.tail))
        r = tl_seek_count_between(lake, sought, &c->cut, &range, &edges, counts, fail);
    for (size_t i = 0; i < c->n && r >= 0; i++) {
        out->hits[i] = counts[i + 1] + (i + 1 == c->n ? counts[i + 2] : 0);
        out->total += out->hits[i];
    }
    free(counts);
    return r;
}

int tl_lake_hit_columns(struct tl_lake *lake, const struct tl_lane_request *request,
                        const char *text, struct tl_hit_columns *out, struct tl_fail *fail)
{
    const struct tl_find_request what = {.kind = TL_FIND_TEXT, .text = text};
    struct tl_columns c;
    *out = (struct tl_hit_columns){0};
    int r = tl_columns_open(&c, lake, request, fail);
    if (r >= 0) {
        struct tl_sought sought;
        out->hits = calloc(c.n, sizeof *out->hits);
        out->n = out->hits ? c.n : 0;
        out->from = c.from;
        out->to = c.to;
        r = tl_sought_init(&sought, c.cut.gen, &what, fail);
        if (r >= 0)
            r = out->hits ? count(lake, &c, &sought, out, fail) : TL_NOMEM;
        tl_sought_fini(&sought);
    }
    tl_columns_close(&c);
    return tl_sought_failed(r, fail);
}

void tl_hit_columns_fini(struct tl_hit_columns *columns)
{
    free(columns->hits);
    *columns = (struct tl_hit_columns){0};
}
