/* SPDX-License-Identifier: MIT */
/*
 * Makes a counter track of how fast a stream was executed. Speed is counted in parts of equal time,
 * as many as a picture has columns; a part without instructions has the value 0, and one without
 * counted cycles none.
 */
#include "cli/trackspeed.h"

#include "tracelake_answers.h"
#include "tracelake_lookups.h"

#include <stdio.h>

#define COLUMNS 1024
#define PER     1000 /* units of time: us where these are ns */

struct speed {
    struct tl_tracks *tracks;
    const struct tracelake_stream *stream;
    const struct tracelake_counters *counters;
};

static uint64_t time_of(const struct tracelake_counters *c, size_t column)
{
    return c->from + (uint64_t)((double)(c->to - c->from) * (double)column / (double)c->n);
}

/* Instructions in a unit of time. */
static int put_rate(const struct speed *s)
{
    const struct tracelake_counters *const c = s->counters;
    char name[256];
    struct tl_track_event event = {.what = TL_TRACK_VALUE};
    snprintf(name, sizeof name, "%s instructions per %s", s->stream->name,
             s->stream->time_unit_ns ? "us" : "1000 ticks");
    int r = tl_tracks_add(s->tracks, TL_TRACK_COUNTER, name, &event.track);
    for (size_t i = 0; i < c->n && r >= 0; i++) {
        const uint64_t width = time_of(c, i + 1) - time_of(c, i);
        event.time = time_of(c, i);
        event.value = width ? (double)c->p[i].insns * PER / (double)width : 0;
        if (width)
            r = tl_tracks_put(s->tracks, &event);
    }
    return r;
}

static int put_ipc(const struct speed *s)
{
    const struct tracelake_counters *const c = s->counters;
    char name[256];
    bool added = false;
    struct tl_track_event event = {.what = TL_TRACK_VALUE};
    int r = TL_OK;
    snprintf(name, sizeof name, "%s instructions per cycle", s->stream->name);
    for (size_t i = 0; i < c->n && r >= 0; i++) {
        if (c->p[i].cycles == 0)
            continue;
        if (!added)
            r = tl_tracks_add(s->tracks, TL_TRACK_COUNTER, name, &event.track);
        added = true;
        event.time = time_of(c, i);
        event.value = (double)c->p[i].cycle_insns / (double)c->p[i].cycles;
        if (r >= 0)
            r = tl_tracks_put(s->tracks, &event);
    }
    return r;
}

/* The time of an instruction of the stream; it stays if there is none. */
static int find_time(struct tracelake *lake, const char *trace,
                     const struct tracelake_stream *stream, uint64_t insn, uint64_t *time,
                     struct tracelake_error *error)
{
    struct tracelake_position at;
    const int r = tracelake_locate(lake, trace, stream->name, TRACELAKE_INSN, insn, &at, error);
    if (r >= 0 && at.has_time)
        *time = at.time;
    return r;
}

int tl_track_speed(struct tl_tracks *tracks, struct tracelake *lake, const char *trace,
                   const struct tracelake_stream *stream, uint64_t from, uint64_t to, int *failed,
                   struct tracelake_error *error)
{
    struct tracelake_range range = {trace, stream->name, TRACELAKE_TIME, stream->time_first,
                                    stream->time_last + 1};
    struct tracelake_counters *counters;
    int r = TRACELAKE_OK;
    if (!stream->has_time || stream->insns == 0)
        return r;
    if (from > 0)
        r = find_time(lake, trace, stream, from, &range.from, error);
    if (r >= 0 && to < stream->insns)
        r = find_time(lake, trace, stream, to, &range.to, error);
    if (r < 0 || range.from >= range.to)
        return r;
    r = tracelake_get_counters(lake, &range, COLUMNS, &counters, error);
    if (r < 0)
        return r;
    const struct speed speed = {tracks, stream, counters};
    *failed = put_rate(&speed);
    if (*failed >= 0)
        *failed = put_ipc(&speed);
    tracelake_counters_free(counters);
    return *failed < 0 ? TRACELAKE_IO : TRACELAKE_OK;
}
