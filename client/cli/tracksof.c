/* SPDX-License-Identifier: MIT */
/*
 * Makes tracks of a trace for viewers. Rows of the tables `timeline` and `log` become events on
 * tracks as they come: whoever draws the picture has the calls that the page shows, and a trace of
 * any length passes through.
 */
#include "cli/tracksof.h"

#include "base/hash.h"
#include "base/numbers.h"
#include "cli/streams.h"
#include "cli/trackrows.h"
#include "cli/trackspeed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TIME_TEXT 32
#define CHANNELS  4096 /* with a track of values; those of others are messages */

/* Columns of the questions. */
enum { POSITION, WHAT, TIME, DEPTH, KIND, NUMBER, PC, FUNCTION, TEXT, ENDED };
#define TIMELINE "position, what, time, depth, kind, number, pc, function, text, ended"
enum { LOG_POSITION, LOG_SOURCE, LOG_TIME, LOG_CHANNEL, LOG_TEXT, LOG_VALUE };
#define LOG "position, source, time, channel, text, value"

#define NO_TRACK UINT32_MAX

/* A stream on its way into the picture. */
struct picture {
    struct tl_tracks *tracks;
    const struct tracelake_stream *stream;
    const struct tl_setup *setup;
    uint32_t calls, contexts, messages; /* tracks */
    struct tl_numbers channels;
    uint32_t *values; /* tracks, by number of the channel */
    size_t cap_values;
    bool in_context; /* a slice of `contexts` is open */
    uint32_t depth;  /* open calls */
    uint64_t time;   /* of the last event; a track's times do not decrease */
    char when[TIME_TEXT];
    int error; /* enum tl_err of writing */
};

/* ---- events ---------------------------------------------------------------------------------- */

/* The unit of the picture's times, if it is not ns. */
static const char *unit_of(const struct tracelake_stream *stream)
{
    return !stream->has_time      ? " (1 ns = 1 instruction)"
           : stream->time_unit_ns ? ""
                                  : " (1 ns = 1 tick)";
}

static void print_time(struct picture *p)
{
    if (p->stream->has_time && p->stream->time_unit_ns)
        snprintf(p->when, sizeof p->when, "%" PRIu64 ".%09u", p->time / 1000000000,
                 (unsigned)(p->time % 1000000000));
    else
        snprintf(p->when, sizeof p->when, "%" PRIu64, p->time);
}

/* An event at the time of a row. */
static struct tl_track_event event_of(struct picture *p, const struct tl_track_row *row,
                                      enum tl_track_what what, uint32_t track)
{
    bool known;
    uint64_t time = (uint64_t)tl_track_integer(row, TIME, &known);
    if (!p->stream->has_time)
        time = (uint64_t)tl_track_integer(row, POSITION, &known);
    if (known && time > p->time)
        p->time = time;
    print_time(p);
    return (struct tl_track_event){.what = what,
                                   .track = track,
                                   .time = p->time,
                                   .position = (uint64_t)tl_track_integer(row, POSITION, NULL),
                                   .has_position = what == TL_TRACK_BEGIN || what == TL_TRACK_MARK,
                                   .when = p->when};
}

static int put(struct picture *p, const struct tl_track_event *event)
{
    const int r = tl_tracks_put(p->tracks, event);
    if (r < 0)
        p->error = r;
    return r < 0 ? TRACELAKE_IO : TRACELAKE_OK;
}

