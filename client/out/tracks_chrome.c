/* SPDX-License-Identifier: MIT */
/*
 * Tracks as the JSON that chrome://tracing, Perfetto and Speedscope read: a line for each event,
 * with microseconds in three decimals, so that none is rounded. A track is a thread; values belong
 * to the process and are told apart by their names.
 */
#include "base/jsonout.h"
#include "out/trackforms.h"

#define PID 1

/* Begin an object, after a comma if it is not the first. */
static struct tl_jsonout begin(struct tl_tracks *t)
{
    struct tl_jsonout j = {.out = &t->out};
    j.rc = t->begun ? tl_buf_add(&t->out, ",\n", 2) : TL_OK;
    t->begun = true;
    tl_jsonout_open(&j, '{');
    return j;
}

static int end(struct tl_jsonout *j)
{
    tl_jsonout_close(j, '}');
    return j->rc;
}

static void put_text(struct tl_jsonout *j, const char *name, const char *text)
{
    tl_jsonout_name(j, name);
    tl_jsonout_text(j, text);
}

static void put_number(struct tl_jsonout *j, const char *name, uint64_t value)
{
    tl_jsonout_name(j, name);
    tl_jsonout_u64(j, value);
}

static int describe(struct tl_tracks *t, const char *what, uint64_t tid, const char *name,
                    const uint64_t *order)
{
    struct tl_jsonout j = begin(t);
    put_text(&j, "ph", "M");
    put_text(&j, "name", what);
    put_number(&j, "pid", PID);
    put_number(&j, "tid", tid);
    tl_jsonout_name(&j, "args");
    tl_jsonout_open(&j, '{');
    if (order)
        put_number(&j, "sort_index", *order);
    else
        put_text(&j, "name", name);
    tl_jsonout_close(&j, '}');
    return end(&j);
}

static int put_head(struct tl_tracks *t)
{
    static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    const int r = tl_buf_add(&t->out, head, sizeof head - 1);
    return r < 0 ? r : describe(t, "process_name", 0, t->process, NULL);
}

static int put_track(struct tl_tracks *t, uint32_t number)
{
    const uint64_t tid = number + 1;
    if (t->kinds[number] == TL_TRACK_COUNTER)
        return TL_OK;
    const int r = describe(t, "thread_name", tid, t->names[number], NULL);
    return r < 0 ? r : describe(t, "thread_sort_index", tid, NULL, &tid);
}

static void put_time(struct tl_jsonout *j, uint64_t ns)
{
    char text[32];
    const int n = snprintf(text, sizeof text, "%llu.%03u", (unsigned long long)(ns / 1000),
                           (unsigned)(ns % 1000));
    tl_jsonout_name(j, "ts");
    tl_jsonout_raw(j, text, (size_t)n);
}

static void put_args(struct tl_jsonout *j, const struct tl_track_event *event)
{
    tl_jsonout_name(j, "args");
    tl_jsonout_open(j, '{');
    if (event->what == TL_TRACK_VALUE) {
        tl_jsonout_name(j, "value");
        tl_jsonout_double(j, event->value);
    }
    if (event->has_position)
        put_number(j, "position", event->position);
    if (event->has_pc) {
        tl_jsonout_name(j, "pc");
        tl_jsonout_address(j, event->pc);
    }
    tl_jsonout_close(j, '}');
}

static int put_event(struct tl_tracks *t, const struct tl_track_event *event)
{
    static const char *const phases[] = {[TL_TRACK_BEGIN] = "B",
                                         [TL_TRACK_END] = "E",
                                         [TL_TRACK_MARK] = "i",
                                         [TL_TRACK_VALUE] = "C"};
    struct tl_jsonout j = begin(t);
    put_text(&j, "ph", phases[event->what]);
    put_number(&j, "pid", PID);
    if (event->what != TL_TRACK_VALUE)
        put_number(&j, "tid", event->track + 1);
    put_time(&j, event->time);
    if (event->what == TL_TRACK_END)
        return end(&j);
    put_text(&j, "name", event->what == TL_TRACK_VALUE ? t->names[event->track] : event->name);
    if (event->kind)
        put_text(&j, "cat", event->kind);
    if (event->what == TL_TRACK_MARK)
        put_text(&j, "s", "t");
    put_args(&j, event);
    return end(&j);
}

static int put_foot(struct tl_tracks *t)
{
    return tl_buf_add(&t->out, "\n]}\n", 4);
}

const struct tl_tracks_ops tl_tracks_chrome = {put_head, put_track, put_event, put_foot};
