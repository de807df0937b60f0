/* SPDX-License-Identifier: MIT */
/*
 * The catalog's rows that users write: labels and notes of traces, rules of retention. Nothing can
 * be decoded to make them anew, so a damaged one is told, never passed by.
 */
#include "catalog/catalog_sql.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The callback of an enumeration, and its context. */
struct call {
    union {
        tl_each_note *note;
        tl_each_rule *rule;
    };
    void *context;
};

/* ---- labels --------------------------------------------------------------------------------- */

#define SET_LABEL                                                                                  \
    "INSERT INTO labels(trace, key, value, crc) VALUES(?1,?2,?3,row_crc(?1,?2,?3))"                \
    " ON CONFLICT DO UPDATE SET value=excluded.value, crc=excluded.crc"

int tl_sql_insert_labels(struct tl_sql *c, const struct tl_catalog_trace *t, struct tl_fail *fail)
{
    sqlite3_stmt *s = NULL;
    char *const lines = strdup(t->labels);
    int r = lines ? tl_sql_prepare(c, &s, fail, SET_LABEL, "")
                  : tl_fail_set(fail, TL_NOMEM, "no memory");
    char *next = lines;
    for (char *line; r >= 0 && (line = strsep(&next, "\n"));) {
        char *const value = strchr(line, '=');
        if (!value)
            continue;
        *value = 0;
        r = tl_sql_bind(c, s, fail, "sss", t->id, line, value + 1);
        if (r >= 0)
            r = tl_sql_step(c, s, fail);
    }
    sqlite3_finalize(s);
    free(lines);
    return r;
}

int tl_sql_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                     const char *value, struct tl_fail *fail)
{
    if (*value)
        return tl_sql_run(catalog, NULL, fail, SET_LABEL, "sss", trace, key, value);
    return tl_sql_run(catalog, NULL, fail, "DELETE FROM labels WHERE trace=? AND key=?", "ss",
                      trace, key);
}

static int label_row(void *context, sqlite3_stmt *s)
{
    if (!sqlite3_column_int(s, 2))
        return TL_BAD;
    return tl_buf_printf(context, "%s=%s\n", tl_sql_text(s, 0), tl_sql_text(s, 1));
}

int tl_sql_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                  struct tl_fail *fail)
{
    const int r = tl_sql_each(catalog, label_row, out, fail,
                              "SELECT key, value, crc = row_crc(" TL_LABEL_COLUMNS ")"
                              " FROM labels WHERE trace=? ORDER BY key",
                              "s", trace);
    return r == TL_BAD ? tl_sql_say_damaged(trace, fail) : r;
}

/* ---- notes ---------------------------------------------------------------------------------- */

int tl_sql_put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                    struct tl_fail *fail)
{
    return tl_sql_run(
        catalog, NULL, fail,
        "INSERT INTO notes(trace, id, stream, at, until, has_time, time, time_until, created_ns,"
        " updated_ns, text, crc) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,"
        " row_crc(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)) ON CONFLICT DO UPDATE SET"
        " stream=excluded.stream, at=excluded.at, until=excluded.until,"
        " has_time=excluded.has_time, time=excluded.time, time_until=excluded.time_until,"
        " updated_ns=excluded.updated_ns, text=excluded.text, crc=row_crc(trace, id,"
        " excluded.stream, excluded.at, excluded.until, excluded.has_time, excluded.time,"
        " excluded.time_until, created_ns, excluded.updated_ns, excluded.text)",
        "sisiiiiiiis", trace, note->id, note->stream, note->at, note->to, (uint64_t)note->has_time,
        note->time, note->time_to, (uint64_t)note->created_ns, (uint64_t)note->updated_ns,
        note->text);
}

int tl_sql_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                       struct tl_fail *fail)
{
    int removed = 0;
    const int r = tl_sql_run(catalog, &removed, fail, "DELETE FROM notes WHERE trace=? AND id=?",
                             "si", trace, id);
    return r >= 0 && !removed
               ? tl_fail_set(fail, TL_NOTFOUND, "there is no note %llu", (unsigned long long)id)
               : r;
}

static int note_row(void *context, sqlite3_stmt *s)
{
    const struct call *call = context;
    if (!sqlite3_column_int(s, 10))
        return TL_BAD;
    struct tl_note note = {.id = tl_sql_u64(s, 0),
                           .at = tl_sql_u64(s, 2),
                           .to = tl_sql_u64(s, 3),
                           .has_time = sqlite3_column_int(s, 4) != 0,
                           .time = tl_sql_u64(s, 5),
                           .time_to = tl_sql_u64(s, 6),
                           .created_ns = sqlite3_column_int64(s, 7),
                           .updated_ns = sqlite3_column_int64(s, 8)};
    snprintf(note.stream, sizeof note.stream, "%s", tl_sql_text(s, 1));
    snprintf(note.text, sizeof note.text, "%s", tl_sql_text(s, 9));
    return call->note(call->context, &note);
}

int tl_sql_notes(struct tl_catalog *catalog, const char *trace,
                 int (*each)(void *context, const struct tl_note *note), void *context,
                 struct tl_fail *fail)
{
    struct call call = {.note = each, .context = context};
    const int r =
        tl_sql_each(catalog, note_row, &call, fail,
                    "SELECT id, stream, at, until, has_time, time, time_until, created_ns,"
                    " updated_ns, text, crc = row_crc(" TL_NOTE_COLUMNS ")"
                    " FROM notes WHERE trace=? ORDER BY id",
                    "s", trace);
    return r == TL_BAD ? tl_sql_say_damaged(trace, fail) : r;
}

/* ---- retention ----------------------------------------------------------------------------- */

int tl_sql_set_retention(struct tl_catalog *catalog, const char *scope,
                         const struct tl_retention *rule, struct tl_fail *fail)
{
    if (rule)
        return tl_sql_run(catalog, NULL, fail,
                          "INSERT OR REPLACE INTO retention(" TL_RULE_COLUMNS ", crc)"
                          " VALUES(?1,?2,?3,?4,?5,row_crc(?1,?2,?3,?4,?5))",
                          "siiii", scope, rule->raw_age_s, rule->raw_bytes, rule->decoded_age_s,
                          rule->decoded_bytes);
    return tl_sql_run(catalog, NULL, fail, "DELETE FROM retention WHERE scope=?", "s", scope);
}

static int retention_row(void *context, sqlite3_stmt *s)
{
    const struct call *call = context;
    if (!sqlite3_column_int(s, 5))
        return TL_BAD;
    const struct tl_retention rule = {tl_sql_u64(s, 1), tl_sql_u64(s, 2), tl_sql_u64(s, 3),
                                      tl_sql_u64(s, 4)};
    return call->rule(call->context, tl_sql_text(s, 0), &rule);
}

int tl_sql_retention(struct tl_catalog *catalog, tl_each_rule *each, void *context,
                     struct tl_fail *fail)
{
    struct call call = {.rule = each, .context = context};
    const int r = tl_sql_each(catalog, retention_row, &call, fail,
                              "SELECT " TL_RULE_COLUMNS ", crc = row_crc(" TL_RULE_COLUMNS ")"
                              " FROM retention ORDER BY scope",
                              "");
    return r == TL_BAD ? tl_fail_set(fail, TL_BAD,
                                     "a rule of retention is damaged in the catalog: nothing is "
                                     "removed; `tracelake verify --all --repair` drops it")
                       : r;
}
