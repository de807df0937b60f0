/* SPDX-License-Identifier: MIT */
/* What tracks.c asks of a form. All append to `out`; TL_NOMEM. */
#ifndef TL_OUT_TRACKFORMS_H
#define TL_OUT_TRACKFORMS_H

#include "base/numbers.h"
#include "out/tracks.h"

struct tl_tracks {
    const struct tl_tracks_ops *ops;
    struct tl_buf out; /* not yet written */
    FILE *file;
    char *process;
    uint32_t n;     /* tracks */
    uint32_t stack; /* the last TL_TRACK_STACK */
    char **names;   /* of tracks, by number */
    uint8_t *kinds; /* enum tl_track_kind */
    size_t cap_names, cap_kinds;
    bool begun; /* something precedes what is written next */
    /* perfetto: names that are told by number */
    struct tl_numbers texts;
    bool clear; /* these begin anew with the next packet */
    struct tl_buf packet, interned, event, part;
};

struct tl_tracks_ops {
    int (*head)(struct tl_tracks *t);
    int (*track)(struct tl_tracks *t, uint32_t number);
    int (*event)(struct tl_tracks *t, const struct tl_track_event *event);
    int (*foot)(struct tl_tracks *t);
};

extern const struct tl_tracks_ops tl_tracks_perfetto, tl_tracks_chrome, tl_tracks_calls;

#endif
