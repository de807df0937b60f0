/* SPDX-License-Identifier: MIT */
/*
 * The catalog's schema, as the steps that led to it: a database of any earlier version goes through
 * those that it lacks. What a database should look like follows from the same steps.
 */
#include "catalog/catalog_sql.h"

#include <stdio.h>
#include <string.h>

/* Each entry upgrades the schema from version i to i + 1. Entries are never changed, only added. */
static const char *const migrations[] = {
    "CREATE TABLE traces("
    " id TEXT PRIMARY KEY, rig TEXT NOT NULL, format TEXT NOT NULL, setup TEXT NOT NULL,"
    " state INTEGER NOT NULL, complete INTEGER NOT NULL, created_ns INTEGER NOT NULL,"
    " updated_ns INTEGER NOT NULL, raw_bytes INTEGER NOT NULL, decoded_bytes INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, wanted INTEGER NOT NULL, message TEXT NOT NULL);"
    "CREATE TABLE labels("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(trace, key)) WITHOUT ROWID;"
    "CREATE TABLE streams("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " generation INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL,"
    " protocol INTEGER NOT NULL, lost_bytes INTEGER NOT NULL,"
    " PRIMARY KEY(trace, generation, number)) WITHOUT ROWID;"
    "CREATE TABLE shards("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " generation INTEGER NOT NULL, stream INTEGER NOT NULL, number INTEGER NOT NULL,"
    " first INTEGER NOT NULL, n INTEGER NOT NULL,"
    " markers INTEGER NOT NULL, byte_first INTEGER NOT NULL, byte_last INTEGER NOT NULL,"
    " events INTEGER NOT NULL, gaps INTEGER NOT NULL, anchors INTEGER NOT NULL,"
    " position_first INTEGER NOT NULL, time_first INTEGER NOT NULL,"
    " position_last INTEGER NOT NULL, time_last INTEGER NOT NULL, size INTEGER NOT NULL,"
    " begin BLOB NOT NULL, summary BLOB NOT NULL,"
    " PRIMARY KEY(trace, generation, stream, number)) WITHOUT ROWID;"
    "CREATE TABLE images("
    " hash TEXT PRIMARY KEY, name TEXT NOT NULL, build_id TEXT NOT NULL, size INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL);",

    "ALTER TABLE traces ADD COLUMN raw_removed INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE traces ADD COLUMN decoded_removed INTEGER NOT NULL DEFAULT 0;"
    "CREATE TABLE retention("
    " scope TEXT PRIMARY KEY, raw_age_s INTEGER NOT NULL, raw_bytes INTEGER NOT NULL,"
    " decoded_age_s INTEGER NOT NULL, decoded_bytes INTEGER NOT NULL) WITHOUT ROWID;"
    "ALTER TABLE shards ADD COLUMN summary_crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE images ADD COLUMN announced INTEGER NOT NULL DEFAULT 1;",

    "ALTER TABLE traces ADD COLUMN earlier TEXT NOT NULL DEFAULT '';",

    "ALTER TABLE traces ADD COLUMN content TEXT NOT NULL DEFAULT '';",

    "CREATE TABLE notes("
    " trace TEXT NOT NULL REFERENCES traces(id) ON DELETE CASCADE,"
    " id INTEGER NOT NULL, stream TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL,"
    " has_time INTEGER NOT NULL, time INTEGER NOT NULL, time_until INTEGER NOT NULL,"
    " created_ns INTEGER NOT NULL, updated_ns INTEGER NOT NULL, text TEXT NOT NULL,"
    " PRIMARY KEY(trace, id)) WITHOUT ROWID;",

    "ALTER TABLE streams ADD COLUMN clock BLOB NOT NULL DEFAULT x'';",

    "ALTER TABLE traces ADD COLUMN insns INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE traces ADD COLUMN stored_bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE traces SET"
    " insns=(SELECT coalesce(sum(n), 0) FROM shards AS s JOIN streams AS m ON m.trace = s.trace"
    "  AND m.generation = s.generation AND m.number = s.stream WHERE s.trace = traces.id"
    "  AND s.generation = traces.generation AND m.name NOT LIKE 'thread.%'),"
    " stored_bytes=(SELECT coalesce(sum(size), 0) FROM shards AS s WHERE s.trace = traces.id"
    "  AND s.generation = traces.generation);"
    "CREATE INDEX traces_by_age ON traces(created_ns DESC, id);"
    "CREATE INDEX traces_by_content ON traces(content, created_ns) WHERE content <> '';"
    "CREATE INDEX traces_unfinished ON traces(id) WHERE state < 2 OR"
    " (complete = 1 AND raw_removed = 0 AND content = '');"
    "CREATE INDEX traces_totals ON traces(state, raw_removed, raw_bytes, insns, stored_bytes);",

    "ALTER TABLE traces ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE labels ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE streams ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE shards ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE images ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE notes ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "ALTER TABLE retention ADD COLUMN crc INTEGER NOT NULL DEFAULT -1;"
    "UPDATE traces SET crc = row_crc(" TL_TRACE_COLUMNS ");"
    "UPDATE labels SET crc = row_crc(" TL_LABEL_COLUMNS ");"
    "UPDATE streams SET crc = row_crc(" TL_STREAM_COLUMNS ");"
    "UPDATE shards SET crc = row_crc(" TL_SHARD_COLUMNS ");"
    "UPDATE images SET crc = row_crc(" TL_IMAGE_COLUMNS ");"
    "UPDATE notes SET crc = row_crc(" TL_NOTE_COLUMNS ");"
    "UPDATE retention SET crc = row_crc(" TL_RULE_COLUMNS ");",
};
#define SCHEMA ((int)(sizeof(migrations) / sizeof(*migrations)))

