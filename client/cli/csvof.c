/* SPDX-License-Identifier: MIT */
/*
 * Tables of any length as CSV: rows are written as they come. Calls are taken from the table
 * `timeline`, in the order in which they end, since the begins of those under way are all that must
 * be kept of it.
 */
#include "cli/csvof.h"

#include "base/csv.h"
#include "base/whole.h"
#include "cli/streams.h"
#include "cli/trackrows.h"
#include "out/tablecsv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH (256u << 10)

static const struct {
    const char *name, *columns, *head;
} tables[] = {
    {"insn", "position, time, address(pc), size, opcode, function, text",
     "position,time,pc,size,opcode,function,text"},
    {"event", "position, time, kind, number, address(pc), function, text",
     "position,time,kind,number,pc,function,text"},
    {"gap", "position, time, kind, number, address(pc), function, text",
     "position,time,kind,number,pc,function,text"},
    {"log", "position, time, source, channel, text, value",
     "position,time,source,channel,text,value"},
};

/* Columns of the question about calls, and of its rows here. */
enum { POSITION, WHAT, TIME, DEPTH, KIND, NUMBER, PC, FUNCTION, BEGIN, CALLED, ENDED };
#define TIMELINE                                                                                   \
    "position, what, time, depth, kind, number, address(pc), function, begin, called, ended"
#define CALLS "position,time,end,insns,duration,function,caller,depth,kind,number,pc,ended"

/* A call under way. */
struct open_call {
    char *name;
    int64_t time;
    bool has_time;
};

struct csv {
    FILE *file;
    const char *stream;
    struct tl_buf out;
    int error; /* of writing: enum tl_err */
    struct open_call *calls;
    size_t depth, cap;
};

static int flush(struct csv *c, size_t least)
{
    if (c->out.n < least)
        return TL_OK;
    const bool written = tl_write_all(c->file, c->out.p, c->out.n);
    tl_buf_reset(&c->out);
    return written ? TL_OK : TL_IO;
}

/* What `take` of rows returns. */
static int end_row(struct csv *c, int r)
{
    c->error = r < 0 ? r : flush(c, FLUSH);
    return c->error < 0 ? TRACELAKE_IO : TRACELAKE_OK;
}

static int take_row(void *context, const struct tl_track_row *row)
{
    struct csv *const c = context;
    const int r = tl_csv_field(&c->out, c->stream, ',');
    return end_row(c, r < 0 ? r : tl_table_csv_row(&c->out, row->table, row->number));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int begin_call(struct csv *c, const struct tl_track_row *row)
{
    if (tl_grow(&c->calls, &c->cap, c->depth + 1, sizeof *c->calls) < 0)
        return end_row(c, TL_NOMEM);
    struct open_call *const call = &c->calls[c->depth];
    call->time = tl_track_integer(row, TIME, &call->has_time);
    /* The time at which a call began that was under way is not known. */
    call->has_time = call->has_time && *tl_track_text(row, WHAT) != 'o';
    call->name = strdup(tl_track_text(row, FUNCTION));
    c->depth += call->name != NULL;
    return end_row(c, call->name ? TL_OK : TL_NOMEM);
}

/* A number, or nothing. */
static int put_number(struct csv *c, bool has, int64_t value)
{
    return has ? tl_buf_printf(&c->out, "%" PRId64 ",", value) : tl_buf_add(&c->out, ",", 1);
}

static int put_column(struct csv *c, const struct tl_track_row *row, int column)
{
    char number[TL_CELL];
    return tl_csv_field(&c->out, tl_table_text(&row->table->columns[column], row->number, number),
                        column == ENDED ? '\n' : ',');
}

static int put_call(struct csv *c, const struct tl_track_row *row, const struct open_call *call)
{
    bool has_end, has_begin;
    const int64_t end = tl_track_integer(row, TIME, &has_end);
    const int64_t begin = tl_track_integer(row, BEGIN, &has_begin);
    const int64_t position = tl_track_integer(row, POSITION, NULL);
    const bool has_length = has_end && call->has_time;
    int r = tl_csv_field(&c->out, c->stream, ',');
    if (r >= 0)
        r = put_number(c, has_begin, begin);
    if (r >= 0)
        r = put_number(c, call->has_time, call->time);
    if (r >= 0)
        r = put_number(c, true, position);
    if (r >= 0)
        r = put_number(c, true, position - begin);
    if (r >= 0)
        r = put_number(c, has_length, end - call->time);
    if (r >= 0)
        r = put_column(c, row, FUNCTION);
    if (r >= 0)
        r = tl_csv_field(&c->out, c->depth ? c->calls[c->depth - 1].name : "", ',');
    static const int rest[] = {DEPTH, KIND, NUMBER, PC, ENDED};
    for (size_t i = 0; i < sizeof rest / sizeof *rest && r >= 0; i++)
        r = put_column(c, row, rest[i]);
    return end_row(c, r);
}

static int end_call(struct csv *c, const struct tl_track_row *row)
{
    if (c->depth == 0)
        return TRACELAKE_OK;
    const struct open_call call = c->calls[--c->depth];
    const int r = tl_track_integer(row, CALLED, NULL) ? put_call(c, row, &call) : TRACELAKE_OK;
    free(call.name);
    return r;
}

static int take_change(void *context, const struct tl_track_row *row)
{
    struct csv *const c = context;
    const char *const what = tl_track_text(row, WHAT);
    if (strcmp(what, "open") == 0 || strcmp(what, "begin") == 0)
        return begin_call(c, row);
    return strcmp(what, "end") == 0 ? end_call(c, row) : TRACELAKE_OK;
}

static void forget_calls(struct csv *c)
{
    while (c->depth)
        free(c->calls[--c->depth].name);
}

/* ---- streams --------------------------------------------------------------------------------- */

bool tl_csv_knows(const char *table)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(table, tables[i].name) == 0)
            return true;
    return strcmp(table, "call") == 0;
}

