/* SPDX-License-Identifier: MIT */
/*
 * Opens and checks the SQLite catalog, and runs its statements and transactions. A commit
 * is refused if the lease was lost meanwhile, because another server may then write the same rows.
 */
#include "catalog/catalog_sql.h"

#include "base/cancel.h"
#include "base/recent.h"
#include "store/reserve.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- SQLite, wrapped ------------------------------------------------------------------------ */

/* The medium refused something. Rebuilding the catalog would not help. */
static int refused(struct tl_fail *fail, enum tl_err code, const char *why)
{
    return tl_fail_set(fail, code, "the catalog refused: %.100s%s", why,
                       code == TL_NOSPACE ? TL_SPACE_ADVICE
                       : code == TL_IO    ? "; the disk of the data folder fails or went away: see "
                                            "the system's log"
                                          : "");
}

int tl_sql_failed(struct tl_sql *c, struct tl_fail *fail)
{
    const int code = sqlite3_extended_errcode(c->db);
    enum tl_err mapped = TL_IO;
    errno = sqlite3_system_errno(c->db);
    switch (code & 255) {
    case SQLITE_FULL:
        mapped = TL_NOSPACE;
        errno = ENOSPC;
        break;
    case SQLITE_NOMEM:
        mapped = TL_NOMEM;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return tl_fail_set(fail, TL_BAD,
                           "the catalog is damaged (%s); start once with --rebuild-catalog",
                           sqlite3_errmsg(c->db));
    default:
        if (errno == ENOSPC || errno == EDQUOT)
            mapped = TL_NOSPACE;
        break;
    }
    return refused(fail, mapped, sqlite3_errmsg(c->db));
}

static int bind_all(sqlite3_stmt *s, const char *types, va_list args)
{
    int r = SQLITE_OK;
    for (int i = 0; types[i] && r == SQLITE_OK; i++) {
        if (types[i] == 's') {
            const char *text = va_arg(args, const char *);
            r = sqlite3_bind_text(s, i + 1, text ? text : "", -1, SQLITE_TRANSIENT);
        } else if (types[i] == 'b') {
            const struct tl_bytes *bytes = va_arg(args, const struct tl_bytes *);
            r = sqlite3_bind_blob64(s, i + 1, bytes->n ? (const void *)bytes->p : "", bytes->n,
                                    SQLITE_TRANSIENT);
        } else {
            r = sqlite3_bind_int64(s, i + 1, (sqlite3_int64)va_arg(args, uint64_t));
        }
    }
    return r;
}

static int prepare(struct tl_sql *c, sqlite3_stmt **out, struct tl_fail *fail, const char *sql,
                   const char *types, va_list args)
{
    *out = NULL;
    if (sqlite3_prepare_v2(c->db, sql, -1, out, NULL) != SQLITE_OK ||
        bind_all(*out, types, args) != SQLITE_OK) {
        const int r = tl_sql_failed(c, fail);
        sqlite3_finalize(*out);
        *out = NULL;
        return r;
    }
    return TL_OK;
}

/* Take the statement of an earlier call out of those that are kept, NULL: none. */
static sqlite3_stmt *take_kept(struct tl_sql *c, const char *sql)
{
    for (size_t i = 0; i < TL_SQL_KEPT && c->kept[i]; i++) {
        sqlite3_stmt *s = c->kept[i];
        if (strcmp(sqlite3_sql(s), sql) != 0)
            continue;
        tl_recent_take(c->kept, sizeof s, TL_SQL_KEPT, i, &s);
        return s;
    }
    return NULL;
}

/* Keep a statement for the next call with its text, in place of the one that was used the longest
 * time ago. */
static void keep(struct tl_sql *c, sqlite3_stmt *s)
{
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    sqlite3_stmt *last;
    tl_recent_put(c->kept, sizeof s, TL_SQL_KEPT, &s, &last);
    sqlite3_finalize(last);
}

static void drop_kept(struct tl_sql *c)
{
    for (size_t i = 0; i < TL_SQL_KEPT; i++) {
        sqlite3_finalize(c->kept[i]);
        c->kept[i] = NULL;
    }
}

/* As prepare(), without compiling what was compiled before; ended by end_use(). */
static int begin_use(struct tl_sql *c, sqlite3_stmt **out, struct tl_fail *fail, const char *sql,
                     const char *types, va_list args)
{
    *out = take_kept(c, sql);
    if (!*out)
        return prepare(c, out, fail, sql, types, args);
    return bind_all(*out, types, args) == SQLITE_OK ? TL_OK : tl_sql_failed(c, fail);
}

static void end_use(struct tl_sql *c, sqlite3_stmt *s, int result)
{
    if (result < 0)
        sqlite3_finalize(s);
    else
        keep(c, s);
}

int tl_sql_prepare(struct tl_sql *c, sqlite3_stmt **out, struct tl_fail *fail, const char *sql,
                   const char *types, ...)
{
    va_list args;
    va_start(args, types);
    const int r = prepare(c, out, fail, sql, types, args);
    va_end(args);
    return r;
}

