/* SPDX-License-Identifier: MIT */
/*
 * Questions in SQL: SQLite's SELECT over tables of traces, streams, functions, instructions, calls,
 * events and messages, which are made while they are read (docs/sql.md). Threads, duration and
 * cancelling as in lake.h.
 */
#ifndef TL_LAKE_SQL_H
#define TL_LAKE_SQL_H

#include "lake_ranges.h"
#include "lake_traces.h"

#define TL_SQL_BYTES   65536  /* of a question */
#define TL_SQL_ROWS    100000 /* of an answer, unless asked for more */
#define TL_SQL_MOST    10000000
#define TL_SQL_SECONDS 30
/* Bytes that a question may need for sorting and grouping. Those that need more than some MiB wait
 * until they can have all of it: as many at once as go into tl_lake_options.sql_memory, at least
 * one. */
#define TL_SQL_MEMORY (256 << 20)

/* Have what SQLite allocates for each question counted. Lakes do so when they are opened: nobody
 * may use SQLite before. */
void tl_lake_sql_count(void);

struct tl_sql_request {
    const char *trace; /* whose rows the tables have, unless the question names others */
    const char *text;
    uint64_t rows;    /* the answer ends after so many; 0: TL_SQL_ROWS, at most TL_SQL_MOST */
    uint32_t seconds; /* 0, or more than these: TL_SQL_SECONDS */
    /* May whoever asks see this trace? Others do not exist for the question. NULL: all. */
    bool (*sees)(void *viewer, const struct tl_trace_row *trace);
    void *viewer;
};

/* The last three are only of tl_lake_insn_columns(). */
enum tl_sql_kind { TL_SQL_INTEGER, TL_SQL_REAL, TL_SQL_TEXT, TL_SQL_U64, TL_SQL_U32, TL_SQL_U8 };
/* Bytes of a value. */
static inline size_t tl_sql_width(enum tl_sql_kind kind)
{
    return kind == TL_SQL_U8 ? 1 : kind == TL_SQL_TEXT || kind == TL_SQL_U32 ? 4 : 8;
}

/* A column of a batch of rows. */
struct tl_sql_column {
    const char *name;
    enum tl_sql_kind kind; /* the widest of its values */
    /* Little-endian, tl_sql_width() bytes for each row. TEXT: an index into `texts`, which are all
     * different. */
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

/* ---- instructions in columns ---------------------------------------------------------------- */

enum tl_insn_column {
    TL_INSN_POSITION, /* U64 */
    TL_INSN_TIME,     /* U64, as the stream shows it; 0 if it has no times */
    TL_INSN_PC,       /* U64 */
    TL_INSN_OPCODE,   /* U32; 0 for an instruction of other sizes than 2 and 4, or not known */
    TL_INSN_SIZE,     /* U8, bytes; 0: not known, as no image has it */
    TL_INSN_COLUMNS
};
/* The column of this name, TL_INSN_COLUMNS: there is none. */
enum tl_insn_column tl_insn_column_named(const char *name);

struct tl_insn_columns_request {
    const char *trace, *stream;
    enum tl_range_unit unit;
    uint64_t from, to;
    enum tl_insn_column columns[TL_INSN_COLUMNS]; /* each once */
    size_t n_columns;
};
/*
 * Executed instructions of a range, in batches of up to 64 Ki rows, some ten million per second:
 * many times faster than in SQL. Errors as tl_lake_sql(), but without its limits.
 */
TL_MUST_USE int tl_lake_insn_columns(struct tl_lake *lake,
                                     const struct tl_insn_columns_request *request,
                                     tl_sql_sink *sink, void *context, struct tl_fail *fail);

#endif
