/* SPDX-License-Identifier: MIT */
/* `get --format csv`: the rows of a table of streams, from instructions to messages, as CSV. */
#ifndef TL_CLI_CSVOF_H
#define TL_CLI_CSVOF_H

#include "cli/tracksof.h"

/* Is there a table of this name: insn, call, event, gap, log? */
bool tl_csv_knows(const char *table);
/* Write it for the stream, or without one for all streams of the trace, as tl_tracks_of(). */
int tl_csv_of(struct tracelake *lake, const struct tl_remote_name *name, const char *table,
              tl_tracks_range *range, const void *context, FILE *file);

#endif
