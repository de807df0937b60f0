/* SPDX-License-Identifier: MIT */
/* Thin SQLite wrapper for the catalog's files. */
#ifndef TL_STORE_CATALOG_SQL_H
#define TL_STORE_CATALOG_SQL_H

#include "store/catalog_ops.h"

#include <pthread.h>
#include <sqlite3.h>

struct tl_sql {
    struct tl_catalog base;
    sqlite3 *db;
    pthread_mutex_t lock;
    struct tl_backend *backend;
    bool fresh; /* created by this open */
};

static inline struct tl_sql *tl_sql_of(struct tl_catalog *catalog)
{
    return (struct tl_sql *)catalog;
}

/* Open the catalog in the database at the backend's catalog_uri. */
TL_MUST_USE int tl_sql_catalog_open(struct tl_catalog **out, struct tl_backend *backend,
                                    struct tl_fail *fail);

/* Convert the database's last error to a code and a text. */
int tl_sql_failed(struct tl_sql *c, struct tl_fail *fail);

/*
 * Prepare `sql` and bind `types`: 's' const char *, 'i' int64_t or uint64_t, 'b' struct
 * tl_bytes *. The lock must be held.
 */
TL_MUST_USE int tl_sql_prepare(struct tl_sql *c, sqlite3_stmt **out, struct tl_fail *fail,
                               const char *sql, const char *types, ...);
/* Reset a statement and bind other values. */
TL_MUST_USE int tl_sql_bind(struct tl_sql *c, sqlite3_stmt *statement, struct tl_fail *fail,
                            const char *types, ...);
/* Begin a transaction, with the lock held. */
TL_MUST_USE int tl_sql_begin(struct tl_sql *c, struct tl_fail *fail);
/* End the transaction: commit, or roll back if `result` < 0 or the commit fails. Returns the reason
 * for the rollback, or TL_OK. */
TL_MUST_USE int tl_sql_end(struct tl_sql *c, int result, struct tl_fail *fail);
/* Run a statement without rows, under the lock. Returns the number of changed rows. */
TL_MUST_USE int tl_sql_run(struct tl_sql *c, struct tl_fail *fail, const char *sql,
                           const char *types, ...);
/* Run a statement under the lock, and call `row` with each row; a result < 0 of it ends the call
 * and is returned. */
TL_MUST_USE int tl_sql_each(struct tl_sql *c, int (*row)(void *context, sqlite3_stmt *statement),
                            void *context, struct tl_fail *fail, const char *sql, const char *types,
                            ...);
/* Step to the next row: 1, or 0 at the end. */
TL_MUST_USE int tl_sql_step(struct tl_sql *c, sqlite3_stmt *statement, struct tl_fail *fail);

/* Read a column; text is "" for NULL. */
const char *tl_sql_text(sqlite3_stmt *statement, int column);
uint64_t tl_sql_u64(sqlite3_stmt *statement, int column);
struct tl_bytes tl_sql_bytes(sqlite3_stmt *statement, int column);

/* Implementation of the functions in catalog.h. */
bool tl_sql_catalog_fresh(const struct tl_catalog *catalog);
int tl_sql_catalog_ready(struct tl_catalog *catalog, struct tl_fail *fail);
int tl_sql_catalog_clear(struct tl_catalog *catalog, struct tl_fail *fail);
int tl_sql_catalog_check(struct tl_catalog *catalog, bool whole,
                         int (*each)(void *context, const char *finding), void *context,
                         struct tl_fail *fail);
int tl_sql_catalog_add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                             struct tl_fail *fail);
int tl_sql_catalog_update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                                struct tl_fail *fail);
int tl_sql_catalog_remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                                 struct tl_fail *fail);
int tl_sql_catalog_find(struct tl_catalog *catalog, const char *id,
                        int (*each)(void *context, const struct tl_catalog_trace *trace),
                        void *context, struct tl_fail *fail);
int tl_sql_catalog_page(struct tl_catalog *catalog, const struct tl_trace_place *behind,
                        size_t most,
                        int (*each)(void *context, const struct tl_catalog_trace *trace),
                        void *context, struct tl_fail *fail);
int tl_sql_catalog_unfinished(struct tl_catalog *catalog,
                              int (*each)(void *context, const struct tl_catalog_trace *trace),
                              void *context, struct tl_fail *fail);
int tl_sql_catalog_by_content(struct tl_catalog *catalog, const char *content,
                              int (*each)(void *context, const struct tl_catalog_trace *trace),
                              void *context, struct tl_fail *fail);
int tl_sql_catalog_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                          struct tl_fail *fail);
int tl_sql_catalog_traces(struct tl_catalog *catalog,
                          int (*each)(void *context, const struct tl_catalog_trace *trace),
                          void *context, struct tl_fail *fail);
int tl_sql_catalog_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                             const char *value, struct tl_fail *fail);
int tl_sql_catalog_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                          struct tl_fail *fail);
int tl_sql_catalog_put_note(struct tl_catalog *catalog, const char *trace,
                            const struct tl_note *note, struct tl_fail *fail);
int tl_sql_catalog_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                               struct tl_fail *fail);
int tl_sql_catalog_notes(struct tl_catalog *catalog, const char *trace,
                         int (*each)(void *context, const struct tl_note *note), void *context,
                         struct tl_fail *fail);
int tl_sql_catalog_put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                              const struct tl_catalog_stream *stream, struct tl_fail *fail);
int tl_sql_catalog_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           int (*each)(void *context, const struct tl_catalog_stream *stream),
                           void *context, struct tl_fail *fail);
int tl_sql_catalog_add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                              const struct tl_catalog_shard *shards, size_t n,
                              struct tl_fail *fail);
int tl_sql_catalog_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                          uint64_t stream,
                          int (*each)(void *context, const struct tl_shard_row *row), void *context,
                          struct tl_fail *fail);
int tl_sql_catalog_summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                             uint64_t stream, uint64_t from, uint64_t to,
                             int (*each)(void *context, struct tl_bytes summary), void *context,
                             struct tl_fail *fail);
int tl_sql_catalog_check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                                 uint64_t stream, uint64_t number, bool *intact,
                                 struct tl_fail *fail);
int tl_sql_catalog_drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                               uint64_t stream, uint64_t from, struct tl_fail *fail);
int tl_sql_catalog_drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                               uint64_t other, struct tl_fail *fail);
int tl_sql_catalog_set_retention(struct tl_catalog *catalog, const char *scope,
                                 const struct tl_retention *rule, struct tl_fail *fail);
int tl_sql_catalog_retention(struct tl_catalog *catalog,
                             int (*each)(void *context, const char *scope,
                                         const struct tl_retention *rule),
                             void *context, struct tl_fail *fail);
int tl_sql_catalog_add_image(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                             struct tl_fail *fail);
int tl_sql_catalog_announce_image(struct tl_catalog *catalog, const char *hash,
                                  struct tl_fail *fail);
int tl_sql_catalog_remove_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail);
int tl_sql_catalog_images(struct tl_catalog *catalog,
                          int (*each)(void *context, const struct tl_catalog_image *image),
                          void *context, struct tl_fail *fail);

#endif
