/* SPDX-License-Identifier: MIT */
/*
 * The tables whose rows are few: traces, streams, functions, notes. They are those of the answers
 * that other doors give, taken as a whole when the first row is asked for.
 */
#include "base/hash.h"
#include "base/numbers.h"
#include "lake_analysis.h"
#include "lake_timing.h"
#include "sql/table.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void go_to(struct tl_cursor *c, size_t n)
{
    c->end = (uint64_t)c->row >= n;
}

/* ---- traces and streams ---------------------------------------------------------------------- */

struct rows {
    struct tl_trace_list list;
    size_t at; /* of traces: the present one */
    size_t n;  /* of streams */
};

static const struct tl_table_column trace_columns[] = {
    {"trace", "TEXT", TL_COLUMN_PLAIN},     {"rig", "TEXT", TL_COLUMN_PLAIN},
    {"format", "TEXT", TL_COLUMN_PLAIN},    {"state", "TEXT", TL_COLUMN_PLAIN},
    {"created_ns", "INT", TL_COLUMN_PLAIN}, {"raw_bytes", "INT", TL_COLUMN_PLAIN},
    {"insns", "INT", TL_COLUMN_PLAIN},      {"streams", "INT", TL_COLUMN_PLAIN},
    {"labels", "TEXT", TL_COLUMN_PLAIN},    {"message", "TEXT", TL_COLUMN_PLAIN},
};

static int seek_trace(struct tl_cursor *c)
{
    struct rows *const s = c->state;
    while (s->at < s->list.n && !tl_asking_sees(c->asking, &s->list.rows[s->at]))
        s->at++;
    c->end = s->at >= s->list.n;
    return TL_OK;
}

static int first_trace(struct tl_cursor *c)
{
    struct rows *const s = c->state;
    const int r = tl_lake_traces(c->asking->lake, &s->list);
    return r < 0 ? tl_fail_set(c->asking->fail, r, "the list of traces: %s", tl_err_name(r))
                 : seek_trace(c);
}

static int next_trace(struct tl_cursor *c)
{
    struct rows *const s = c->state;
    s->at++;
    return seek_trace(c);
}

static void close_rows(struct tl_cursor *c)
{
    struct rows *const s = c->state;
    tl_trace_list_free(&s->list);
}

static uint64_t insns_of(const struct tl_trace_row *row)
{
    uint64_t n = 0;
    for (size_t i = 0; i < row->n_streams; i++)
        n += row->streams[i].insns;
    return n;
}

static void trace_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    const struct rows *const s = c->state;
    const struct tl_trace_row *const row = &s->list.rows[s->at];
    switch (column) {
    case 0:
        tl_column_text(context, row->id);
        break;
    case 1:
        tl_column_text(context, row->rig);
        break;
    case 2:
        tl_column_text(context, row->format);
        break;
    case 3:
        tl_column_text(context, tl_trace_state_name(row->state));
        break;
    case 4:
        sqlite3_result_int64(context, row->created_ns);
        break;
    case 5:
        tl_column_u64(context, row->raw_bytes);
        break;
    case 6:
        tl_column_u64(context, insns_of(row));
        break;
    case 7:
        tl_column_u64(context, row->n_streams);
        break;
    case 8:
        tl_column_text(context, row->labels);
        break;
    default:
        tl_column_text(context, row->message);
        break;
    }
}

const struct tl_table tl_trace_table = {.name = "trace",
                                        .columns = trace_columns,
                                        .n_columns = COUNT(trace_columns),
                                        .state_bytes = sizeof(struct rows),
                                        .rows = 1000,
                                        .first = first_trace,
                                        .next = next_trace,
                                        .column = trace_column,
                                        .close = close_rows};