int tl_sql_bind(struct tl_sql *c, sqlite3_stmt *s, struct tl_fail *fail, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    sqlite3_reset(s); /* its error has already been reported */
    const int r = bind_all(s, types, args);
    va_end(args);
    return r == SQLITE_OK ? TL_OK : tl_sql_failed(c, fail);
}

int tl_sql_execute(struct tl_sql *c, const char *sql, struct tl_fail *fail)
{
    return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK ? TL_OK : tl_sql_failed(c, fail);
}

/* Something is going to be written. */
static void need_space(struct tl_sql *c)
{
    if (c->backend->ops->give_space)
        c->backend->ops->give_space(c->backend);
}

/* Note whether the medium has taken a change; returns the result. The lock must be held. */
static int noted(struct tl_sql *c, int r)
{
    const int error = r < 0 ? sqlite3_errcode(c->db) & 255 : SQLITE_OK;
    if (r >= 0)
        atomic_store(&c->trouble, TL_OK);
    else if (r == TL_NOSPACE || error == SQLITE_IOERR || error == SQLITE_READONLY ||
             error == SQLITE_CANTOPEN)
        atomic_store(&c->trouble, r);
    return r;
}

int tl_sql_catalog_writable(struct tl_catalog *catalog, struct tl_fail *fail)
{
    const int trouble = atomic_load(&tl_sql_of(catalog)->trouble);
    return trouble < 0 ? refused(fail, (enum tl_err)trouble, "its last change failed") : TL_OK;
}

int tl_sql_begin(struct tl_sql *c, struct tl_fail *fail)
{
    need_space(c);
    pthread_mutex_lock(&c->lock);
    const int r = tl_sql_execute(c, "BEGIN IMMEDIATE", fail);
    if (r < 0)
        pthread_mutex_unlock(&c->lock);
    return r;
}

int tl_sql_end(struct tl_sql *c, int result, struct tl_fail *fail)
{
    int r = result;
    if (r >= 0)
        r = noted(c, tl_sql_execute(c, "COMMIT", fail));
    if (r < 0)
        sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    pthread_mutex_unlock(&c->lock);
    return r < 0 ? r : TL_OK;
}

int tl_sql_step(struct tl_sql *c, sqlite3_stmt *s, struct tl_fail *fail)
{
    const int r = sqlite3_step(s);
    if (r == SQLITE_ROW)
        return 1;
    return r == SQLITE_DONE ? 0 : tl_sql_failed(c, fail);
}

int tl_sql_run(struct tl_catalog *catalog, int *changed, struct tl_fail *fail, const char *sql,
               const char *types, ...)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    sqlite3_stmt *s;
    va_list args;
    va_start(args, types);
    need_space(c);
    pthread_mutex_lock(&c->lock);
    int r = begin_use(c, &s, fail, sql, types, args);
    if (r >= 0)
        r = noted(c, tl_sql_step(c, s, fail));
    if (r >= 0 && changed)
        *changed = sqlite3_changes(c->db);
    end_use(c, s, r);
    pthread_mutex_unlock(&c->lock);
    va_end(args);
    return r;
}

int tl_sql_each(struct tl_catalog *catalog, int (*row)(void *context, sqlite3_stmt *statement),
                void *context, struct tl_fail *fail, const char *sql, const char *types, ...)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    sqlite3_stmt *s;
    va_list args;
    va_start(args, types);
    pthread_mutex_lock(&c->lock);
    int r = begin_use(c, &s, fail, sql, types, args);
    while (r >= 0 && (r = tl_sql_step(c, s, fail)) == 1)
        r = row(context, s);
    end_use(c, s, r);
    pthread_mutex_unlock(&c->lock);
    va_end(args);
    return r;
}

const char *tl_sql_text(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text ? text : "";
}

uint64_t tl_sql_u64(sqlite3_stmt *s, int column)
{
    return (uint64_t)sqlite3_column_int64(s, column);
}

struct tl_bytes tl_sql_bytes(sqlite3_stmt *s, int column)
{
    const uint8_t *p = sqlite3_column_blob(s, column);
    return (struct tl_bytes){p, p ? (size_t)sqlite3_column_bytes(s, column) : 0};
}

/* ---- opening -------------------------------------------------------------------------------- */

int tl_sql_catalog_ready(struct tl_catalog *catalog, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d", TL_SQL_APPLICATION);
    need_space(c);
    pthread_mutex_lock(&c->lock);
    const int r = noted(c, tl_sql_execute(c, sql, fail));
    c->fresh = c->fresh && r < 0;
    pthread_mutex_unlock(&c->lock);
    return r;
}

int tl_sql_catalog_clear(struct tl_catalog *catalog, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    pthread_mutex_lock(&c->lock);
    const int r = tl_sql_execute(c, "DELETE FROM traces; DELETE FROM images", fail);
    pthread_mutex_unlock(&c->lock);
    return r;
}

#define CHECK_STEPS 10000 /* of SQLite's virtual machine: well below a millisecond */

static int on_progress(void *context)
{
    return tl_cancel_check() < 0;
}

