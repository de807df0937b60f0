/* SPDX-License-Identifier: MIT */
/*
 * Times of a stream's positions in full resolution, however many are asked for: a scale over a
 * whole stream would have only some of its timestamps. Not thread-safe.
 */
#ifndef TL_SQL_TIMES_H
#define TL_SQL_TIMES_H

#include "lake/scale.h"

#define TL_SQL_TIMES_WIDTH (8 * TL_CHUNK_MARKERS) /* positions of a scale */
#define TL_SQL_TIMES_KEPT  4                      /* a call ends elsewhere than it begins */

/* All zero: empty. Of one stream, whose cut stays open until tl_sql_times_fini(). */
struct tl_sql_times {
    struct tl_sql_window {
        struct tl_scale scale;
        uint64_t number; /* it has positions from number * TL_SQL_TIMES_WIDTH on */
        uint64_t used;   /* when last; 0: free */
    } windows[TL_SQL_TIMES_KEPT];
    uint64_t uses;
};

void tl_sql_times_fini(struct tl_sql_times *times);
/* The scale for a position, and for others up to the next multiple of TL_SQL_TIMES_WIDTH, which is
 * borrowed until the next call. TL_NOMEM, TL_IO, TL_BAD. */
TL_MUST_USE int tl_sql_times_at(struct tl_sql_times *times, const struct tl_cut *cut,
                                uint64_t position, const struct tl_scale **out,
                                struct tl_fail *fail);

#endif
