/* SPDX-License-Identifier: MIT */
/*
 * Tracks as an indented list of calls, as `perf script --call-trace` prints them: stream, time,
 * name. A line for each call, when it begins, and for each mark between them.
 */
#include "out/trackforms.h"
#include "terminal/plain.h"

static int put_nothing(struct tl_tracks *t)
{
    (void)t;
    return TL_OK;
}

static int put_track(struct tl_tracks *t, uint32_t number)
{
    (void)number;
    return put_nothing(t);
}

static int put_event(struct tl_tracks *t, const struct tl_track_event *event)
{
    const bool mark = event->what == TL_TRACK_MARK;
    if (t->kinds[event->track] != TL_TRACK_STACK || (event->what != TL_TRACK_BEGIN && !mark))
        return TL_OK;
    int r = tl_buf_printf(&t->out, "%s %s: %*s%s", t->names[event->track], event->when,
                          2 * (int)event->depth, "", mark ? "-- " : "");
    if (r >= 0)
        r = tl_plain_append(&t->out, event->name);
    return r < 0 ? r : tl_buf_add(&t->out, "\n", 1);
}

const struct tl_tracks_ops tl_tracks_calls = {put_nothing, put_track, put_event, put_nothing};
