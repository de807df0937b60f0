/* SPDX-License-Identifier: MIT */
/*
 * Notes and bookmarks of traces. A note has its times besides its positions, so that it can be
 * shown on either axis without a look-up.
 */
#include "base/utf8.h"
#include "lake/cut.h"
#include "lake/mirror.h"
#include "share/share.h"

#include <stdlib.h>
#include <string.h>

struct list {
    struct tl_note *p;
    size_t n, cap;
};

static int add_note(void *context, const struct tl_note *note)
{
    struct list *const list = context;
    if (tl_grow(&list->p, &list->cap, list->n + 1, sizeof *list->p) < 0)
        return TL_NOMEM;
    list->p[list->n++] = *note;
    return TL_OK;
}

static int read_notes(struct tl_lake *lake, const char *trace, struct list *out,
                      struct tl_fail *fail)
{
    struct tl_trace *const found = tl_lake_find_trace(lake, trace);
    *out = (struct list){0};
    if (!found)
        return tl_no_trace(lake, fail, trace);
    tl_trace_put(found);
    return lake->catalog->ops->notes(lake->catalog, trace, add_note, out, fail);
}

int tl_lake_notes(struct tl_lake *lake, const char *trace, struct tl_note **notes, size_t *n,
                  struct tl_fail *fail)
{
    struct list list;
    const int r = read_notes(lake, trace, &list, fail);
    if (r < 0) {
        free(list.p);
        return r;
    }
    *notes = list.p;
    *n = list.n;
    return TL_OK;
}

/* Set its times, if its stream has time. */
static int place_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                      struct tl_fail *fail)
{
    struct tl_position at, to;
    int r = tl_lake_locate(lake, trace, note->stream, TL_UNIT_INSN, note->at, &at, fail);
    if (r >= 0)
        r = tl_lake_locate(lake, trace, note->stream, TL_UNIT_INSN, note->to, &to, fail);
    if (r < 0)
        return r;
    note->has_time = at.has_time && to.has_time;
    note->time = note->has_time ? at.time : 0;
    note->time_to = note->has_time && to.time > at.time ? to.time : note->time;
    return TL_OK;
}

static int check_note(const struct tl_note *note, const struct list *list, struct tl_fail *fail)
{
    for (const char *p = note->text; *p; p++)
        if ((uint8_t)*p < 0x20 && *p != '\n')
            return tl_fail_set(fail, TL_USAGE, "a note with a control character");
    if (note->to < note->at)
        return tl_fail_set(fail, TL_USAGE, "a note that ends before it begins");
    for (size_t i = 0; i < list->n; i++)
        if (list->p[i].id == note->id)
            return TL_OK;
    if (note->id > 0)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no note %llu",
                           (unsigned long long)note->id);
    if (list->n >= TL_NOTES_MAX)
        return tl_fail_set(fail, TL_LIMIT, "a trace has at most %d notes; remove some",
                           TL_NOTES_MAX);
    return TL_OK;
}

/* Report a change to watchers, and update the object that repeats it. */
static void noted(struct tl_lake *lake, const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return;
    const bool pinned = tl_trace_pin(trace, TL_PIN_TRY, NULL) >= 0;
    pthread_mutex_lock(&trace->lock);
    trace->notes++;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_mirror(trace);
    if (pinned)
        tl_trace_unpin(trace);
    tl_trace_changed(trace);
    tl_trace_put(trace);
}

int tl_lake_put_note(struct tl_lake *lake, const char *trace, struct tl_note *note,
                     struct tl_fail *fail)
{
    struct list list;
    tl_utf8_clean(note->text);
    pthread_mutex_lock(&lake->notes_lock);
    int r = read_notes(lake, trace, &list, fail);
    if (r >= 0)
        r = check_note(note, &list, fail);
    if (r >= 0)
        r = place_note(lake, trace, note, fail);
    note->created_ns = note->updated_ns = tl_wall_ns();
    uint64_t last = 0;
    for (size_t i = 0; i < list.n; i++) {
        last = list.p[i].id;
        if (last == note->id)
            note->created_ns = list.p[i].created_ns;
    }
    if (note->id == 0)
        note->id = last + 1;
    if (r >= 0)
        r = lake->catalog->ops->put_note(lake->catalog, trace, note, fail);
    pthread_mutex_unlock(&lake->notes_lock);
    free(list.p);
    if (r >= 0)
        noted(lake, trace);
    return r;
}

int tl_lake_remove_note(struct tl_lake *lake, const char *trace, uint64_t id, struct tl_fail *fail)
{
    struct tl_trace *const found = tl_lake_find_trace(lake, trace);
    if (!found)
        return tl_no_trace(lake, fail, trace);
    tl_trace_put(found);
    const int r = lake->catalog->ops->remove_note(lake->catalog, trace, id, fail);
    if (r >= 0)
        noted(lake, trace);
    return r;
}
