/* SPDX-License-Identifier: MIT */
/*
 * Bounds in time are converted to positions when a stream is opened, so that only the chunks in
 * between are read; a stream without times has no rows within such bounds. Times of rows
 * come from scales of parts of the stream, which have all of its timestamps.
 */
#include "sql/flow.h"

#include "base/cancel.h"
#include "lake/locate.h"
#include "query/query.h"
#include "shard/savedstack.h"

#include <string.h>

int tl_flow_rows_open(struct tl_cursor *c, struct tl_flow_rows *f)
{
    return tl_cursor_trace(c, &f->list);
}

static bool asks_time(const struct tl_table_bounds *b)
{
    return b->time > 0 || b->last_time < UINT64_MAX;
}

/* The positions that are asked for. TL_NOTFOUND: none of this stream. */
static int resolve(struct tl_cursor *c, struct tl_flow_rows *f)
{
    const struct tl_table_bounds *const b = &c->bounds;
    f->from = b->position;
    f->to = b->last_position < UINT64_MAX ? b->last_position + 1 : UINT64_MAX;
    if (asks_time(b)) {
        struct tl_fail why;
        uint64_t from, to;
        const int r = tl_cut_resolve(&f->cut, TL_UNIT_TIME, b->time,
                                     b->last_time < UINT64_MAX ? b->last_time + 1 : UINT64_MAX,
                                     &from, &to, &why);
        if (r == TL_USAGE)
            return TL_NOTFOUND;
        if (r < 0)
            return tl_fail_set(c->asking->fail, r, "%s", why.text);
        /* Items stand in front of the instruction at their position: one more on both sides. */
        from -= from > 0;
        to += to < UINT64_MAX;
        f->from = from > f->from ? from : f->from;
        f->to = to < f->to ? to : f->to;
    }
    if (f->to > f->cut.end && b->last_position == UINT64_MAX && b->last_time == UINT64_MAX)
        f->to = UINT64_MAX; /* also what comes after the last position */
    return f->from < f->to ? TL_OK : TL_NOTFOUND;
}

static void leave_stream(struct tl_flow_rows *f)
{
    if (f->walking)
        tl_cut_walk_end(&f->walk);
    tl_sql_times_fini(&f->times);
    if (f->open)
        tl_cut_close(&f->cut);
    f->walking = f->open = false;
}

static bool wants_shard(const void *context, size_t shard)
{
    const struct tl_flow_rows *const f = context;
    return shard >= f->cut.n_stored || f->wants_shard(&f->cut.rows[shard]);
}

/* Walk from a position on; not before this shard. */
static int begin_walk(struct tl_cursor *c, struct tl_flow_rows *f, uint64_t from, size_t shard)
{
    const uint64_t to = f->walk_to ? f->walk_to : f->to;
    tl_cut_walk_begin(&f->walk, &f->cut, from, to + (f->behind && to < UINT64_MAX));
    f->walk.shard = f->walk.shard > shard ? f->walk.shard : shard;
    f->walk.wanted = f->wants_shard ? wants_shard : NULL;
    f->walk.context = f;
    f->walk.walk.detail = f->detail;
    f->walk.walk.image = f->detail == TL_WALK_FLOW ? tl_flow_rows_image(f) : NULL;
    f->walking = true;
    f->next = 0;
    f->walk.walk.n = 0;
    if (!f->calls)
        return TL_OK;
    tl_callstack_init(f->calls, tl_flow_rows_image(f), from, f->calls->sink, f->calls->context);
    return tl_cut_walk_calls(&f->walk, f->calls, c->asking->fail);
}

/* Open the next stream that may have rows: 1, or TL_OK behind the last. */
static int open_stream(struct tl_cursor *c, struct tl_flow_rows *f)
{
    const struct tl_trace_row *const row = &f->list.rows[0];
    leave_stream(f);
    while (f->stream < row->n_streams) {
        const char *const name = row->streams[f->stream++].name;
        if (c->bounds.stream && strcmp(c->bounds.stream, name) != 0)
            continue;
        int r = tl_cut_open_outlined(&f->cut, c->asking->lake, row->id, name, c->asking->fail);
        if (r < 0)
            return r;
        f->open = true;
        r = resolve(c, f);
        if (r >= 0)
            break;
        leave_stream(f);
        if (r != TL_NOTFOUND)
            return r;
    }
    if (!f->open)
        return TL_OK;
    f->image = tl_gen_image(f->cut.gen);
    f->names_last = tl_asking_keeps(c->asking, f->cut.gen);
    const int r = begin_walk(c, f, f->from, 0);
    return r < 0 ? r : 1;
}

int tl_flow_rows_go_on_at(struct tl_cursor *c, struct tl_flow_rows *f, uint64_t position)
{
    tl_cut_walk_end(&f->walk);
    f->item = NULL;
    return begin_walk(c, f, position, 0);
}

int tl_flow_rows_go_on_in(struct tl_cursor *c, struct tl_flow_rows *f, size_t shard)
{
    tl_cut_walk_end(&f->walk);
    f->item = NULL;
    return begin_walk(c, f, f->cut.rows[shard].first, shard);
}