static const struct tl_table_column stream_columns[] = {
    {"trace", "TEXT", TL_COLUMN_TRACE},     {"stream", "TEXT", TL_COLUMN_PLAIN},
    {"protocol", "TEXT", TL_COLUMN_PLAIN},  {"core", "TEXT", TL_COLUMN_PLAIN},
    {"insns", "INT", TL_COLUMN_PLAIN},      {"time_first", "INT", TL_COLUMN_PLAIN},
    {"time_last", "INT", TL_COLUMN_PLAIN},  {"time_unit", "TEXT", TL_COLUMN_PLAIN},
    {"events", "INT", TL_COLUMN_PLAIN},     {"gaps", "INT", TL_COLUMN_PLAIN},
    {"lost_bytes", "INT", TL_COLUMN_PLAIN}, {"stored_bytes", "INT", TL_COLUMN_PLAIN},
};

static int first_stream(struct tl_cursor *c)
{
    struct rows *const s = c->state;
    const int r = tl_cursor_trace(c, &s->list);
    s->n = r >= 0 ? s->list.rows[0].n_streams : 0;
    go_to(c, s->n);
    return r;
}

static int next_stream(struct tl_cursor *c)
{
    const struct rows *const s = c->state;
    go_to(c, s->n);
    return TL_OK;
}

static void stream_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    const struct rows *const s = c->state;
    const struct tl_stream_row *const row = &s->list.rows[0].streams[c->row];
    switch (column) {
    case 0:
        tl_column_text(context, c->bounds.trace);
        break;
    case 1:
        tl_column_text(context, row->name);
        break;
    case 2:
        tl_column_text(context, row->protocol);
        break;
    case 3:
        tl_column_text(context, row->core);
        break;
    case 4:
        tl_column_u64(context, row->insns);
        break;
    case 5:
        if (row->has_time)
            tl_column_u64(context, row->time_first);
        break;
    case 6:
        if (row->has_time)
            tl_column_u64(context, row->time_last);
        break;
    case 7:
        tl_column_text(context, !row->has_time ? "" : row->time_unit_ns ? "ns" : "ticks");
        break;
    case 8:
        tl_column_u64(context, row->events);
        break;
    case 9:
        tl_column_u64(context, row->gaps);
        break;
    case 10:
        tl_column_u64(context, row->lost_bytes);
        break;
    default:
        tl_column_u64(context, row->stored_bytes);
        break;
    }
}

const struct tl_table tl_stream_table = {.name = "stream",
                                         .columns = stream_columns,
                                         .n_columns = COUNT(stream_columns),
                                         .state_bytes = sizeof(struct rows),
                                         .rows = 10,
                                         .first = first_stream,
                                         .next = next_stream,
                                         .column = stream_column,
                                         .close = close_rows};

