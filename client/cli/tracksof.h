/* SPDX-License-Identifier: MIT */
/*
 * `get --format perfetto|chrome|calls`: the streams of a trace as tracks. A track for the calls of
 * each stream, with gaps and events as marks; tracks for the processes that ran, for messages, and
 * for the values that programs write.
 */
#ifndef TL_CLI_TRACKSOF_H
#define TL_CLI_TRACKSOF_H

#include "out/tracks.h"
#include "terminal/remote.h"

#include <stdio.h>

/* Finds the instructions of a stream that are wanted: [*from, *to), TRACELAKE_END: all that follow.
 * TL_ARGS_GO, or the exit status of a reported error. */
typedef int tl_tracks_range(const void *context, struct tracelake *lake,
                            const struct tl_remote_name *name, uint64_t *from, uint64_t *to);

/* Write the stream, or without one all streams of the trace. Returns the exit status; errors are
 * reported. */
int tl_tracks_of(struct tracelake *lake, const struct tl_remote_name *name,
                 enum tl_tracks_form form, tl_tracks_range *range, const void *context, FILE *file);

#endif
