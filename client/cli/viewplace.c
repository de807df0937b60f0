/* SPDX-License-Identifier: MIT */
/*
 * Chooses the place at which `view` opens the page. Who opens a trace for the first time looks for
 * what went wrong, or for what took too long; where neither stands out, an overview is best.
 */
#include "cli/viewplace.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOKED_AT = 200,    /* functions with the most own time */
    CALLS_MIN = 8,      /* fewer have no usual length */
    TIMES_LONGER = 4,   /* than the median: stands out */
    TIMES_MORE = 2,     /* instructions than the median */
    NEAR_END = 10000,   /* instructions from a fault to the end of the trace */
    AROUND_FAULT = 200, /* instructions shown on both sides, also of any other */
    AROUND_CALL = 20,   /* at least */
};

/* Append text, percent-encoded. */
static void add_encoded(char *out, size_t size, const char *text)
{
    size_t n = strlen(out);
    for (; *text && n + 4 < size; text++)
        if (isalnum((unsigned char)*text) || strchr("-_.~", *text))
            out[n++] = *text;
        else
            n += (size_t)snprintf(out + n, size - n, "%%%02X", (unsigned char)*text);
    out[n] = 0;
}

static void add(char *out, const char *name, uint64_t value)
{
    const size_t n = strlen(out);
    snprintf(out + n, TL_VIEW_ADDRESS - n, "&%s=%" PRIu64, name, value);
}

/* Instructions [from, to), which the page shows by time where there are times. */
static void add_range(struct tl_view_place *out, const char *stream, uint64_t from, uint64_t to)
{
    strcat(out->address, "?axis=usual&lane=");
    add_encoded(out->address, sizeof out->address - 160, stream);
    add(out->address, "from", from);
    add(out->address, "to", to);
}

/* Show instructions [from, to) of a stream. */
static void show(struct tl_view_place *out, const struct tracelake_stream *stream, uint64_t from,
                 uint64_t to)
{
    add_range(out, stream->name, from, to < stream->insns ? to : stream->insns);
}

/* ---- a fault at the end -------------------------------------------------------------------- */

static bool is_fault(const char *text)
{
    static const char *const words[] = {"abort", "fault", "undefined", "illegal", "misaligned"};
    char lower[160];
    size_t n = 0;
    for (; text[n] && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)text[n]);
    lower[n] = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(lower, words[i]))
            return true;
    return false;
}

static bool find_fault(struct tl_view_place *out, struct tracelake *lake, const char *trace,
                       const struct tracelake_stream *stream)
{
    const struct tracelake_query query = {
        .trace = trace,
        .stream = stream->name,
        .kind = TRACELAKE_FIND_EVENT,
        .text = "exception",
        .from = stream->insns > NEAR_END ? stream->insns - NEAR_END : 0,
        .to = TRACELAKE_END,
        .limit = 1,
        .near = stream->name,
        .at = TRACELAKE_END,
        .backward = true,
    };
    struct tracelake_found *found;
    struct tracelake_error error;
    if (tracelake_search(lake, &query, &found, &error) < 0)
        return false;
    const struct tracelake_hit *const hit = found->n ? &found->hits[found->n - 1] : NULL;
    const bool is = hit && is_fault(hit->text);
    if (is) {
        const uint64_t at = hit->at.insn;
        show(out, stream, at > AROUND_FAULT ? at - AROUND_FAULT : 0, at + AROUND_FAULT);
        add(out->address, "at", at);
        snprintf(out->why, sizeof out->why, "%.60s ends with a fault: %.120s", stream->name,
                 hit->text);
    }
    tracelake_found_free(found);
    return is;
}

/* ---- a call that took long ----------------------------------------------------------------- */

static const struct tracelake_lengths *lengths_of(const struct tracelake_function_times *f,
                                                  bool time)
{
    return time ? &f->time : &f->insns;
}

static bool stands_out(const struct tracelake_lengths *l, uint64_t times)
{
    return l->max / times >= (l->p50 ? l->p50 : 1);
}

/* Idle loops are long whenever there is nothing to do. */
static bool waits(const char *name)
{
    return !*name || strstr(name, "idle") || strstr(name, "Idle");
}

/* The function of whose calls one took the most longer than usual; NULL: none did. One that took
 * long without doing more only waited. */
