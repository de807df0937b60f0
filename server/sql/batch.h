/* SPDX-License-Identifier: MIT */
/*
 * Rows of a statement, gathered into columns. Not thread-safe.
 */
#ifndef TL_SQL_BATCH_H
#define TL_SQL_BATCH_H

#include "base/buf.h"
#include "lake_sql.h"

#include <sqlite3.h>

#define TL_SQL_BATCH       2048       /* rows */
#define TL_SQL_BATCH_BYTES (1u << 20) /* of texts, about */

/* The values of a column, as they came. */
struct tl_sql_cells {
    uint8_t types[TL_SQL_BATCH];   /* SQLITE_INTEGER … */
    uint64_t values[TL_SQL_BATCH]; /* bits of the number; TEXT: offset in `text` */
    struct tl_buf text;            /* NUL-terminated texts */
    bool any[6];                   /* by type */
    /* Of the batch made of it: */
    struct tl_buf out, nulls;
    const char **texts;
    size_t n_texts, cap_texts;
};

struct tl_sql_gather {
    struct tl_sql_cells *cells;
    struct tl_sql_column *columns;
    size_t n, rows;
    size_t text; /* bytes of all texts */
};

/* Begin with the columns of a statement, whose names it borrows. Free with tl_sql_gather_fini(),
 * also after an error. TL_NOMEM. */
TL_MUST_USE int tl_sql_gather_init(struct tl_sql_gather *g, sqlite3_stmt *statement);
void tl_sql_gather_fini(struct tl_sql_gather *g);
/* Has it as many rows, or as long ones, as a batch may have? */
static inline bool tl_sql_gather_is_full(const struct tl_sql_gather *g)
{
    return g->rows == TL_SQL_BATCH || g->text >= TL_SQL_BATCH_BYTES;
}
/* Add the statement's row; it must not be full. TL_NOMEM. */
TL_MUST_USE int tl_sql_gather_row(struct tl_sql_gather *g, sqlite3_stmt *statement);
/* Hand over what was gathered, and begin anew. Returns the sink's result. TL_NOMEM. */
TL_MUST_USE int tl_sql_gather_send(struct tl_sql_gather *g, bool last, bool truncated,
                                   tl_sql_sink *sink, void *context);

#endif