/* The track that is added with its first event. */
static int need_track(struct picture *p, enum tl_track_kind kind, const char *what, uint32_t *track)
{
    char name[256];
    if (*track != NO_TRACK)
        return TRACELAKE_OK;
    snprintf(name, sizeof name, "%s %s", p->stream->name, what);
    const int r = tl_tracks_add(p->tracks, kind, name, track);
    if (r < 0)
        p->error = r;
    return r < 0 ? TRACELAKE_IO : TRACELAKE_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void name_frame(const struct tl_track_row *row, char *out, size_t size)
{
    bool has_number;
    const uint64_t pc = (uint64_t)tl_track_integer(row, PC, NULL);
    const int64_t number = tl_track_integer(row, NUMBER, &has_number);
    const char *const function = tl_track_text(row, FUNCTION);
    const bool exception = strcmp(tl_track_text(row, KIND), "exception") == 0;
    char what[32] = "exception";
    if (has_number)
        snprintf(what, sizeof what, "exception %" PRId64, number);
    if (exception)
        snprintf(out, size, "%s%s%s", what, *function ? ": " : "", function);
    else if (*function)
        snprintf(out, size, "%s", function);
    else
        snprintf(out, size, "0x%" PRIx64, pc);
}

static int begin_call(struct picture *p, const struct tl_track_row *row)
{
    char name[1024];
    struct tl_track_event event = event_of(p, row, TL_TRACK_BEGIN, p->calls);
    event.pc = (uint64_t)tl_track_integer(row, PC, &event.has_pc);
    event.depth = (uint32_t)tl_track_integer(row, DEPTH, NULL);
    p->depth = event.depth + 1;
    event.kind = tl_track_text(row, KIND);
    event.name = name;
    name_frame(row, name, sizeof name);
    return put(p, &event);
}

static int end_call(struct picture *p, const struct tl_track_row *row)
{
    const struct tl_track_event event = event_of(p, row, TL_TRACK_END, p->calls);
    p->depth = (uint32_t)tl_track_integer(row, DEPTH, NULL);
    return tl_track_integer(row, ENDED, NULL) ? put(p, &event) : TRACELAKE_OK;
}

/* An item's name: its kind, and what flow text has behind the letter. */
static void name_item(const struct tl_track_row *row, char *out, size_t size)
{
    const char *const text = tl_track_text(row, TEXT);
    int n = (int)strlen(text);
    if (n > 2 && strcmp(text + n - 2, " -") == 0)
        n -= 2;
    snprintf(out, size, "%s%.*s", tl_track_text(row, KIND), n > 1 ? n - 1 : 0, n ? text + 1 : "");
}

/* Another process runs, or a thread. */
static int change_context(struct picture *p, const struct tl_track_row *row)
{
    char name[256];
    int r = need_track(p, TL_TRACK_PART, "context", &p->contexts);
    struct tl_track_event event = event_of(p, row, TL_TRACK_END, p->contexts);
    if (r >= 0 && p->in_context)
        r = put(p, &event);
    event.what = TL_TRACK_BEGIN;
    event.has_position = true;
    event.kind = "context";
    bool known;
    const uint64_t id = (uint64_t)tl_track_integer(row, NUMBER, &known);
    event.name = known ? tl_setup_context_name(p->setup, false, id) : NULL;
    name_item(row, name, sizeof name);
    event.name = event.name && *event.name ? event.name : name;
    p->in_context = true;
    return r < 0 ? r : put(p, &event);
}

static int mark(struct picture *p, const struct tl_track_row *row, const char *kind,
                const char *name)
{
    struct tl_track_event event = event_of(p, row, TL_TRACK_MARK, p->calls);
    event.kind = kind;
    event.name = name;
    event.depth = p->depth;
    event.unique = true;
    return put(p, &event);
}

static int take_event(struct picture *p, const struct tl_track_row *row)
{
    char name[256];
    const char *const kind = tl_track_text(row, KIND);
    if (strcmp(kind, "context") == 0)
        return change_context(p, row);
    /* Exceptions are slices, and modes follow from them. */
    for (const char *const *known = (const char *const[]){"exception", "return", "mode", NULL};
         *known; known++)
        if (strcmp(kind, *known) == 0)
            return TRACELAKE_OK;
    name_item(row, name, sizeof name);
    return mark(p, row, kind, name);
}

static int take_row(void *context, const struct tl_track_row *row)
{
    struct picture *const p = context;
    switch (*tl_track_text(row, WHAT)) {
    case 'o': /* open */
    case 'b': /* begin */
        return begin_call(p, row);
    case 'g': /* gap */
        return mark(p, row, "gap", tl_track_text(row, KIND));
    default:
        return strcmp(tl_track_text(row, WHAT), "end") == 0 ? end_call(p, row) : take_event(p, row);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The track of a channel's values; NO_TRACK: there are too many. */
static int value_track(struct picture *p, const struct tl_track_row *row, uint32_t *track)
{
    char what[96];
    const char *const source = tl_track_text(row, LOG_SOURCE);
    const uint64_t channel = (uint64_t)tl_track_integer(row, LOG_CHANNEL, NULL);
    const uint64_t key = tl_mix64(tl_fnv_text(source) ^ channel);
    const uint32_t n = p->channels.n;
    const uint32_t number = tl_numbers_find(&p->channels, key);
    *track = NO_TRACK;
    if (number != TL_NO_NUMBER || n >= CHANNELS) {
        *track = number == TL_NO_NUMBER ? NO_TRACK : p->values[number];
        return TRACELAKE_OK;
    }
    if (tl_grow(&p->values, &p->cap_values, n + 1, sizeof *p->values) < 0 ||
        tl_numbers_add(&p->channels, key) < 0) {
        p->error = TL_NOMEM;
        return TRACELAKE_NOMEM;
    }
    snprintf(what, sizeof what, "%s %" PRIx64, source, channel);
    const int r = need_track(p, TL_TRACK_COUNTER, what, track);
    p->values[n] = *track;
    return r;
}

static bool value_of(const struct tl_track_row *row, double *out)
{
    const struct tracelake_column *const c = &row->table->columns[LOG_VALUE];
    if (c->nulls[row->number] || c->kind == TRACELAKE_TEXTS)
        return false;
    *out = c->kind == TRACELAKE_REAL ? c->reals[row->number] : (double)c->integers[row->number];
    return true;
}

static int take_message(void *context, const struct tl_track_row *row)
{
    struct picture *const p = context;
    struct tl_track_event event = {.what = TL_TRACK_VALUE, .track = NO_TRACK};
    double value;
    int r = TRACELAKE_OK;
    if (value_of(row, &value))
        r = value_track(p, row, &event.track);
    if (r >= 0 && event.track != NO_TRACK) {
        event = event_of(p, row, TL_TRACK_VALUE, event.track);
        event.value = value;
        return put(p, &event);
    }
    if (r >= 0)
        r = need_track(p, TL_TRACK_PART, "messages", &p->messages);
    event = event_of(p, row, TL_TRACK_MARK, p->messages);
    event.name = tl_track_text(row, LOG_TEXT);
    event.kind = tl_track_text(row, LOG_SOURCE);
    event.unique = true;
    return r < 0 ? r : put(p, &event);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static int ask(struct picture *p, struct tracelake *lake, const char *trace, uint64_t from,
               uint64_t to, enum tl_tracks_form form, struct tracelake_error *error)
{
    struct tl_track_rows rows = {.table = "timeline",
                                 .columns = TIMELINE,
                                 .trace = trace,
                                 .stream = p->stream->name,
                                 .from = from,
                                 .to = to,
                                 .insns = p->stream->insns,
                                 .opening = "open",
                                 .take = take_row,
                                 .context = p};
    int r = tl_track_rows_each(lake, &rows, error);
    if (r < 0 || form == TL_TRACKS_CALLS)
        return r;
    rows.table = "log";
    rows.columns = LOG;
    rows.opening = NULL;
    rows.take = take_message;
    p->time = 0;
    r = tl_track_rows_each(lake, &rows, error);
    return r < 0 ? r
                 : tl_track_speed(p->tracks, lake, trace, p->stream, from, to, &p->error, error);
}

struct drawing {
    struct tl_tracks *tracks;
    struct tl_setup setup;
    enum tl_tracks_form form;
    tl_tracks_range *range;
    const void *context; /* of it */
};

static int draw_stream(void *context, struct tracelake *lake, const struct tl_remote_name *name,
                       const struct tracelake_stream *stream)
{
    const struct drawing *const d = context;
    char title[256];
    uint64_t from, to;
    struct tracelake_error error;
    struct picture p = {.tracks = d->tracks,
                        .stream = stream,
                        .setup = &d->setup,
                        .contexts = NO_TRACK,
                        .messages = NO_TRACK};
    const int status = d->range(d->context, lake, name, &from, &to);
    if (status != TL_ARGS_GO)
        return status;
    if (d->form == TL_TRACKS_CALLS)
        snprintf(title, sizeof title, "%s", stream->name);
    else
        snprintf(title, sizeof title, "%s%s%s%s", stream->name, *stream->core ? " " : "",
                 stream->core, unit_of(stream));
    p.error = tl_tracks_add(d->tracks, TL_TRACK_STACK, title, &p.calls);
    const int r =
        p.error < 0 ? TRACELAKE_IO : ask(&p, lake, name->trace, from, to, d->form, &error);
    free(p.values);
    tl_numbers_fini(&p.channels);
    if (p.error < 0)
        return tl_streams_fail(name->trace, p.error);
    return r < 0 ? tl_remote_fail_query(name->trace, &error) : TL_CLI_DONE;
}

int tl_tracks_of(struct tracelake *lake, const struct tl_remote_name *name,
                 enum tl_tracks_form form, tl_tracks_range *range, const void *context, FILE *file)
{
    struct drawing d = {.form = form, .range = range, .context = context};
    int r = tl_tracks_new(&d.tracks, form, name->trace, file);
    if (r < 0)
        return tl_streams_fail(name->trace, r);
    tl_streams_setup(lake, name->trace, &d.setup);
    const int status = tl_streams_each(lake, name, draw_stream, &d);
    tl_setup_fini(&d.setup);
    r = tl_tracks_finish(d.tracks);
    tl_tracks_free(d.tracks);
    return r < 0 && status == TL_CLI_DONE ? tl_streams_fail(name->trace, r) : status;
}
