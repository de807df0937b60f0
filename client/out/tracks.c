/* SPDX-License-Identifier: MIT */
/*
 * Tracks and events in one of the forms, written in large pieces. Nothing is kept of an event, so
 * that a picture of any length takes the same memory.
 */
#include "out/trackforms.h"

#include "base/whole.h"

#include <stdlib.h>
#include <string.h>

#define FLUSH (256u << 10)

static const struct {
    const char *name;
    const struct tl_tracks_ops *ops;
} forms[] = {[TL_TRACKS_PERFETTO] = {"perfetto", &tl_tracks_perfetto},
             [TL_TRACKS_CHROME] = {"chrome", &tl_tracks_chrome},
             [TL_TRACKS_CALLS] = {"calls", &tl_tracks_calls}};

int tl_tracks_parse(const char *name, enum tl_tracks_form *out)
{
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(name, forms[i].name) == 0) {
            *out = (enum tl_tracks_form)i;
            return TL_OK;
        }
    return TL_USAGE;
}

static int flush(struct tl_tracks *t, size_t least)
{
    if (t->out.n < least)
        return TL_OK;
    if (!tl_write_all(t->file, t->out.p, t->out.n))
        return TL_IO;
    tl_buf_reset(&t->out);
    return TL_OK;
}

int tl_tracks_new(struct tl_tracks **out, enum tl_tracks_form form, const char *process, FILE *file)
{
    struct tl_tracks *const t = calloc(1, sizeof *t);
    if (!t)
        return TL_NOMEM;
    t->ops = forms[form].ops;
    t->file = file;
    t->process = strdup(process);
    const int r = t->process ? t->ops->head(t) : TL_NOMEM;
    if (r < 0)
        tl_tracks_free(t);
    else
        *out = t;
    return r;
}

void tl_tracks_free(struct tl_tracks *tracks)
{
    if (!tracks)
        return;
    for (uint32_t i = 0; i < tracks->n; i++)
        free(tracks->names[i]);
    free(tracks->names);
    free(tracks->kinds);
    free(tracks->process);
    tl_numbers_fini(&tracks->texts);
    tl_buf_fini(&tracks->packet);
    tl_buf_fini(&tracks->interned);
    tl_buf_fini(&tracks->event);
    tl_buf_fini(&tracks->part);
    tl_buf_fini(&tracks->out);
    free(tracks);
}

int tl_tracks_add(struct tl_tracks *tracks, enum tl_track_kind kind, const char *name,
                  uint32_t *number)
{
    const uint32_t n = tracks->n;
    if (tl_grow(&tracks->names, &tracks->cap_names, n + 1, sizeof *tracks->names) < 0 ||
        tl_grow(&tracks->kinds, &tracks->cap_kinds, n + 1, sizeof *tracks->kinds) < 0 ||
        !(tracks->names[n] = strdup(name)))
        return TL_NOMEM;
    tracks->kinds[n] = (uint8_t)kind;
    tracks->n++;
    if (kind == TL_TRACK_STACK)
        tracks->stack = n;
    *number = n;
    const int r = tracks->ops->track(tracks, n);
    return r < 0 ? r : flush(tracks, FLUSH);
}

int tl_tracks_put(struct tl_tracks *tracks, const struct tl_track_event *event)
{
    const int r = tracks->ops->event(tracks, event);
    return r < 0 ? r : flush(tracks, FLUSH);
}

int tl_tracks_finish(struct tl_tracks *tracks)
{
    const int r = tracks->ops->foot(tracks);
    return r < 0 ? r : flush(tracks, 0);
}
