/* SPDX-License-Identifier: MIT */
/*
 * The lake's tables, as virtual tables of SQLite. A table says what columns it has and makes its
 * rows one after the other; what a question asks of trace, stream, function, position and time is
 * handed to it, so that it makes no more rows than needed. SQLite tests every condition again. Used
 * by the thread that asks.
 */
#ifndef TL_SQL_TABLE_H
#define TL_SQL_TABLE_H

#include "lake_sql.h"
#include "lake_timing.h"
#include "lake_traces.h"

#include <sqlite3.h>

/* What a column is, for conditions and order. */
enum tl_column_role {
    TL_COLUMN_PLAIN,
    TL_COLUMN_TRACE,
    TL_COLUMN_STREAM,
    TL_COLUMN_FUNCTION,
    TL_COLUMN_POSITION,
    TL_COLUMN_TIME,
    TL_COLUMN_ROLES
};

struct tl_table_column {
    const char *name, *type;
    enum tl_column_role role;
};

#define TL_ASKING_KEPT 16

/* A question under way. */
struct tl_asking {
    struct tl_lake *lake;
    const struct tl_sql_request *request;
    struct tl_fail *fail; /* receives why rows cannot be made */
    int error;            /* enum tl_err of that; TL_OK: none */
    /* May it go on? Rows are looked for without SQLite's asking so. Returns TL_LIMIT or
     * TL_CANCELLED if not. */
    int (*check)(struct tl_asking *asking);
    struct tl_gen *kept[TL_ASKING_KEPT]; /* whose names SQLite may still have */
    /* While a question is prepared: its positions are taken to be only bounded, not told; some
     * table counts on it. */
    bool bounds_only, counts_on_it;
    bool reads_once; /* no table is to be read in parts whose rows are united by their numbers */
    bool stopped;    /* it has come to a limit: what was collected is of no use */
};
/* Keep a generation, and its names, to the end of the question. False: there are too many. */
bool tl_asking_keeps(struct tl_asking *asking, struct tl_gen *gen);
void tl_asking_fini(struct tl_asking *asking);

/* The conditions that rows must meet; NULL, 0 and UINT64_MAX: any. */
struct tl_table_bounds {
    char *trace, *stream, *function; /* owned */
    uint64_t position, last_position;
    uint64_t time, last_time;
    bool nothing; /* no row can meet them */
};

struct tl_table;

struct tl_cursor {
    sqlite3_vtab_cursor base;
    const struct tl_table *table;
    struct tl_asking *asking;
    struct tl_table_bounds bounds; /* its trace is never NULL */
    uint32_t groups; /* how rows are put together: tl_group_column(); 0: each is told */
    uint64_t most;   /* only so many rows are wanted, those that are largest by the table's column,
                        first ones first: it need not tell the others; 0: all */
    bool end;
    int64_t row; /* number of the row, from 0 */
    void *state; /* the table's, zeroed: `state_bytes` */
};

/*
 * Rows of which a question asks only `grouped` columns, to group or distinguish them by some of
 * these, come in the order of those, so that nothing needs to be sorted. It may bound positions;
 * if it asks for them, too, equal rows come in any order of these.
 */
#define TL_GROUP_COLUMNS   6
#define TL_GROUP_ONCE      (1u << 30) /* equal rows may be told once */
#define TL_GROUP_POSITIONS (1u << 31) /* positions are told, too; not with TL_GROUP_ONCE */
/* The i-th column of the order; -1: there are no more. */
static inline int tl_group_column(uint32_t groups, unsigned i, bool *descends)
{
    const uint32_t bits = i < TL_GROUP_COLUMNS ? groups >> 5 * i & 31 : 0;
    *descends = bits >> 4;
    return (int)(bits & 15) - 1;
}

struct tl_table {
    const char *name;
    const struct tl_table_column *columns;
    int n_columns;
    size_t state_bytes;
    double rows;              /* about how many, without conditions */
    bool ordered;             /* by position, within a stream */
    uint32_t grouped, sorted; /* sets of columns: see above; those it may be ordered by */
    int largest; /* the column by which it can find the largest rows without all others; 0: none */
    /* Go to the first row within the bounds, and to the next; set cursor->end behind the last.
     * Errors are of tl_lake_sql(). */
    int (*first)(struct tl_cursor *cursor);
    int (*next)(struct tl_cursor *cursor);
    void (*column)(struct tl_cursor *cursor, sqlite3_context *context, int column);
    void (*close)(struct tl_cursor *cursor);
};

#define TL_TABLES 11
extern const struct tl_table *const tl_tables[TL_TABLES];
extern const struct tl_table tl_trace_table, tl_stream_table, tl_function_table, tl_note_table,
    tl_insn_table, tl_event_table, tl_gap_table, tl_access_table, tl_log_table, tl_call_table,
    tl_timeline_table;

/* Make the tables known to a connection. `asking` is borrowed until it is closed. TL_NOMEM. */
TL_MUST_USE int tl_tables_add(sqlite3 *db, struct tl_asking *asking);

/* May it see this trace? */
static inline bool tl_asking_sees(const struct tl_asking *asking, const struct tl_trace_row *trace)
{
    return !asking->request->sees || asking->request->sees(asking->request->viewer, trace);
}
/* The row of the cursor's trace, in a list of one; free it with tl_trace_list_free(), also after an
 * error. TL_NOTFOUND: no such trace, or it may not be seen. */
TL_MUST_USE int tl_cursor_trace(struct tl_cursor *c, struct tl_trace_list *out);

/* Results of a column: numbers beyond 2^63 keep their bits; "" is NULL. `lasts`: to the end of the
 * question, else the text is copied. */
void tl_column_u64(sqlite3_context *context, uint64_t value);
void tl_column_text(sqlite3_context *context, const char *text);
void tl_column_name(sqlite3_context *context, const char *text, bool lasts);

#endif
