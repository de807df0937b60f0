/* SPDX-License-Identifier: MIT */
/*
 * Rows come in order, so a few scales of a part of the stream suffice, each made when its first
 * position is asked for. They reach somewhat farther than their part, since the time of a position
 * depends on the timestamps around it.
 */
#include "sql/times.h"

#define MARGIN TL_CHUNK_MARKERS

void tl_sql_times_fini(struct tl_sql_times *t)
{
    for (size_t i = 0; i < TL_SQL_TIMES_KEPT; i++)
        tl_scale_close(&t->windows[i].scale);
    *t = (struct tl_sql_times){0};
}

static int open_window(struct tl_sql_window *w, const struct tl_cut *cut, uint64_t number,
                       struct tl_fail *fail)
{
    const uint64_t from = number * TL_SQL_TIMES_WIDTH;
    tl_scale_close(&w->scale);
    w->used = 0;
    w->number = number;
    return tl_scale_open_exact(&w->scale, cut, TL_SCALE_TIME, from > MARGIN ? from - MARGIN : 0,
                               from + TL_SQL_TIMES_WIDTH + MARGIN, fail);
}

int tl_sql_times_at(struct tl_sql_times *t, const struct tl_cut *cut, uint64_t position,
                    const struct tl_scale **out, struct tl_fail *fail)
{
    const uint64_t number = position / TL_SQL_TIMES_WIDTH;
    struct tl_sql_window *w = &t->windows[0];
    for (size_t i = 0; i < TL_SQL_TIMES_KEPT && !(w->used && w->number == number); i++)
        if (t->windows[i].used < w->used || (t->windows[i].used && t->windows[i].number == number))
            w = &t->windows[i];
    const int r = w->used && w->number == number ? TL_OK : open_window(w, cut, number, fail);
    if (r < 0)
        return r;
    w->used = ++t->uses;
    *out = &w->scale;
    return TL_OK;
}