/* Go to the next chunk that may have rows. */
static int seek_chunk(struct tl_cursor *c, struct tl_flow_rows *f)
{
    const struct tl_chunk *chunk;
    int r = TL_OK;
    while (f->wants_chunk && r >= 0) {
        r = tl_cut_walk_peek(&f->walk, &chunk, c->asking->fail);
        if (r < 0 || !chunk || f->wants_chunk(f, chunk))
            break;
        tl_cut_walk_skip(&f->walk);
        r = tl_cancel_rest();
        if (r >= 0)
            r = c->asking->check(c->asking);
    }
    return r;
}

static int next_chunk(struct tl_cursor *c, struct tl_flow_rows *f)
{
    int r = seek_chunk(c, f);
    if (r >= 0)
        r = tl_cut_walk_next(&f->walk, c->asking->fail);
    if (r >= 0)
        r = tl_cancel_rest();
    if (r >= 0)
        r = c->asking->check(c->asking);
    f->next = 0;
    if (r < 0)
        return r;
    f->now = f->walk.walk.now;
    return TL_OK;
}

int tl_flow_rows_next(struct tl_cursor *c, struct tl_flow_rows *f, bool pause)
{
    if (f->item && f->item->kind != TL_ITEM_BLOCK)
        tl_flow_now_item(&f->now, f->item);
    f->item = NULL;
    int r = TL_OK;
    while (!f->walking || f->next == f->walk.walk.n) {
        if (!f->walking) {
            if ((r = open_stream(c, f)) <= 0)
                return r;
            if (pause)
                return 3;
            continue;
        }
        r = next_chunk(c, f);
        if (r == TL_EOF) {
            if (pause) {
                f->walk.walk.n = f->next = 0;
                tl_cut_walk_end(&f->walk);
                f->walking = false;
                return 2;
            }
            leave_stream(f);
        } else if (r < 0) {
            return r;
        }
    }
    f->item = &f->walk.walk.items[f->next];
    f->position = f->walk.walk.positions[f->next];
    if (f->calls)
        r = tl_walk_follow(&f->walk.walk, f->calls, f->next);
    f->next++;
    return r < 0 ? r : 1;
}

void tl_flow_rows_close(struct tl_flow_rows *f)
{
    leave_stream(f);
    tl_trace_list_free(&f->list);
}

const struct tl_scale *tl_flow_rows_scale(struct tl_cursor *c, struct tl_flow_rows *f,
                                          uint64_t position)
{
    static const struct tl_scale none;
    const struct tl_scale *scale = &none;
    struct tl_fail why;
    const int r = tl_sql_times_at(&f->times, &f->cut, position, &scale, &why);
    if (r < 0)
        c->asking->error = r;
    return scale;
}

void tl_flow_rows_time(struct tl_cursor *c, struct tl_flow_rows *f, sqlite3_context *context,
                       uint64_t position)
{
    uint64_t time;
    if (tl_scale_value(tl_flow_rows_scale(c, f, position), position, &time))
        tl_column_u64(context, time);
}

/* ---- items ----------------------------------------------------------------------------------- */

static void tell_number(const struct tl_item *item, sqlite3_context *context)
{
    if (item->kind == TL_ITEM_EXCEPTION) {
        if (tl_exception_number(item->sub) >= 0)
            sqlite3_result_int(context, tl_exception_number(item->sub));
    } else if (item->kind == TL_ITEM_CONTEXT) {
        if (item->flags & TL_ITEM_HAS_PC)
            tl_column_u64(context, item->pc);
    } else if (item->kind == TL_ITEM_EVENT || item->flags & TL_ITEM_HAS_VALUE) {
        tl_column_u64(context, item->value);
    }
}

static bool has_pc(const struct tl_item *item)
{
    return item->kind != TL_ITEM_CONTEXT && item->flags & TL_ITEM_HAS_PC;
}

void tl_flow_rows_item(struct tl_flow_rows *f, enum tl_item_part part, struct tl_buf *line,
                       sqlite3_context *context)
{
    const struct tl_item *const item = f->item;
    char function[256];
    switch (part) {
    case TL_ITEM_PART_KIND:
        tl_column_text(context, item->kind == TL_ITEM_GAP ? tl_gap_name((enum tl_gap)item->sub)
                                                          : tl_item_kind_name(item->kind));
        break;
    case TL_ITEM_PART_NUMBER:
        tell_number(item, context);
        break;
    case TL_ITEM_PART_PC:
        if (has_pc(item))
            tl_column_u64(context, item->pc);
        break;
    case TL_ITEM_PART_FUNCTION:
        if (has_pc(item))
            tl_column_text(context, tl_function_text(tl_flow_rows_image(f), &f->now, item->pc,
                                                     function, sizeof function));
        break;
    case TL_ITEM_PART_TEXT:
        if (tl_item_words(item, line) >= 0)
            tl_column_text(context, (const char *)line->p);
    }
}
