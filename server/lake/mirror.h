/* SPDX-License-Identifier: MIT */
/*
 * Copies of rows of traces, as objects, in case the catalog is lost. Thread-safe.
 */
#ifndef TL_LAKE_MIRROR_H
#define TL_LAKE_MIRROR_H

#include "lake/trace.h"

/*
 * Write the object "m/<trace>", which repeats what only the catalog has of a trace, in case the
 * catalog is lost, unless the trace is being deleted. The housekeeper retries a failed write.
 */
void tl_trace_mirror(struct tl_trace *trace);
enum tl_mirror_state {
    TL_MIRROR_SAME,
    TL_MIRROR_OLD, /* intact, of an earlier row: it may be about to be written */
    TL_MIRROR_DAMAGED,
};
/* Compare the object with the trace. TL_NOTFOUND: there is none. */
TL_MUST_USE int tl_trace_mirror_check(struct tl_trace *trace, enum tl_mirror_state *state,
                                      struct tl_fail *fail);
/* Compare the object with the catalog, for a trace that need not be in memory. Reads its row,
 * streams and notes, no shards. Also returns false on errors. */
bool tl_mirror_fits_row(struct tl_lake *lake, const char *id);
/* Remove the object of a trace that is being deleted, once nobody writes it any more. */
void tl_trace_mirror_remove(struct tl_trace *trace);

/* For reading one (upkeep/rebuild.h): its key; is it undamaged? Its text is behind the head. */
#define TL_MIRROR_HEAD 18 /* "TLTRACE1 xxxxxxxx\n" */
void tl_mirror_key(char out[static 80], const char *id);
bool tl_mirror_is_whole(const struct tl_buf *stored);

#endif
