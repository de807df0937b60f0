/* SPDX-License-Identifier: MIT */
/*
 * A range in columns. All of what is drawn is counted by position, so that the axis matters only
 * here: to the columns of a range of time belong the positions between the times of their edges.
 */
#include "query/columns.h"

#include "base/search.h"
#include "lake/locate.h"

#include <stdlib.h>

#define COLUMNS     512
#define COLUMNS_MAX 4096

uint64_t tl_columns_at(const struct tl_columns *c, size_t column)
{
    const unsigned __int128 wide = c->to - c->from;
    return c->from + (uint64_t)(wide * column / c->n);
}

uint64_t tl_columns_value(const struct tl_columns *c, uint64_t position)
{
    uint64_t value = position;
    if (c->axis == TL_UNIT_TIME && !tl_scale_value(&c->time, position, &value))
        value = c->from;
    return value < c->from ? c->from : value > c->to ? c->to : value;
}

/* Clip the range to the available trace. */
static int clip(struct tl_columns *c, struct tl_fail *fail)
{
    if (c->axis == TL_UNIT_BYTE)
        return tl_fail_set(fail, TL_USAGE, "axis is insn or time");
    if (c->from > c->to)
        return tl_fail_set(fail, TL_USAGE, "from is after to");
    if (c->axis == TL_UNIT_TIME && c->time.n == 0)
        return tl_fail_set(fail, TL_USAGE, "stream %.31s has no times", c->cut.lane->name);
    const uint64_t end =
        c->axis == TL_UNIT_INSN ? c->cut.end : c->time.points[c->time.n - 1].value + 1;
    c->to = c->to < end ? c->to : end;
    c->from = c->from < c->to ? c->from : c->to;
    return TL_OK;
}

int tl_columns_open(struct tl_columns *c, struct tl_lake *lake,
                    const struct tl_lane_request *request, struct tl_fail *fail)
{
    *c = (struct tl_columns){.axis = request->axis, .from = request->from, .to = request->to};
    c->n = request->columns ? request->columns : COLUMNS;
    if (c->n > COLUMNS_MAX)
        return tl_fail_set(fail, TL_USAGE, "at most %d columns", COLUMNS_MAX);
    const struct tl_cut_range range = {request->axis, request->from, request->to};
    int r = tl_cut_open_range(&c->cut, lake, request->trace, request->stream, &range, fail);
    if (r >= 0)
        r = tl_cut_unit(&c->cut, &c->axis, fail);
    if (r >= 0)
        r = tl_scale_open(&c->time, &c->cut, TL_SCALE_TIME, c->axis == TL_UNIT_TIME, c->from, c->to,
                          fail);
    if (r >= 0)
        r = clip(c, fail);
    c->edges = r >= 0 ? calloc(c->n + 1, sizeof *c->edges) : NULL;
    if (r >= 0 && !c->edges)
        r = TL_NOMEM;
    for (size_t i = 0; i <= c->n && r >= 0; i++) {
        const uint64_t at = tl_columns_at(c, i);
        c->edges[i] = c->axis == TL_UNIT_INSN ? at : tl_scale_position(&c->time, at);
        if (i > 0 && c->edges[i] < c->edges[i - 1])
            c->edges[i] = c->edges[i - 1];
    }
    return r;
}

int tl_columns_refine(const struct tl_columns *c, size_t shard, uint64_t *edges,
                      struct tl_fail *fail)
{
    const struct tl_shard_row *const row = &c->cut.rows[shard];
    const size_t first = tl_count_below(edges, sizeof *edges, 0, c->n + 1, row->first);
    const size_t end = tl_count_upto(edges, sizeof *edges, 0, c->n + 1, row->first + row->n);
    struct tl_scale time;
    /* With a single edge no hit is more than a column beside its own. */
    if (c->axis != TL_UNIT_TIME || end - first < 2)
        return TL_OK;
    const int r =
        tl_scale_open_exact(&time, &c->cut, TL_SCALE_TIME, row->first, row->first + row->n, fail);
    for (size_t i = first; i < end && r >= 0; i++) {
        const uint64_t at = tl_scale_position(&time, tl_columns_at(c, i));
        edges[i] = i > 0 && at < edges[i - 1] ? edges[i - 1] : at;
    }
    tl_scale_close(&time);
    return r;
}

void tl_columns_close(struct tl_columns *c)
{
    free(c->edges);
    tl_scale_close(&c->time);
    tl_cut_close(&c->cut);
}
