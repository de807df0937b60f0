/* SPDX-License-Identifier: MIT */
/*
 * Checksums of rows. SQLite finds damaged pages only if their structure suffers: a changed value is
 * an answer like any other. So each row has a checksum of its values, which is compared when it is
 * read; and all are when the catalog is opened, since a changed key hides rows from their readers.
 */
#include "base/cancel.h"
#include "base/crc32c.h"
#include "catalog/catalog_sql.h"

#include <stdio.h>
#include <stdlib.h>

/* row_crc(values…): their types, sizes and bytes. */
static void row_crc(sqlite3_context *context, int n, sqlite3_value **values)
{
    uint32_t crc = 0;
    for (int i = 0; i < n; i++) {
        const int type = sqlite3_value_type(values[i]);
        uint8_t head[9] = {(uint8_t)type};
        if (type == SQLITE_INTEGER) {
            tl_put_le64(head + 1, (uint64_t)sqlite3_value_int64(values[i]));
            crc = tl_crc32c(crc, head, sizeof head);
            continue;
        }
        const void *const bytes = type == SQLITE_TEXT ? (const void *)sqlite3_value_text(values[i])
                                                      : sqlite3_value_blob(values[i]);
        const size_t size = bytes ? (size_t)sqlite3_value_bytes(values[i]) : 0;
        tl_put_le64(head + 1, size);
        crc = tl_crc32c(crc, head, sizeof head);
        crc = size > 0 ? tl_crc32c(crc, bytes, size) : crc;
    }
    sqlite3_result_int64(context, crc);
}

int tl_sql_add_sums(struct tl_sql *c, struct tl_fail *fail)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    return sqlite3_create_function(c->db, "row_crc", -1, flags, NULL, row_crc, NULL, NULL) ==
                   SQLITE_OK
               ? TL_OK
               : tl_sql_failed(c, fail);
}

#define OF_TRACE " AND trace = ?1"

/* ---- all rows ------------------------------------------------------------------------------- */

/* Tables, the trace that a row belongs to ("": none), and what to call it. Without `of`, a full
 * scan in each case: an index may lead past a row whose key is damaged. */
static const struct {
    const char *sql;
    const char *of; /* for the rows of trace ?1 alone, NULL: there are none */
    enum tl_damaged_table table;
} scans[] = {
    {"SELECT id, '', 1 FROM traces WHERE crc <> row_crc(" TL_TRACE_COLUMNS ")", " AND id = ?1",
     TL_DAMAGED_TRACE},
    {"SELECT trace, key, trace IN (SELECT id FROM traces) FROM labels"
     " WHERE crc <> row_crc(" TL_LABEL_COLUMNS ")",
     OF_TRACE, TL_DAMAGED_LABEL},
    {"SELECT trace, id, trace IN (SELECT id FROM traces) FROM notes"
     " WHERE crc <> row_crc(" TL_NOTE_COLUMNS ")",
     OF_TRACE, TL_DAMAGED_NOTE},
    {"SELECT trace, name, trace IN (SELECT id FROM traces) FROM streams"
     " WHERE crc <> row_crc(" TL_STREAM_COLUMNS ")",
     OF_TRACE, TL_DAMAGED_STREAM},
    {"SELECT trace, number, trace IN (SELECT id FROM traces) FROM shards"
     " WHERE crc <> row_crc(" TL_SHARD_COLUMNS ")",
     OF_TRACE, TL_DAMAGED_SHARD},
    {"SELECT '', hash, 1 FROM images WHERE crc <> row_crc(" TL_IMAGE_COLUMNS ")", NULL,
     TL_DAMAGED_IMAGE},
    {"SELECT '', scope, 1 FROM retention WHERE crc <> row_crc(" TL_RULE_COLUMNS ")", NULL,
     TL_DAMAGED_RULE},
};

struct scan {
    struct tl_buf ids; /* NUL-terminated */
    tl_each_damaged *each;
    void *context;
    enum tl_damaged_table table;
    bool lost; /* a row is of no trace that exists */
};

