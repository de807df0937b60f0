/* SPDX-License-Identifier: MIT */
/* The speed of a stream as tracks of values: instructions by time and, where they are counted, by
 * cycle. */
#ifndef TL_CLI_TRACKSPEED_H
#define TL_CLI_TRACKSPEED_H

#include "out/tracks.h"
#include "tracelake.h"

/* Of instructions [from, to). Returns TRACELAKE_OK, or an error; `*failed` is that of writing, enum
 * tl_err, if `error` says nothing. */
TL_MUST_USE int tl_track_speed(struct tl_tracks *tracks, struct tracelake *lake, const char *trace,
                               const struct tracelake_stream *stream, uint64_t from, uint64_t to,
                               int *failed, struct tracelake_error *error);

#endif