/* Does the trace exist, for whoever asks? */
static int check_trace(struct tl_cursor *c)
{
    struct tl_trace_list list = {0};
    const int r = tl_cursor_trace(c, &list);
    tl_trace_list_free(&list);
    return r;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* Times of a function in all streams that are asked about. */
struct function_time {
    uint64_t self, total, min, max;
    bool ended; /* a call of it */
};
struct functions {
    struct tl_profile profile;
    struct tl_numbers names; /* of functions, by hash */
    struct function_time *times;
    size_t cap_times;
    bool timed; /* they have been asked for */
};

static const struct tl_table_column function_columns[] = {
    {"trace", "TEXT", TL_COLUMN_TRACE},     {"stream", "TEXT", TL_COLUMN_STREAM},
    {"name", "TEXT", TL_COLUMN_PLAIN},      {"pc", "INT", TL_COLUMN_PLAIN},
    {"self", "INT", TL_COLUMN_PLAIN},       {"total", "INT", TL_COLUMN_PLAIN},
    {"calls", "INT", TL_COLUMN_PLAIN},      {"finished", "INT", TL_COLUMN_PLAIN},
    {"min", "INT", TL_COLUMN_PLAIN},        {"max", "INT", TL_COLUMN_PLAIN},
    {"length", "INT", TL_COLUMN_PLAIN},     {"self_time", "INT", TL_COLUMN_PLAIN},
    {"total_time", "INT", TL_COLUMN_PLAIN}, {"min_time", "INT", TL_COLUMN_PLAIN},
    {"max_time", "INT", TL_COLUMN_PLAIN},   {"program", "TEXT", TL_COLUMN_PLAIN},
};
enum {
    FUNCTION_SELF_TIME = 11,
    FUNCTION_TOTAL_TIME,
    FUNCTION_MIN_TIME,
    FUNCTION_MAX_TIME,
    FUNCTION_PROGRAM
};

static int first_function(struct tl_cursor *c)
{
    struct functions *const s = c->state;
    const struct tl_profile_request request = {.trace = c->bounds.trace,
                                               .stream = c->bounds.stream,
                                               .unit = TL_UNIT_INSN,
                                               .to = UINT64_MAX,
                                               .nodes = 1};
    int r = check_trace(c);
    if (r >= 0)
        r = tl_lake_profile(c->asking->lake, &request, &s->profile, c->asking->fail);
    go_to(c, s->profile.n_functions);
    return r;
}

static int next_function(struct tl_cursor *c)
{
    const struct functions *const s = c->state;
    go_to(c, s->profile.n_functions);
    return TL_OK;
}

/* ---- their times: asked for with the first column that needs them ---- */

static uint64_t function_key(const char *name, uint64_t pc)
{
    return *name ? tl_fnv_text(name) : tl_mix64(pc);
}

static int add_function_time(struct functions *s, const struct tl_function_times *f)
{
    const uint64_t key = function_key(f->name, f->pc);
    uint32_t number = tl_numbers_find(&s->names, key);
    if (number == TL_NO_NUMBER) {
        number = s->names.n;
        if (tl_grow(&s->times, &s->cap_times, number + 1, sizeof *s->times) < 0 ||
            tl_numbers_add(&s->names, key) < 0)
            return TL_NOMEM;
        s->times[number] = (struct function_time){0};
    }
    struct function_time *const t = &s->times[number];
    t->self += f->self_time.value;
    t->total += f->total_time;
    if (f->ended == 0)
        return TL_OK;
    t->min = t->ended && t->min < f->time.min ? t->min : f->time.min;
    t->max = t->max > f->time.max ? t->max : f->time.max;
    t->ended = true;
    return TL_OK;
}

static int add_stream_times(struct tl_cursor *c, struct functions *s, const char *stream)
{
    const struct tl_function_table_request request = {
        .range = {c->bounds.trace, stream, TL_UNIT_INSN, 0, UINT64_MAX},
        .weight = TL_WEIGHT_TIME,
        .limit = UINT32_MAX};
    struct tl_function_table table = {0};
    int r = tl_lake_function_table(c->asking->lake, &request, &table, c->asking->fail);
    for (size_t i = 0; r >= 0 && table.about.has_time && i < table.n; i++)
        r = add_function_time(s, &table.p[i]);
    tl_function_table_fini(&table);
    return r;
}

static int add_times(struct tl_cursor *c, struct functions *s)
{
    struct tl_trace_list list = {0};
    int r = tl_cursor_trace(c, &list);
    const struct tl_trace_row *const row = r >= 0 ? &list.rows[0] : NULL;
    for (size_t i = 0; r >= 0 && i < row->n_streams; i++) {
        const char *const name = row->streams[i].name;
        if (row->streams[i].has_time && row->streams[i].insns > 0 &&
            (!c->bounds.stream || strcmp(c->bounds.stream, name) == 0))
            r = add_stream_times(c, s, name);
    }
    tl_trace_list_free(&list);
    return r;
}

static void tell_function_time(struct tl_cursor *c, struct functions *s,
                               const struct tl_profile_function *f, sqlite3_context *context,
                               int column)
{
    if (!s->timed) {
        const int r = add_times(c, s);
        if (r < 0)
            c->asking->error = r;
        s->timed = true;
    }
    const uint32_t number = tl_numbers_find(&s->names, function_key(f->name, f->pc));
    if (number == TL_NO_NUMBER)
        return;
    const struct function_time *const t = &s->times[number];
    if (column == FUNCTION_SELF_TIME)
        tl_column_u64(context, t->self);
    else if (column == FUNCTION_TOTAL_TIME)
        tl_column_u64(context, t->total);
    else if (t->ended)
        tl_column_u64(context, column == FUNCTION_MIN_TIME ? t->min : t->max);
}

static void function_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    struct functions *const s = c->state;
    const struct tl_profile_function *const f = &s->profile.functions[c->row];
    switch (column) {
    case 0:
        tl_column_text(context, c->bounds.trace);
        break;
    case 1:
        tl_column_text(context, c->bounds.stream);
        break;
    case 2:
        tl_column_text(context, f->name);
        break;
    case 3:
        tl_column_u64(context, f->pc);
        break;
    case 4:
        tl_column_u64(context, f->self);
        break;
    case 5:
        tl_column_u64(context, f->total);
        break;
    case 6:
        tl_column_u64(context, f->calls);
        break;
    case 7:
        tl_column_u64(context, f->finished);
        break;
    case 8:
        if (f->finished > 0)
            tl_column_u64(context, f->min);
        break;
    case 9:
        if (f->finished > 0)
            tl_column_u64(context, f->max);
        break;
    case 10:
        tl_column_u64(context, f->length);
        break;
    case FUNCTION_PROGRAM:
        if (*f->program)
            tl_column_text(context, f->program);
        break;
    default:
        tell_function_time(c, s, f, context, column);
        break;
    }
}

