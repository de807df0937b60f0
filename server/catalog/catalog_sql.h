/* SPDX-License-Identifier: MIT */
/* Thin SQLite wrapper for the catalog's files. */
#ifndef TL_CATALOG_CATALOG_SQL_H
#define TL_CATALOG_CATALOG_SQL_H

#include "catalog/catalog.h"
#include "lake_rows.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

#define TL_SQL_KEPT 16

struct tl_sql {
    struct tl_catalog base;
    sqlite3 *db;
    pthread_mutex_t lock;
    struct tl_backend *backend;
    bool fresh;         /* created by this open */
    bool exclusive;     /* no other connection can be opened */
    atomic_int trouble; /* error of the last change if the medium refused it, otherwise TL_OK */
    /* Compiled statements of tl_sql_run() and tl_sql_each() that are not in use, the last used one
     * first: compiling one takes longer than most take to run. See `lock`. */
    sqlite3_stmt *kept[TL_SQL_KEPT];
    struct tl_buf damaged; /* names of traces with damaged rows, NUL-terminated; see `lock` */
    bool lost;             /* when they were looked for, a row was of no trace that exists */
};

/* What the checksum of a row covers. */
#define TL_TRACE_COLUMNS                                                                           \
    "id, rig, format, setup, state, complete, created_ns, updated_ns, raw_bytes, decoded_bytes,"   \
    " generation, wanted, message, raw_removed, decoded_removed, earlier, content, insns,"         \
    " stored_bytes"
#define TL_LABEL_COLUMNS  "trace, key, value"
#define TL_STREAM_COLUMNS "trace, generation, number, name, protocol, lost_bytes, clock"
#define TL_SHARD_COLUMNS                                                                           \
    "trace, generation, stream, number, first, n, markers, byte_first, byte_last, events, gaps,"   \
    " anchors, position_first, time_first, position_last, time_last, size, begin, summary_crc"
#define TL_IMAGE_COLUMNS "hash, name, build_id, size, created_ns, announced"
#define TL_NOTE_COLUMNS                                                                            \
    "trace, id, stream, at, until, has_time, time, time_until, created_ns, updated_ns, text"
#define TL_RULE_COLUMNS "scope, raw_age_s, raw_bytes, decoded_age_s, decoded_bytes"

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
/* Begin a transaction, and acquire the lock for it. After an error there is none, and no lock. */
TL_MUST_USE int tl_sql_begin(struct tl_sql *c, struct tl_fail *fail);
/* End the transaction: commit, or roll back if `result` < 0 or the commit fails; release the lock.
 * Returns the reason for the rollback, or TL_OK. */
TL_MUST_USE int tl_sql_end(struct tl_sql *c, int result, struct tl_fail *fail);
/* Run a statement without rows, under the lock. `changed` (may be NULL) receives the number of
 * changed rows. */
TL_MUST_USE int tl_sql_run(struct tl_catalog *catalog, int *changed, struct tl_fail *fail,
                           const char *sql, const char *types, ...);
/* Run a statement under the lock, and call `row` with each row; a result < 0 of it ends the call
 * and is returned. */
TL_MUST_USE int tl_sql_each(struct tl_catalog *catalog,
                            int (*row)(void *context, sqlite3_stmt *statement), void *context,
                            struct tl_fail *fail, const char *sql, const char *types, ...);
/* A connection of its own, for what takes long, so that others can read and write meanwhile: not if
 * `c->exclusive`. It is not used with tl_sql_each() or _run(). Close it also after an error. */
TL_MUST_USE int tl_sql_open_reader(struct tl_sql *own, const struct tl_sql *c,
                                   struct tl_fail *fail);
void tl_sql_close_reader(struct tl_sql *own);
/* Run statements that have no values. The lock must be held, or `c` be of one thread. */
TL_MUST_USE int tl_sql_execute(struct tl_sql *c, const char *sql, struct tl_fail *fail);
/* Step to the next row: 1, or 0 at the end. */
TL_MUST_USE int tl_sql_step(struct tl_sql *c, sqlite3_stmt *statement, struct tl_fail *fail);

/* Read a column; text is "" for NULL. */
const char *tl_sql_text(sqlite3_stmt *statement, int column);
uint64_t tl_sql_u64(sqlite3_stmt *statement, int column);
struct tl_bytes tl_sql_bytes(sqlite3_stmt *statement, int column);

/* Functions of catalog.h: those on rows are in catalog_rows.c, with this table; those on the whole
 * database in catalog_sql.c. */
extern const struct tl_catalog_ops tl_sql_catalog_ops;
bool tl_sql_catalog_fresh(const struct tl_catalog *catalog);
int tl_sql_catalog_ready(struct tl_catalog *catalog, struct tl_fail *fail);
int tl_sql_catalog_writable(struct tl_catalog *catalog, struct tl_fail *fail);
int tl_sql_catalog_clear(struct tl_catalog *catalog, struct tl_fail *fail);
int tl_sql_catalog_check(struct tl_catalog *catalog, bool whole, tl_each_finding *each,
                         void *context, struct tl_fail *fail);
void tl_sql_catalog_close(struct tl_catalog *catalog);

/* catalog_schema.c */
/* "TLLK": the catalog has been filled once, so what is not in it does not exist. Catalogs of
 * version 1 do not have this mark, and are filled. */
#define TL_SQL_APPLICATION 0x544c4c4b
/* Bring the database to the present version. TL_UNSUPPORTED: it has a later one. */
TL_MUST_USE int tl_sql_migrate(struct tl_sql *c, struct tl_fail *fail);
/* A changed schema gives other answers, or none: TL_BAD. */
TL_MUST_USE int tl_sql_check_schema(struct tl_sql *c, struct tl_fail *fail);

/* catalog_words.c */
/* Add the labels of a new trace, within a transaction. */
int tl_sql_insert_labels(struct tl_sql *c, const struct tl_catalog_trace *t, struct tl_fail *fail);
int tl_sql_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                     const char *value, struct tl_fail *fail);
int tl_sql_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                  struct tl_fail *fail);
int tl_sql_put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                    struct tl_fail *fail);
int tl_sql_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                       struct tl_fail *fail);
int tl_sql_notes(struct tl_catalog *catalog, const char *trace,
                 int (*each)(void *context, const struct tl_note *note), void *context,
                 struct tl_fail *fail);
int tl_sql_set_retention(struct tl_catalog *catalog, const char *scope,
                         const struct tl_retention *rule, struct tl_fail *fail);
int tl_sql_retention(struct tl_catalog *catalog, tl_each_rule *each, void *context,
                     struct tl_fail *fail);

/* catalog_sums.c */
/* Define row_crc() for the connection. */
TL_MUST_USE int tl_sql_add_sums(struct tl_sql *c, struct tl_fail *fail);
/* Check all rows and indexes. TL_BAD: the rows' owners are not known. */
TL_MUST_USE int tl_sql_check_sums(struct tl_sql *c, struct tl_fail *fail);
/* Does the trace have damaged rows, as known? The lock must be held. */
bool tl_sql_is_damaged(const struct tl_sql *c, const char *trace);
/* TL_BAD, with advice. */
int tl_sql_say_damaged(const char *trace, struct tl_fail *fail);
int tl_sql_catalog_damaged(struct tl_catalog *catalog, const char *trace, tl_each_damaged *each,
                           void *context, struct tl_fail *fail);
int tl_sql_catalog_purge(struct tl_catalog *catalog, const struct tl_catalog_damage *what,
                         struct tl_fail *fail);

#endif