static const struct tracelake_function_times *outstanding(const struct tracelake_functions *all,
                                                          bool time)
{
    const struct tracelake_function_times *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < all->n; i++) {
        const struct tracelake_lengths *const l = lengths_of(&all->p[i], time);
        if (all->p[i].ended < CALLS_MIN || waits(all->p[i].name) || !stands_out(l, TIMES_LONGER) ||
            !stands_out(&all->p[i].insns, TIMES_MORE) || l->max - l->p50 <= most)
            continue;
        best = &all->p[i];
        most = l->max - l->p50;
    }
    return best;
}

static bool show_longest(struct tl_view_place *out, struct tracelake *lake,
                         const struct tracelake_range *range, const struct tracelake_stream *stream,
                         const struct tracelake_function_times *f, bool time)
{
    const struct tracelake_calls_query query = {
        .range = *range,
        .function = f->name,
        .weight = time ? TRACELAKE_BY_TIME : TRACELAKE_BY_INSNS,
        .limit = 1,
    };
    const struct tracelake_lengths *const l = lengths_of(f, time);
    struct tracelake_calls *calls;
    struct tracelake_error error;
    if (tracelake_calls(lake, &query, &calls, &error) < 0)
        return false;
    const bool there = calls->n > 0 && calls->p[0].to > calls->p[0].from;
    if (there) {
        const struct tracelake_timed_call *const call = &calls->p[0];
        const uint64_t around = (call->to - call->from) / 4 + AROUND_CALL;
        show(out, stream, call->from > around ? call->from - around : 0, call->to + around);
        snprintf(out->why, sizeof out->why,
                 "in %.50s a call of %.100s took %" PRIu64 " times as long as usual", stream->name,
                 f->name, l->max / (l->p50 ? l->p50 : 1));
    }
    tracelake_calls_free(calls);
    return there;
}

static bool find_long_call(struct tl_view_place *out, struct tracelake *lake, const char *trace,
                           const struct tracelake_stream *stream)
{
    const struct tracelake_range range = {trace, stream->name, TRACELAKE_INSN, 0, TRACELAKE_END};
    const enum tracelake_weight weight = stream->has_time ? TRACELAKE_BY_TIME : TRACELAKE_BY_INSNS;
    struct tracelake_functions *all;
    struct tracelake_error error;
    if (tracelake_functions(lake, &range, weight, LOOKED_AT, &all, &error) < 0)
        return false;
    const bool time = all->about.has_time;
    const struct tracelake_function_times *const f = outstanding(all, time);
    const bool found = f && show_longest(out, lake, &range, stream, f, time);
    tracelake_functions_free(all);
    return found;
}

void tl_view_place_whole(struct tl_view_place *out, const char *url, const char *id)
{
    *out = (struct tl_view_place){0};
    snprintf(out->address, sizeof out->address, "%.96s/#/trace/", url);
    add_encoded(out->address, sizeof out->address / 2, id);
}

void tl_view_place_range(struct tl_view_place *out, const char *url, const char *id,
                         const char *stream, uint64_t from, uint64_t to)
{
    tl_view_place_whole(out, url, id);
    add_range(out, stream, from, to);
}

void tl_view_place_at(struct tl_view_place *out, const char *url, const char *id,
                      const char *stream, uint64_t at)
{
    if (at == TRACELAKE_END) {
        tl_view_place_whole(out, url, id);
        strcat(out->address, "?lane=");
        add_encoded(out->address, sizeof out->address - 160, stream);
        return;
    }
    tl_view_place_range(out, url, id, stream, at > AROUND_FAULT ? at - AROUND_FAULT : 0,
                        at + AROUND_FAULT);
    add(out->address, "at", at);
}

void tl_view_place(struct tl_view_place *out, struct tracelake *lake, const char *url,
                   const struct tracelake_trace *trace)
{
    const struct tracelake_stream *stream = NULL;
    tl_view_place_whole(out, url, trace->id);
    for (size_t i = 0; i < trace->n_streams; i++)
        if (!stream || trace->streams[i].insns > stream->insns)
            stream = &trace->streams[i];
    if (stream && stream->insns > 0 && !find_fault(out, lake, trace->id, stream))
        (void)find_long_call(out, lake, trace->id, stream);
}
