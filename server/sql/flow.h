/* SPDX-License-Identifier: MIT */
/*
 * Goes through the items of a trace's streams within a cursor's bounds, stream after stream: the
 * common part of the tables whose rows come from the flow. Used by the thread that asks.
 */
#ifndef TL_SQL_FLOW_H
#define TL_SQL_FLOW_H

#include "lake_traces.h"
#include "sql/table.h"
#include "sql/times.h"

struct tl_flow_rows {
    struct tl_trace_list list;    /* the trace and its streams */
    size_t stream;                /* the next one to be opened */
    struct tl_cut cut;            /* of the stream before it, if `open` */
    struct tl_cut_walk walk;      /* if `walking` */
    struct tl_sql_times times;    /* of the stream */
    const struct tl_image *image; /* the stream's */
    bool open, walking;
    bool names_last;            /* to the end of the question */
    uint64_t from, to;          /* positions [from, to) of the stream that are asked for */
    size_t next;                /* item of the chunk that comes next */
    struct tl_flow_now now;     /* state before it */
    const struct tl_item *item; /* the present one */
    uint64_t position;          /* its position */
    enum tl_walk_detail detail; /* set by the table before the first step */
    struct tl_callstack *calls; /* not NULL: follows the walk; set by the table */
    bool behind; /* set by the table: walk one position more, for what stands behind an instruction
                  */
    uint64_t walk_to; /* set by the table: walk on up to there, 0: up to `to` */
    /* Set by the table: may these have rows? Those that have none are not read, and of a stored
     * shard that has none, not even the index. NULL: all may. */
    bool (*wants_shard)(const struct tl_shard_row *shard);
    bool (*wants_chunk)(const struct tl_flow_rows *f, const struct tl_chunk *chunk);
};

/* Read the list of streams. What a table's `first` begins with. */
TL_MUST_USE int tl_flow_rows_open(struct tl_cursor *c, struct tl_flow_rows *f);
/* The next item of any kind: 1; TL_OK: the last stream has ended. If `pause` is set, it also
 * returns 3 before each stream's walk, and 2 at its end, before that is left. */
TL_MUST_USE int tl_flow_rows_next(struct tl_cursor *c, struct tl_flow_rows *f, bool pause);
/* Leave out what is before a position of the present stream, where a chunk begins; a call stack
 * that follows the walk is that of this place. */
TL_MUST_USE int tl_flow_rows_go_on_at(struct tl_cursor *c, struct tl_flow_rows *f,
                                      uint64_t position);
/* The same for what is before one of its shards. */
TL_MUST_USE int tl_flow_rows_go_on_in(struct tl_cursor *c, struct tl_flow_rows *f, size_t shard);
/* Read no further chunk of the present stream. */
static inline void tl_flow_rows_stop(struct tl_flow_rows *f)
{
    f->walk.range.to = f->position;
    f->walk.range.tail = false;
}
void tl_flow_rows_close(struct tl_flow_rows *f);

/* The stream's name. */
static inline const char *tl_flow_rows_stream(const struct tl_flow_rows *f)
{
    return f->cut.lane->name;
}
static inline const struct tl_image *tl_flow_rows_image(const struct tl_flow_rows *f)
{
    return f->image;
}
/* The times of the stream's positions around this one; borrowed until the next call. */
const struct tl_scale *tl_flow_rows_scale(struct tl_cursor *c, struct tl_flow_rows *f,
                                          uint64_t position);
/* Tell the time of a position, if the stream has times. */
void tl_flow_rows_time(struct tl_cursor *c, struct tl_flow_rows *f, sqlite3_context *context,
                       uint64_t position);

/* The kinds of items that are events, as a bit set; gaps are none. */
#define TL_EVENT_KINDS                                                                             \
    (1u << TL_ITEM_EXCEPTION | 1u << TL_ITEM_ERET | 1u << TL_ITEM_MODE | 1u << TL_ITEM_CONTEXT |   \
     1u << TL_ITEM_EVENT | 1u << TL_ITEM_TRACE_ON | 1u << TL_ITEM_NOTE | 1u << TL_ITEM_HARDWARE)

enum tl_item_part {
    TL_ITEM_PART_KIND, /* of a gap: its reason */
    TL_ITEM_PART_NUMBER,
    TL_ITEM_PART_PC,
    TL_ITEM_PART_FUNCTION,
    TL_ITEM_PART_TEXT
};
/* Tell a part of the present item, an event or a gap. `line` is reused. */
void tl_flow_rows_item(struct tl_flow_rows *f, enum tl_item_part part, struct tl_buf *line,
                       sqlite3_context *context);

#endif