static int on_damaged(void *context, sqlite3_stmt *s)
{
    struct scan *const scan = context;
    const struct tl_catalog_damage damage = {
        .table = scan->table, .trace = tl_sql_text(s, 0), .key = tl_sql_text(s, 1)};
    scan->lost |= !sqlite3_column_int(s, 2);
    const int r =
        *damage.trace ? tl_buf_add(&scan->ids, damage.trace, strlen(damage.trace) + 1) : TL_OK;
    return r >= 0 && scan->each ? scan->each(scan->context, &damage) : r;
}

static int scan_table(struct tl_sql *from, size_t i, const char *trace, struct scan *scan,
                      struct tl_fail *fail)
{
    char sql[700];
    sqlite3_stmt *s;
    scan->table = scans[i].table;
    snprintf(sql, sizeof sql, "%s%s", scans[i].sql, *trace ? scans[i].of : "");
    int r = tl_sql_prepare(from, &s, fail, sql, *trace ? "s" : "", trace);
    while (r >= 0 && (r = tl_sql_step(from, s, fail)) == 1)
        r = on_damaged(scan, s);
    sqlite3_finalize(s);
    return r < 0 ? r : tl_cancel_check();
}

static int scan_tables(struct tl_sql *from, const char *trace, struct scan *scan,
                       struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t i = 0; i < sizeof scans / sizeof *scans && r >= 0; i++)
        if (!*trace || scans[i].of)
            r = scan_table(from, i, trace, scan, fail);
    return r;
}

/* The names known before, but for this one. */
static int keep_others(const struct tl_sql *c, const char *trace, struct scan *scan)
{
    int r = TL_OK;
    for (size_t at = 0, n; *trace && r >= 0 && at < c->damaged.n; at += n) {
        const char *const name = (const char *)c->damaged.p + at;
        n = strlen(name) + 1;
        if (strcmp(name, trace) != 0)
            r = tl_buf_add(&scan->ids, name, n);
    }
    return r;
}

static int scan_all(struct tl_sql *c, const char *trace, struct scan *scan, struct tl_fail *fail)
{
    struct tl_sql own;
    if (c->exclusive) {
        pthread_mutex_lock(&c->lock);
        const int r = scan_tables(c, trace, scan, fail);
        pthread_mutex_unlock(&c->lock);
        return r;
    }
    int r = tl_sql_open_reader(&own, c, fail);
    if (r >= 0)
        r = tl_sql_add_sums(&own, fail);
    if (r >= 0)
        r = scan_tables(&own, trace, scan, fail);
    tl_sql_close_reader(&own);
    return r;
}

int tl_sql_catalog_damaged(struct tl_catalog *catalog, const char *trace, tl_each_damaged *each,
                           void *context, struct tl_fail *fail)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    struct scan scan = {.each = each, .context = context};
    int r = scan_all(c, trace, &scan, fail);
    pthread_mutex_lock(&c->lock);
    if (r >= 0)
        r = keep_others(c, trace, &scan);
    if (r >= 0) {
        const struct tl_buf before = c->damaged;
        c->damaged = scan.ids;
        scan.ids = before;
        c->lost = scan.lost;
    }
    pthread_mutex_unlock(&c->lock);
    tl_buf_fini(&scan.ids);
    return r;
}

bool tl_sql_is_damaged(const struct tl_sql *c, const char *trace)
{
    for (size_t at = 0; at < c->damaged.n; at += strlen((char *)c->damaged.p + at) + 1)
        if (strcmp((char *)c->damaged.p + at, trace) == 0)
            return true;
    return false;
}

int tl_sql_say_damaged(const char *trace, struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_BAD,
                       "the catalog's rows of trace %.64s are damaged; `tracelake verify --repair "
                       "%.64s` makes them anew",
                       trace, trace);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Do the indexes of a table have all of its rows, and these values? */
