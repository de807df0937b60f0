/* SPDX-License-Identifier: MIT */
/*
 * A trace as a picture for other tools, docs/exports.md: tracks with slices, marks and values.
 *
 *   perfetto   Perfetto's protobuf trace
 *   chrome     the JSON of Chrome's trace viewer
 *   calls      a line for each slice, indented by its depth
 *
 * Events are written as they come; memory does not grow with their number. Not thread-safe.
 */
#ifndef TL_OUT_TRACKS_H
#define TL_OUT_TRACKS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

enum tl_tracks_form { TL_TRACKS_PERFETTO, TL_TRACKS_CHROME, TL_TRACKS_CALLS };

/* Parse "perfetto", "chrome" or "calls": TL_OK, or TL_USAGE. */
TL_MUST_USE int tl_tracks_parse(const char *name, enum tl_tracks_form *out);

struct tl_tracks;

/* `process`: the name above all tracks. `file` is borrowed. TL_NOMEM; TL_IO: as of the others. */
TL_MUST_USE int tl_tracks_new(struct tl_tracks **out, enum tl_tracks_form form, const char *process,
                              FILE *file);
void tl_tracks_free(struct tl_tracks *tracks); /* accepts NULL */

enum tl_track_kind {
    TL_TRACK_STACK,  /* slices, one in another */
    TL_TRACK_PART,   /* the same, drawn with the last STACK; without lines in `calls` */
    TL_TRACK_COUNTER /* values */
};
/* Add a track; events name it by `*number`. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_tracks_add(struct tl_tracks *tracks, enum tl_track_kind kind, const char *name,
                              uint32_t *number);

enum tl_track_what {
    TL_TRACK_BEGIN, /* of a slice, in that which is open */
    TL_TRACK_END,   /* of the slice that began last and is open */
    TL_TRACK_MARK,  /* something at one time */
    TL_TRACK_VALUE  /* from this time on */
};
struct tl_track_event {
    enum tl_track_what what;
    uint32_t track;
    uint64_t time;    /* ns; on a track, it does not decrease */
    const char *name; /* of BEGIN and MARK; borrowed, as the other texts */
    const char *kind; /* of BEGIN and MARK: a word of few */
    bool unique;      /* MARK: the name is not one of many with the same */
    bool has_position, has_pc;
    uint64_t position, pc; /* BEGIN, MARK: told beside the name */
    double value;          /* VALUE */
    uint32_t depth;        /* BEGIN: slices around it */
    const char *when;      /* BEGIN, MARK: the time as `calls` prints it */
};
/* TL_NOMEM, TL_IO: errno says why. */
TL_MUST_USE int tl_tracks_put(struct tl_tracks *tracks, const struct tl_track_event *event);
/* Write what is left. TL_NOMEM, TL_IO. */
TL_MUST_USE int tl_tracks_finish(struct tl_tracks *tracks);

#endif
