/* SPDX-License-Identifier: MIT */
/*
 * Questions in SQL: SQLite's SELECT over tables of traces, streams, functions, instructions, calls,
 * events and messages, which are made while they are read (docs/sql.md). Part of the lake's
 * interface: lake.h's rules on threads, duration and cancelling apply.
 */
#ifndef TL_LAKE_SQL_H
#define TL_LAKE_SQL_H

#include "lake.h"

#define TL_SQL_BYTES   65536  /* of a question */
#define TL_SQL_ROWS    100000 /* of an answer, unless asked for more */
#define TL_SQL_MOST    10000000
#define TL_SQL_SECONDS 30
#define TL_SQL_MEMORY  (256 << 20) /* bytes that a question may need for sorting and grouping */

struct tl_sql_request {
    const char *trace; /* whose rows the tables have, unless the question names others */
    const char *text;
    uint64_t rows;    /* the answer ends after so many; 0: TL_SQL_ROWS, at most TL_SQL_MOST */
    uint32_t seconds; /* 0, or more than these: TL_SQL_SECONDS */
    /* May whoever asks see this trace? Others do not exist for the question. NULL: all. */
    bool (*sees)(void *viewer, const struct tl_trace_row *trace);
    void *viewer;
};

enum tl_sql_kind { TL_SQL_INTEGER, TL_SQL_REAL, TL_SQL_TEXT };

/* A column of a batch of rows. */
struct tl_sql_column {
    const char *name;
    enum tl_sql_kind kind; /* the widest of its values */
    /* Little-endian: 8 bytes for each row, an int64 or a double. TEXT: 4 bytes, an index into
     * `texts`, which are all different. */
    const uint8_t *values;
    const char *const *texts;
    size_t n_texts;
    const uint8_t *nulls; /* bit i % 8 of byte i / 8: row i has no value; NULL: all have */
};

struct tl_sql_batch {
    const struct tl_sql_column *columns;
    size_t n_columns, n_rows;
    bool last;
    bool truncated; /* with `last`: there are more rows */
};

/* Receives the rows, in order, at least one batch (which may have no rows). Borrowed. A result < 0
 * ends the question and is returned. */
typedef int tl_sql_sink(void *context, const struct tl_sql_batch *batch);

/*
 * Answer a question. TL_USAGE: it is not a single SELECT, or wrong, with SQLite's reason; TL_LIMIT:
 * it needs too much time or memory; TL_NOTFOUND: no such trace or stream; TL_CANCELLED; what
 * reading shards returns.
 */
TL_MUST_USE int tl_lake_sql(struct tl_lake *lake, const struct tl_sql_request *request,
                            tl_sql_sink *sink, void *context, struct tl_fail *fail);

#endif