static int check_indexes(struct tl_sql *c, const char *sql, bool *whole, struct tl_fail *fail)
{
    sqlite3_stmt *s;
    int r = tl_sql_prepare(c, &s, fail, sql, "");
    if (r >= 0)
        r = tl_sql_step(c, s, fail);
    *whole = r == 1 && strcmp(tl_sql_text(s, 0), "ok") == 0;
    sqlite3_finalize(s);
    return r < 0 ? r : TL_OK;
}

/* Indexes are derived from rows: damaged ones are made anew. */
static int mend_indexes(struct tl_sql *c, struct tl_fail *fail)
{
    static const char *const tables[][2] = {{"PRAGMA integrity_check(traces)", "REINDEX traces"},
                                            {"PRAGMA integrity_check(images)", "REINDEX images"}};
    int r = TL_OK;
    for (size_t i = 0; i < 2 && r >= 0; i++) {
        bool whole;
        r = check_indexes(c, tables[i][0], &whole, fail);
        if (r >= 0 && !whole)
            r = sqlite3_exec(c->db, tables[i][1], NULL, NULL, NULL) == SQLITE_OK
                    ? TL_OK
                    : tl_sql_failed(c, fail);
        if (r >= 0 && !whole)
            r = check_indexes(c, tables[i][0], &whole, fail);
        if (r >= 0 && !whole)
            r = tl_fail_set(fail, TL_BAD,
                            "the catalog is damaged; start once with --rebuild-catalog");
    }
    return r;
}

/* Is the trace one that the store knows? Otherwise its name may be what was damaged. */
static bool is_known(struct tl_sql *c, const char *trace)
{
    char key[80];
    uint64_t size;
    snprintf(key, sizeof key, "m/%.64s", trace);
    return c->backend->ops->size(c->backend, key, &size, NULL) >= 0;
}

int tl_sql_check_sums(struct tl_sql *c, struct tl_fail *fail)
{
    int r = mend_indexes(c, fail);
    if (r >= 0)
        r = tl_sql_catalog_damaged(&c->base, "", NULL, NULL, fail);
    bool lost = c->lost;
    for (size_t at = 0; r >= 0 && at < c->damaged.n; at += strlen((char *)c->damaged.p + at) + 1)
        lost = lost || !is_known(c, (char *)c->damaged.p + at);
    return r >= 0 && lost
               ? tl_fail_set(fail, TL_BAD,
                             "the catalog is damaged (it is not known of which traces some rows "
                             "are); start once with --rebuild-catalog")
               : r;
}

/* ---- repair --------------------------------------------------------------------------------- */

/* "+" has all rows looked at, whatever an index leads to. */
int tl_sql_catalog_purge(struct tl_catalog *catalog, const struct tl_catalog_damage *what,
                         struct tl_fail *fail)
{
    static const char *const of_trace[] = {
        "DELETE FROM labels WHERE +trace=?1",  "DELETE FROM notes WHERE +trace=?1",
        "DELETE FROM streams WHERE +trace=?1", "DELETE FROM shards WHERE +trace=?1",
        "DELETE FROM traces WHERE +id=?1",
    };
    struct tl_sql *const c = tl_sql_of(catalog);
    if (what->table == TL_DAMAGED_IMAGE)
        return tl_sql_run(catalog, NULL, fail, "DELETE FROM images WHERE +hash=?", "s", what->key);
    if (what->table == TL_DAMAGED_RULE)
        return tl_sql_run(catalog, NULL, fail, "DELETE FROM retention WHERE +scope=?", "s",
                          what->key);
    int r = tl_sql_begin(c, fail);
    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof of_trace / sizeof *of_trace && r >= 0; i++) {
        sqlite3_stmt *s = NULL;
        r = tl_sql_prepare(c, &s, fail, of_trace[i], "s", what->trace);
        if (r >= 0)
            r = tl_sql_step(c, s, fail);
        sqlite3_finalize(s);
    }
    return tl_sql_end(c, r, fail);
}
