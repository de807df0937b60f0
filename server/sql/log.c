/* SPDX-License-Identifier: MIT */
/*
 * The table of messages: software trace, assembled into lines as in the log. It is read in pages;
 * a page goes on at the position of the last line of the one before, whose lines there are passed.
 */
#include "lake_analysis.h"
#include "sql/table.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))
#define PAGE     10000

struct log {
    struct tl_trace_list list;
    size_t stream; /* the next one to be read */
    const char *name;
    struct tl_soft_log page;
    size_t at;
};

enum {
    LOG_TRACE,
    LOG_STREAM,
    LOG_POSITION,
    LOG_TIME,
    LOG_SOURCE,
    LOG_CHANNEL,
    LOG_TEXT,
    LOG_VALUE
};
static const struct tl_table_column log_columns[] = {
    [LOG_TRACE] = {"trace", "TEXT", TL_COLUMN_TRACE},
    [LOG_STREAM] = {"stream", "TEXT", TL_COLUMN_STREAM},
    [LOG_POSITION] = {"position", "INT", TL_COLUMN_POSITION},
    [LOG_TIME] = {"time", "INT", TL_COLUMN_PLAIN},
    [LOG_SOURCE] = {"source", "TEXT", TL_COLUMN_PLAIN},
    [LOG_CHANNEL] = {"channel", "INT", TL_COLUMN_PLAIN},
    [LOG_TEXT] = {"text", "TEXT", TL_COLUMN_PLAIN},
    [LOG_VALUE] = {"value", "", TL_COLUMN_PLAIN},
};

static int read_page(struct tl_cursor *c, struct log *s, uint64_t from)
{
    const uint64_t last = c->bounds.last_position;
    const struct tl_soft_request request = {.trace = c->bounds.trace,
                                            .stream = s->name,
                                            .unit = TL_UNIT_INSN,
                                            .from = from,
                                            .to = last < UINT64_MAX ? last + 1 : UINT64_MAX,
                                            .limit = PAGE};
    tl_soft_log_fini(&s->page);
    s->at = 0;
    return tl_lake_log(c->asking->lake, &request, &s->page, c->asking->fail);
}

/* The next page of the stream: without the lines that the last one had at its last position. */
static int read_on(struct tl_cursor *c, struct log *s)
{
    const size_t n = s->page.n;
    const uint64_t position = s->page.entries[n - 1].at;
    size_t same = 1;
    while (same < n && s->page.entries[n - 1 - same].at == position)
        same++;
    if (same == n)
        return tl_fail_set(c->asking->fail, TL_LIMIT,
                           "%s: more than %u lines at position %llu cannot be told apart", s->name,
                           PAGE, (unsigned long long)position);
    const int r = read_page(c, s, position);
    s->at = same < s->page.n ? same : s->page.n;
    return r;
}

static int seek_line(struct tl_cursor *c)
{
    struct log *const s = c->state;
    const struct tl_trace_row *const row = &s->list.rows[0];
    int r = TL_OK;
    while (r >= 0 && s->at >= s->page.n) {
        if (s->page.n > 0 && s->page.more) {
            r = read_on(c, s);
            continue;
        }
        if (s->stream == row->n_streams) {
            c->end = true;
            return TL_OK;
        }
        s->name = row->streams[s->stream++].name;
        tl_soft_log_fini(&s->page);
        s->at = 0;
        if (!c->bounds.stream || strcmp(c->bounds.stream, s->name) == 0)
            r = read_page(c, s, c->bounds.position);
    }
    return r;
}

static int first_line(struct tl_cursor *c)
{
    struct log *const s = c->state;
    const int r = tl_cursor_trace(c, &s->list);
    return r < 0 ? r : seek_line(c);
}

static int next_line(struct tl_cursor *c)
{
    struct log *const s = c->state;
    s->at++;
    return seek_line(c);
}

/* The number that a record without text has. */
static void tell_value(const struct tl_soft_entry *e, sqlite3_context *context)
{
    char *end;
    if (e->is_text || !*e->text)
        return;
    const uint64_t whole = strtoull(e->text, &end, 0);
    if (!*end)
        tl_column_u64(context, whole);
    else {
        const double value = strtod(e->text, &end);
        if (!*end)
            sqlite3_result_double(context, value);
    }
}

static void log_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    const struct log *const s = c->state;
    const struct tl_soft_entry *const e = &s->page.entries[s->at];
    switch (column) {
    case LOG_TRACE:
        tl_column_text(context, c->bounds.trace);
        break;
    case LOG_STREAM:
        tl_column_text(context, s->name);
        break;
    case LOG_POSITION:
        tl_column_u64(context, e->at);
        break;
    case LOG_TIME:
        if (e->has_time)
            tl_column_u64(context, e->time);
        break;
    case LOG_SOURCE:
        tl_column_text(context, e->source);
        break;
    case LOG_CHANNEL:
        if (e->has_channel)
            tl_column_u64(context, e->channel);
        break;
    case LOG_VALUE:
        tell_value(e, context);
        break;
    default:
        tl_column_text(context, e->text);
    }
}

static void close_log(struct tl_cursor *c)
{
    struct log *const s = c->state;
    tl_soft_log_fini(&s->page);
    tl_trace_list_free(&s->list);
}

const struct tl_table tl_log_table = {.name = "log",
                                      .columns = log_columns,
                                      .n_columns = COUNT(log_columns),
                                      .state_bytes = sizeof(struct log),
                                      .rows = 1e5,
                                      .ordered = true,
                                      .first = first_line,
                                      .next = next_line,
                                      .column = log_column,
                                      .close = close_log};