static int read_number(struct tl_sql *c, const char *sql, int *out, struct tl_fail *fail)
{
    sqlite3_stmt *s;
    int r = tl_sql_prepare(c, &s, fail, sql, "");
    if (r < 0)
        return r;
    r = tl_sql_step(c, s, fail);
    *out = r == 1 ? sqlite3_column_int(s, 0) : 0;
    sqlite3_finalize(s);
    return r < 0 ? r : TL_OK;
}

int tl_sql_migrate(struct tl_sql *c, struct tl_fail *fail)
{
    int version, r = read_number(c, "PRAGMA user_version", &version, fail);
    if (r < 0)
        return r;
    if (version < 0 || version > SCHEMA)
        return tl_fail_set(
            fail, TL_UNSUPPORTED,
            "the data folder was made by a newer tracelake (catalog version %d, this "
            "one knows %d)",
            version, SCHEMA);
    int mark;
    r = read_number(c, "PRAGMA application_id", &mark, fail);
    if (r < 0)
        return r;
    c->fresh = version != 1 && mark != TL_SQL_APPLICATION;
    for (int i = version; i < SCHEMA; i++) {
        char marks[128];
        snprintf(marks, sizeof(marks), "PRAGMA application_id=%d; PRAGMA user_version=%d",
                 c->fresh ? 0 : TL_SQL_APPLICATION, i + 1);
        r = tl_sql_begin(c, fail);
        if (r < 0)
            return r;
        r = tl_sql_execute(c, migrations[i], fail);
        if (r >= 0)
            r = tl_sql_execute(c, marks, fail);
        r = tl_sql_end(c, r, fail);
        if (r < 0)
            return r;
    }
    /* A full disk takes no change that is not needed. */
    return c->fresh || mark == TL_SQL_APPLICATION ? TL_OK : tl_sql_catalog_ready(&c->base, fail);
}

/* Append the text of the schema. */
static int read_schema(struct tl_sql *c, struct tl_buf *out, struct tl_fail *fail)
{
    sqlite3_stmt *s;
    int r = tl_sql_prepare(c, &s, fail,
                           "SELECT type || ' ' || name || ' ' || tbl_name || ' ' ||"
                           " coalesce(sql, '') FROM sqlite_schema ORDER BY 1",
                           "");
    while (r >= 0 && (r = tl_sql_step(c, s, fail)) == 1)
        r = tl_buf_printf(out, "%s\n", tl_sql_text(s, 0));
    sqlite3_finalize(s);
    return r;
}

/* The schema that the migrations lead to, made in memory. */
static int expect_schema(struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_sql own = {0};
    int r = sqlite3_open(":memory:", &own.db) == SQLITE_OK ? tl_sql_add_sums(&own, fail)
                                                           : tl_sql_failed(&own, fail);
    for (int i = 0; i < SCHEMA && r >= 0; i++)
        r = tl_sql_execute(&own, migrations[i], fail);
    if (r >= 0)
        r = read_schema(&own, out, fail);
    sqlite3_close(own.db);
    return r;
}

/* A changed schema gives other answers, or none. */
int tl_sql_check_schema(struct tl_sql *c, struct tl_fail *fail)
{
    struct tl_buf want = {0}, is = {0};
    int r = expect_schema(&want, fail);
    if (r >= 0)
        r = read_schema(c, &is, fail);
    if (r >= 0 && (is.n != want.n || memcmp(is.p, want.p, want.n) != 0))
        r = tl_fail_set(fail, TL_BAD,
                        "the catalog is damaged (its schema); start once with --rebuild-catalog");
    tl_buf_fini(&want);
    tl_buf_fini(&is);
    return r;
}