static struct tl_track_rows rows_of(const char *table)
{
    struct tl_track_rows rows = {
        .table = "timeline", .columns = TIMELINE, .opening = "open", .take = take_change};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(table, tables[i].name) == 0)
            rows = (struct tl_track_rows){
                .table = table, .columns = tables[i].columns, .take = take_row};
    return rows;
}

struct asking {
    struct csv csv;
    const char *table;
    tl_tracks_range *range;
    const void *context; /* of it */
};

static int write_stream(void *context, struct tracelake *lake, const struct tl_remote_name *name,
                        const struct tracelake_stream *stream)
{
    struct asking *const a = context;
    struct tracelake_error error;
    struct tl_track_rows rows = rows_of(a->table);
    const int status = a->range(a->context, lake, name, &rows.from, &rows.to);
    if (status != TL_ARGS_GO)
        return status;
    rows.trace = name->trace;
    rows.stream = a->csv.stream = stream->name;
    rows.insns = stream->insns;
    rows.context = &a->csv;
    const int r = tl_track_rows_each(lake, &rows, &error);
    forget_calls(&a->csv);
    return r < 0 && a->csv.error >= 0 ? tl_remote_fail_query(name->trace, &error) : TL_CLI_DONE;
}

static const char *head_of(const char *table)
{
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(table, tables[i].name) == 0)
            return tables[i].head;
    return CALLS;
}

int tl_csv_of(struct tracelake *lake, const struct tl_remote_name *name, const char *table,
              tl_tracks_range *range, const void *context, FILE *file)
{
    struct asking a = {.csv.file = file, .table = table, .range = range, .context = context};
    a.csv.error = tl_buf_printf(&a.csv.out, "stream,%s\n", head_of(table));
    int status = TL_CLI_DONE;
    if (a.csv.error >= 0)
        status = tl_streams_each(lake, name, write_stream, &a);
    if (a.csv.error >= 0 && status == TL_CLI_DONE)
        a.csv.error = flush(&a.csv, 0);
    if (a.csv.error < 0 && status == TL_CLI_DONE)
        status = tl_streams_fail(name->trace, a.csv.error);
    free(a.csv.calls);
    tl_buf_fini(&a.csv.out);
    return status;
}
