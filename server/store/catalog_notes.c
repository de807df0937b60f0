/* SPDX-License-Identifier: MIT */
/* Notes of traces in the catalog. */
#include "store/catalog_sql.h"

#include <stdio.h>

int tl_sql_catalog_put_note(struct tl_catalog *catalog, const char *trace,
                            const struct tl_note *note, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(
        c, fail,
        "INSERT INTO notes(trace, id, stream, at, until, has_time, time, time_until, created_ns,"
        " updated_ns, text) VALUES(?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET"
        " stream=excluded.stream, at=excluded.at, until=excluded.until,"
        " has_time=excluded.has_time, time=excluded.time, time_until=excluded.time_until,"
        " updated_ns=excluded.updated_ns, text=excluded.text",
        "sisiiiiiiis", trace, note->id, note->stream, note->at, note->to, (uint64_t)note->has_time,
        note->time, note->time_to, (uint64_t)note->created_ns, (uint64_t)note->updated_ns,
        note->text);
    return r < 0 ? r : TL_OK;
}

int tl_sql_catalog_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                               struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(c, fail, "DELETE FROM notes WHERE trace=? AND id=?", "si", trace, id);
    return r == 0  ? tl_fail_set(fail, TL_NOTFOUND, "there is no note %llu", (unsigned long long)id)
           : r < 0 ? r
                   : TL_OK;
}

struct note_call {
    int (*each)(void *context, const struct tl_note *note);
    void *context;
};

static int note_row(void *context, sqlite3_stmt *s)
{
    const struct note_call *call = context;
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
    return call->each(call->context, &note);
}

int tl_sql_catalog_notes(struct tl_catalog *catalog, const char *trace,
                         int (*each)(void *context, const struct tl_note *note), void *context,
                         struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct note_call call = {each, context};
    return tl_sql_each(c, note_row, &call, fail,
                       "SELECT id, stream, at, until, has_time, time, time_until, created_ns,"
                       " updated_ns, text FROM notes WHERE trace=? ORDER BY id",
                       "s", trace);
}