static int check(struct tl_sql *c, const char *sql, tl_each_finding *each, void *context,
                 struct tl_fail *fail)
{
    sqlite3_stmt *s;
    pthread_mutex_lock(&c->lock);
    sqlite3_progress_handler(c->db, CHECK_STEPS, on_progress, NULL);
    int r = tl_sql_prepare(c, &s, fail, sql, "");
    while (r >= 0 && (r = tl_sql_step(c, s, fail)) == 1) {
        const char *text = tl_sql_text(s, 0);
        r = strcmp(text, "ok") == 0 ? TL_OK : each(context, text);
    }
    sqlite3_finalize(s);
    sqlite3_progress_handler(c->db, 0, NULL, NULL);
    pthread_mutex_unlock(&c->lock);
    if (r < 0 && tl_cancel_check() < 0)
        return TL_CANCELLED;
    return r < 0 ? r : TL_OK;
}

int tl_sql_open_reader(struct tl_sql *own, const struct tl_sql *c, struct tl_fail *fail)
{
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    *own = (struct tl_sql){.backend = c->backend};
    pthread_mutex_init(&own->lock, NULL);
    if (sqlite3_open_v2(c->backend->ops->catalog_uri(c->backend), &own->db, flags, NULL) !=
        SQLITE_OK)
        return tl_sql_failed(own, fail);
    sqlite3_busy_timeout(own->db, 5000);
    return TL_OK;
}

void tl_sql_close_reader(struct tl_sql *own)
{
    sqlite3_close(own->db);
    pthread_mutex_destroy(&own->lock);
}

int tl_sql_catalog_check(struct tl_catalog *catalog, bool whole, tl_each_finding *each,
                         void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct tl_sql own;
    if (!whole || c->exclusive)
        return check(c, whole ? "PRAGMA integrity_check" : "PRAGMA quick_check(1)", each, context,
                     fail);
    int r = tl_sql_open_reader(&own, c, fail);
    if (r >= 0)
        r = check(&own, "PRAGMA integrity_check", each, context, fail);
    tl_sql_close_reader(&own);
    return r;
}

bool tl_sql_catalog_fresh(const struct tl_catalog *catalog)
{
    const struct tl_sql *c = (const struct tl_sql *)catalog;
    return c->fresh;
}

static int damaged(void *context, const char *finding)
{
    static const char mark[] = "error code=";
    const char *const code = strstr(finding, mark);
    const int error = code ? atoi(code + sizeof mark - 1) & 255 : SQLITE_OK;
    if (error == SQLITE_IOERR) /* a page could not be read */
        return refused(context, TL_IO, finding);
    if (error == SQLITE_NOMEM)
        return tl_fail_set(context, TL_NOMEM, "no memory");
    return tl_fail_set(context, TL_BAD,
                       "the catalog is damaged (%.100s); start once with --rebuild-catalog",
                       finding);
}

/* A result != 0 turns the commit into a rollback. */
static int on_commit(void *context)
{
    const struct tl_sql *c = context;
    return !c->backend->ops->may_commit(c->backend);
}

void tl_sql_catalog_close(struct tl_catalog *catalog)
{
    struct tl_sql *c = tl_sql_of(catalog);
    drop_kept(c);
    sqlite3_close(c->db);
    pthread_mutex_destroy(&c->lock);
    tl_buf_fini(&c->damaged);
    free(c);
}

/* Open the database. `exclusive`: only for this connection, which needs no file for what
 * connections share. */
static int open_database(struct tl_sql *c, bool exclusive, struct tl_fail *fail)
{
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    c->exclusive = exclusive;
    if (sqlite3_open_v2(c->backend->ops->catalog_uri(c->backend), &c->db, flags, NULL) != SQLITE_OK)
        return tl_sql_failed(c, fail);
    sqlite3_busy_timeout(c->db, 5000);
    sqlite3_commit_hook(c->db, on_commit, c);
    const int r = exclusive ? tl_sql_execute(c, "PRAGMA locking_mode=EXCLUSIVE", fail) : TL_OK;
    return r < 0 ? r
                 : tl_sql_execute(c,
                                  "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                                  "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY",
                                  fail);
}

int tl_sql_catalog_open(struct tl_catalog **out, struct tl_backend *backend, struct tl_fail *fail)
{
    struct tl_sql *c = calloc(1, sizeof(*c));
    if (!c)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    c->base.ops = &tl_sql_catalog_ops;
    pthread_mutex_init(&c->lock, NULL);
    c->backend = backend;
    int r = open_database(c, false, fail);
    if (r == TL_NOSPACE) { /* it must be possible to remove traces */
        sqlite3_close(c->db);
        r = open_database(c, true, fail);
    }
    if (r >= 0)
        r = tl_sql_catalog_check(&c->base, false, damaged, fail, fail);
    if (r >= 0)
        r = tl_sql_add_sums(c, fail);
    if (r >= 0)
        r = tl_sql_migrate(c, fail);
    if (r >= 0)
        r = tl_sql_check_schema(c, fail);
    if (r >= 0)
        r = tl_sql_check_sums(c, fail);
    if (r < 0) {
        tl_sql_catalog_close(&c->base);
        return r;
    }
    *out = &c->base;
    return TL_OK;
}