static void close_function(struct tl_cursor *c)
{
    struct functions *const s = c->state;
    tl_profile_fini(&s->profile);
    tl_numbers_fini(&s->names);
    free(s->times);
}

const struct tl_table tl_function_table = {.name = "function",
                                           .columns = function_columns,
                                           .n_columns = COUNT(function_columns),
                                           .state_bytes = sizeof(struct functions),
                                           .rows = 1000,
                                           .first = first_function,
                                           .next = next_function,
                                           .column = function_column,
                                           .close = close_function};

/* ---- notes ----------------------------------------------------------------------------------- */

struct notes {
    struct tl_note *p;
    size_t n;
};

static const struct tl_table_column note_columns[] = {
    {"trace", "TEXT", TL_COLUMN_TRACE},
    {"stream", "TEXT", TL_COLUMN_PLAIN},
    {"id", "INT", TL_COLUMN_PLAIN},
    {"position", "INT", TL_COLUMN_PLAIN},
    {"last_position", "INT", TL_COLUMN_PLAIN},
    {"text", "TEXT", TL_COLUMN_PLAIN},
};

static int first_note(struct tl_cursor *c)
{
    struct notes *const s = c->state;
    int r = check_trace(c);
    if (r >= 0)
        r = tl_lake_notes(c->asking->lake, c->bounds.trace, &s->p, &s->n, c->asking->fail);
    go_to(c, s->n);
    return r;
}

static int next_note(struct tl_cursor *c)
{
    const struct notes *const s = c->state;
    go_to(c, s->n);
    return TL_OK;
}

static void note_column(struct tl_cursor *c, sqlite3_context *context, int column)
{
    const struct notes *const s = c->state;
    const struct tl_note *const note = &s->p[c->row];
    switch (column) {
    case 0:
        tl_column_text(context, c->bounds.trace);
        break;
    case 1:
        tl_column_text(context, note->stream);
        break;
    case 2:
        tl_column_u64(context, note->id);
        break;
    case 3:
        tl_column_u64(context, note->at);
        break;
    case 4:
        tl_column_u64(context, note->to);
        break;
    default:
        tl_column_text(context, note->text);
        break;
    }
}

static void close_notes(struct tl_cursor *c)
{
    struct notes *const s = c->state;
    free(s->p);
}

const struct tl_table tl_note_table = {.name = "note",
                                       .columns = note_columns,
                                       .n_columns = COUNT(note_columns),
                                       .state_bytes = sizeof(struct notes),
                                       .rows = 10,
                                       .first = first_note,
                                       .next = next_note,
                                       .column = note_column,
                                       .close = close_notes};
