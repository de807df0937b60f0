/* SPDX-License-Identifier: MIT */
/*
 * The rows of a long table, one after the other: a question in SQL that is asked again from where
 * its limits ended the answer. The table is in order of its column `position`.
 */
#ifndef TL_CLI_TRACKROWS_H
#define TL_CLI_TRACKROWS_H

#include "terminal/remote.h"

/* A row of a batch; columns as they were asked for. */
struct tl_track_row {
    const struct tracelake_table *table;
    size_t number;
};
/* The value of a column; `*has` (may be NULL): there is one. */
int64_t tl_track_integer(const struct tl_track_row *row, size_t column, bool *has);
/* "": there is none. */
const char *tl_track_text(const struct tl_track_row *row, size_t column);

struct tl_track_rows {
    const char *table, *columns; /* the first column is position, the second what is said below */
    const char *trace, *stream;
    uint64_t from, to; /* positions; to: exclusive, TRACELAKE_END: all */
    uint64_t insns;    /* positions that the stream has */
    /* Rows with this text in the second column stand in front of a question's other rows, and are
     * handed over only once; NULL: none. */
    const char *opening;
    int (*take)(void *context, const struct tl_track_row *row);
    void *context;
};
/* Hand over all rows. Returns TRACELAKE_OK, the first result < 0 of `take`, or an error. */
TL_MUST_USE int tl_track_rows_each(struct tracelake *lake, const struct tl_track_rows *rows,
                                   struct tracelake_error *error);

#endif
