/* SPDX-License-Identifier: MIT */
/*
 * The tables of events and gaps. Nothing is read of instructions, and an item's text is only made
 * when it is asked for.
 */
#include "sql/flow.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

struct events {
    struct tl_flow_rows flow;
    uint32_t kinds; /* bit set of the item kinds that are rows */
    struct tl_buf line;
};

enum {
    EVENT_TRACE,
    EVENT_STREAM,
    EVENT_POSITION,
    EVENT_TIME,
    EVENT_KIND,
    EVENT_NUMBER,
    EVENT_PC,
    EVENT_FUNCTION,
    EVENT_TEXT
};
static const struct tl_table_column event_columns[] = {
    [EVENT_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [EVENT_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [EVENT_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [EVENT_TIME] = {"time", "INT", TL_COLUMN_TIME},
    [EVENT_KIND] = {"kind", "TEXT", TL_COLUMN_PLAIN},
    [EVENT_NUMBER] = {"number", "INT", TL_COLUMN_PLAIN},
    [EVENT_PC] = {"pc", "INT", TL_COLUMN_PLAIN},
    [EVENT_FUNCTION] = {"function", "TEXT", TL_COLUMN_PLAIN},
    [EVENT_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
};

static int next_event(struct tl_cursor *c)
{
    struct events *const s = c->state;
    int r;
    while ((r = tl_flow_rows_next(c, &s->flow, false)) > 0)
        if (s->kinds >> s->flow.item->kind & 1)
            return TL_OK;
    c->end = true;
    return r;
}

static bool wants_chunk(const struct tl_flow_rows *f, const struct tl_chunk *chunk)
{
    const struct events *const s = (const struct events *)f;
    return chunk->kinds & s->kinds;
}

static bool has_gaps(const struct tl_shard_row *shard)
{
    return shard->gaps > 0;
}

static int first_of(struct tl_cursor *c, uint32_t kinds)
{
    struct events *const s = c->state;
    s->kinds = kinds;
    s->flow.detail = TL_WALK_ITEMS;
    s->flow.wants_chunk = wants_chunk;
    s->flow.wants_shard = kinds == 1u << TL_ITEM_GAP ? has_gaps : NULL;
    const int r = tl_flow_rows_open(c, &s->flow);
    return r < 0 ? r : next_event(c);
}

static int first_event(struct tl_cursor *c)
{
    return first_of(c, TL_EVENT_KINDS);
}

static int first_gap(struct tl_cursor *c)
{
    return first_of(c, 1u << TL_ITEM_GAP);
}

static void close_event(struct tl_cursor *c)
{
    struct events *const s = c->state;
    tl_buf_fini(&s->line);
    tl_flow_rows_close(&s->flow);
}

static void event_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct events *const s = c->state;
    switch (column) {
    case EVENT_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case EVENT_STREAM:
        tl_column_name(context, tl_flow_rows_stream(&s->flow), s->flow.names_last);
        break;
    case EVENT_POSITION:
        tl_column_u64(context, s->flow.position);
        break;
    case EVENT_TIME:
        tl_flow_rows_time(c, &s->flow, context, s->flow.position);
        break;
    case EVENT_KIND:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_KIND, &s->line, context);
        break;
    case EVENT_NUMBER:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_NUMBER, &s->line, context);
        break;
    case EVENT_PC:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_PC, &s->line, context);
        break;
    case EVENT_FUNCTION:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_FUNCTION, &s->line, context);
        break;
    default:
        tl_flow_rows_item(&s->flow, TL_ITEM_PART_TEXT, &s->line, context);
    }
}

const struct tl_table tl_event_table = {.name = "event",
                                        .columns = event_columns,
                                        .n_columns = COUNT(event_columns),
                                        .state_bytes = sizeof(struct events),
                                        .rows = 1e6,
                                        .ordered = true,
                                        .first = first_event,
                                        .next = next_event,
                                        .column = event_column,
                                        .close = close_event};

const struct tl_table tl_gap_table = {.name = "gap",
                                      .columns = event_columns,
                                      .n_columns = COUNT(event_columns),
                                      .state_bytes = sizeof(struct events),
                                      .rows = 1e4,
                                      .ordered = true,
                                      .first = first_gap,
                                      .next = next_event,
                                      .column = event_column,
                                      .close = close_event};
