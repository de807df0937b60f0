/* SPDX-License-Identifier: MIT */
/* SQLite, wrapped just enough for the catalog's files. */
#ifndef TL_STORE_CATALOG_SQL_H
#define TL_STORE_CATALOG_SQL_H

#include "store/catalog.h"

#include <pthread.h>
#include <sqlite3.h>

struct tl_catalog {
    sqlite3 *db;
    pthread_mutex_t lock;
    struct tl_backend *backend;
    bool fresh; /* it was made by this opening */
};

/* What the database last said, as a code and a text. */
int tl_sql_failed(struct tl_catalog *catalog, struct tl_fail *fail);

/*
 * Prepare `sql` and bind `types`: 's' const char *, 'i' int64_t or uint64_t, 'b' struct
 * tl_bytes *. The lock must be held.
 */
TL_MUST_USE int tl_sql_prepare(struct tl_catalog *catalog, sqlite3_stmt **out, struct tl_fail *fail,
                               const char *sql, const char *types, ...);
/* Bind other values to a statement, which begins anew. */
TL_MUST_USE int tl_sql_bind(struct tl_catalog *catalog, sqlite3_stmt *statement,
                            struct tl_fail *fail, const char *types, ...);
/* A transaction, with the lock held. */
TL_MUST_USE int tl_sql_begin(struct tl_catalog *catalog, struct tl_fail *fail);
/* End it: commit, or with `result` < 0 or where that is refused, take all of it back. Returns why
 * it was taken back, or TL_OK. */
TL_MUST_USE int tl_sql_end(struct tl_catalog *catalog, int result, struct tl_fail *fail);
/* Run a statement without rows, under the lock. Returns the number of changed rows. */
TL_MUST_USE int tl_sql_run(struct tl_catalog *catalog, struct tl_fail *fail, const char *sql,
                           const char *types, ...);
/* Step to the next row: 1, or 0 at the end. */
TL_MUST_USE int tl_sql_step(struct tl_catalog *catalog, sqlite3_stmt *statement,
                            struct tl_fail *fail);

/* Columns; text is "" for NULL. */
const char *tl_sql_text(sqlite3_stmt *statement, int column);
uint64_t tl_sql_u64(sqlite3_stmt *statement, int column);
struct tl_bytes tl_sql_bytes(sqlite3_stmt *statement, int column);

#endif
