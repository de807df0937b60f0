/* SPDX-License-Identifier: MIT */
/*
 * The catalog's tables of traces, streams, shards and images. Each function is one transaction, so
 * that a crash leaves all of a change or none of it.
 */
#include "base/crc32c.h"
#include "base/now.h"
#include "catalog/catalog_sql.h"

#include <stdio.h>
#include <stdlib.h>

/* The callback of an enumeration, and its context. */
struct call {
    union {
        tl_each_trace *trace;
        tl_each_stream *stream;
        tl_each_shard *shard;
        tl_each_summary *summary;
        tl_each_image *image;
    };
    void *context;
    size_t n; /* traces so far */
    const struct tl_sql *sql;
    enum { REFUSE, PASS_BY, SHOW } damaged; /* what becomes of a damaged trace */
    char name[64];                          /* of a damaged one that was refused */
};

/* ---- traces -------------------------------------------------------------------------------- */

/* TL_EXISTS. */
static int insert_trace(struct tl_sql *c, const struct tl_catalog_trace *t, struct tl_fail *fail)
{
    sqlite3_stmt *s;
    int r = tl_sql_prepare(
        c, &s, fail,
        "INSERT INTO traces(id, rig, format, setup, state, complete, created_ns, updated_ns,"
        " raw_bytes, decoded_bytes, generation, wanted, message, raw_removed, decoded_removed, "
        "earlier, content, insns, stored_bytes, crc)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,"
        " row_crc(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19))"
        " ON CONFLICT DO NOTHING",
        "ssssiiiiiiiisiissii", t->id, t->rig, t->format, t->setup, (uint64_t)t->state,
        (uint64_t)t->complete, t->created_ns, t->updated_ns, t->raw_bytes, t->decoded_bytes,
        t->generation, t->wanted, t->message, (uint64_t)t->raw_removed,
        (uint64_t)t->decoded_removed, t->earlier ? t->earlier : "", t->content ? t->content : "",
        t->insns, t->stored_bytes);
    if (r >= 0)
        r = tl_sql_step(c, s, fail);
    if (r >= 0 && sqlite3_changes(c->db) == 0)
        r = tl_fail_set(fail, TL_EXISTS, "trace %s exists", t->id);
    sqlite3_finalize(s);
    return r;
}

static int add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                     struct tl_fail *fail)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    int r = tl_sql_begin(c, fail);
    if (r < 0)
        return r;
    r = insert_trace(c, t, fail);
    if (r >= 0 && t->labels && *t->labels)
        r = tl_sql_insert_labels(c, t, fail);
    return tl_sql_end(c, r, fail);
}

static int find(struct tl_catalog *catalog, const char *id, tl_each_trace *each, void *context,
                struct tl_fail *fail);

static int update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                        struct tl_fail *fail)
{
    int changed = 0;
    const int r = tl_sql_run(
        catalog, &changed, fail,
        "UPDATE traces SET format=?2, setup=?3, state=?4, complete=?5, updated_ns=?6, raw_bytes=?7,"
        " decoded_bytes=?8, generation=?9, wanted=?10, message=?11, raw_removed=?12,"
        " decoded_removed=?13, earlier=?14, content=?15, insns=?16, stored_bytes=?17,"
        " crc=row_crc(id, rig, ?2, ?3, ?4, ?5, created_ns, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,"
        " ?15, ?16, ?17) WHERE id=?1 AND crc=row_crc(" TL_TRACE_COLUMNS ")",
        "sssiiiiiiisiissii", t->id, t->format, t->setup, (uint64_t)t->state, (uint64_t)t->complete,
        t->updated_ns, t->raw_bytes, t->decoded_bytes, t->generation, t->wanted, t->message,
        (uint64_t)t->raw_removed, (uint64_t)t->decoded_removed, t->earlier ? t->earlier : "",
        t->content ? t->content : "", t->insns, t->stored_bytes);
    return r >= 0 && !changed ? find(catalog, t->id, NULL, NULL, fail) : r;
}

static int remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                         struct tl_fail *fail)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    sqlite3_stmt *s = NULL;
    int r = tl_sql_begin(c, fail);
    if (r < 0)
        return r;
    r = tl_sql_prepare(c, &s, fail, "DELETE FROM traces WHERE id=?", "");
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = tl_sql_bind(c, s, fail, "s", ids[i]);
        if (r >= 0)
            r = tl_sql_step(c, s, fail);
    }
    sqlite3_finalize(s);
    return tl_sql_end(c, r, fail);
}

static int damaged_trace(struct call *call, sqlite3_stmt *s)
{
    struct tl_fail why;
    snprintf(call->name, sizeof call->name, "%s", tl_sql_text(s, 0));
    (void)!tl_sql_say_damaged(call->name, &why);
    const struct tl_catalog_trace t = {.id = call->name,
                                       .rig = "-",
                                       .format = "",
                                       .setup = "",
                                       .message = why.text,
                                       .labels = "",
                                       .state = TL_TRACE_FAILED,
                                       .complete = true,
                                       .raw_removed = true,
                                       .created_ns = sqlite3_column_int64(s, 6),
                                       .updated_ns = sqlite3_column_int64(s, 6)};
    call->n++;
    return call->damaged == REFUSE    ? TL_BAD
           : call->damaged == PASS_BY ? TL_OK
                                      : call->trace(call->context, &t);
}

static int trace_row(void *context, sqlite3_stmt *s)
{
    struct call *call = context;
    if (!sqlite3_column_int(s, 21) || tl_sql_is_damaged(call->sql, tl_sql_text(s, 0)))
        return damaged_trace(call, s);
    const struct tl_catalog_trace t = {
        .id = tl_sql_text(s, 0),
        .rig = tl_sql_text(s, 1),
        .format = tl_sql_text(s, 2),
        .setup = tl_sql_text(s, 3),
        .state = sqlite3_column_int(s, 4),
        .complete = sqlite3_column_int(s, 5) != 0,
        .created_ns = sqlite3_column_int64(s, 6),
        .updated_ns = sqlite3_column_int64(s, 7),
        .raw_bytes = tl_sql_u64(s, 8),
        .decoded_bytes = tl_sql_u64(s, 9),
        .generation = tl_sql_u64(s, 10),
        .wanted = tl_sql_u64(s, 11),
        .message = tl_sql_text(s, 12),
        .labels = tl_sql_text(s, 13),
        .raw_removed = sqlite3_column_int(s, 14) != 0,
        .decoded_removed = sqlite3_column_int(s, 15) != 0,
        .earlier = tl_sql_text(s, 16),
        .content = tl_sql_text(s, 17),
        .notes = tl_sql_u64(s, 18),
        .insns = tl_sql_u64(s, 19),
        .stored_bytes = tl_sql_u64(s, 20),
    };
    call->n++;
    return call->trace ? call->trace(call->context, &t) : TL_OK;
}

#define TRACES                                                                                     \
    "SELECT id, rig, format, setup, state, complete, created_ns, updated_ns, raw_bytes,"           \
    " decoded_bytes, generation, wanted, message,"                                                 \
    " (SELECT group_concat(line, '') FROM (SELECT key || '=' || value || char(10) AS line"         \
    "  FROM labels WHERE trace = traces.id ORDER BY key)),"                                        \
    " raw_removed, decoded_removed, earlier, content,"                                             \
    " (SELECT count(*) FROM notes WHERE trace = traces.id), insns, stored_bytes,"                  \
    " crc = row_crc(" TL_TRACE_COLUMNS ") AND NOT EXISTS"                                          \
    " (SELECT 1 FROM labels WHERE trace = traces.id AND crc <> row_crc(" TL_LABEL_COLUMNS "))"     \
    " FROM traces"

static int traces(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                  struct tl_fail *fail)
{
    struct call call = {
        .trace = each, .context = context, .sql = tl_sql_of(catalog), .damaged = PASS_BY};
    return tl_sql_each(catalog, trace_row, &call, fail, TRACES " ORDER BY created_ns, id", "");
}

static int find(struct tl_catalog *catalog, const char *id, tl_each_trace *each, void *context,
                struct tl_fail *fail)
{
    struct call call = {.trace = each, .context = context, .sql = tl_sql_of(catalog)};
    const int r = tl_sql_each(catalog, trace_row, &call, fail, TRACES " WHERE id=?", "s", id);
    if (r == TL_BAD && call.name[0])
        return tl_sql_say_damaged(call.name, fail);
    if (r >= 0 && call.n == 0)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no trace %s", id);
    return r;
}

static int page(struct tl_catalog *catalog, const struct tl_trace_place *after, size_t most,
                tl_each_trace *each, void *context, struct tl_fail *fail)
{
    struct call call = {
        .trace = each, .context = context, .sql = tl_sql_of(catalog), .damaged = SHOW};
    const int r =
        after ? tl_sql_each(catalog, trace_row, &call, fail,
                            TRACES " WHERE created_ns <= ?1 AND (created_ns < ?1 OR id > ?2)"
                                   " ORDER BY created_ns DESC, id LIMIT ?3",
                            "isi", after->created_ns, after->id, (uint64_t)most)
              : tl_sql_each(catalog, trace_row, &call, fail,
                            TRACES " ORDER BY created_ns DESC, id LIMIT ?", "i", (uint64_t)most);
    return r < 0 ? r : call.n == most;
}

static int unfinished(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                      struct tl_fail *fail)
{
    struct call call = {
        .trace = each, .context = context, .sql = tl_sql_of(catalog), .damaged = PASS_BY};
    return tl_sql_each(catalog, trace_row, &call, fail, /* exactly the expression of its index */
                       TRACES " WHERE state < 2 OR"
                              " (complete = 1 AND raw_removed = 0 AND content = '')",
                       "");
}

static int by_content(struct tl_catalog *catalog, const char *content, tl_each_trace *each,
                      void *context, struct tl_fail *fail)
{
    struct call call = {.trace = each, .context = context, .sql = tl_sql_of(catalog)};
    const int r = tl_sql_each(catalog, trace_row, &call, fail,
                              TRACES " WHERE content = ? AND content <> ''"
                                     " ORDER BY created_ns DESC LIMIT 1",
                              "s", content);
    if (r == TL_BAD && call.name[0])
        return tl_sql_say_damaged(call.name, fail);
    return r < 0 ? r : call.n ? TL_OK : TL_NOTFOUND;
}

static int totals_row(void *context, sqlite3_stmt *s)
{
    struct tl_catalog_totals *out = context;
    const int state = sqlite3_column_int(s, 0) & 3;
    out->states[state] += tl_sql_u64(s, 1);
    if (state < TL_TRACE_SEALED)
        return TL_OK;
    out->raw_bytes += tl_sql_u64(s, 2);
    out->insns += tl_sql_u64(s, 3);
    out->stored_bytes += tl_sql_u64(s, 4);
    return TL_OK;
}

static int totals(struct tl_catalog *catalog, struct tl_catalog_totals *out, struct tl_fail *fail)
{
    *out = (struct tl_catalog_totals){0};
    return tl_sql_each(catalog, totals_row, out, fail,
                       "SELECT state, count(*), total(raw_bytes * (1 - raw_removed)),"
                       " total(insns), total(stored_bytes) FROM traces GROUP BY state",
                       "");
}

static int changes(struct tl_catalog *catalog, tl_each_change *each, void *context,
                   struct tl_fail *fail)
{
    (void)catalog, (void)each, (void)context;
    return tl_fail_set(fail, TL_UNSUPPORTED, "one process has this store");
}

/* ---- streams ------------------------------------------------------------------------------- */

static int put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                      const struct tl_catalog_stream *stream, struct tl_fail *fail)
{
    uint8_t clock[TL_CLOCK_RELATION_BYTES];
    const struct tl_bytes reported = {clock, stream->clock.pairs > 0 ? sizeof(clock) : 0};
    tl_clock_relation_put(&stream->clock, clock);
    return tl_sql_run(
        catalog, NULL, fail,
        "INSERT INTO streams(trace, generation, number, name, protocol, lost_bytes, clock, crc)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7,row_crc(?1,?2,?3,?4,?5,?6,?7))"
        " ON CONFLICT DO UPDATE SET name=excluded.name, protocol=excluded.protocol,"
        " lost_bytes=excluded.lost_bytes, clock=excluded.clock, crc=excluded.crc",
        "siisiib", trace, generation, stream->index, stream->name, (uint64_t)stream->protocol,
        stream->lost_bytes, &reported);
}

static int stream_row(void *context, sqlite3_stmt *s)
{
    const struct call *call = context;
    if (!sqlite3_column_int(s, 5))
        return TL_BAD;
    struct tl_catalog_stream stream = {.index = tl_sql_u64(s, 0),
                                       .name = tl_sql_text(s, 1),
                                       .protocol = sqlite3_column_int(s, 2),
                                       .lost_bytes = tl_sql_u64(s, 3)};
    tl_clock_relation_get(&stream.clock, tl_sql_bytes(s, 4));
    return call->stream(call->context, &stream);
}

static int streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                   tl_each_stream *each, void *context, struct tl_fail *fail)
{
    struct call call = {.stream = each, .context = context};
    const int r = tl_sql_each(catalog, stream_row, &call, fail,
                              "SELECT number, name, protocol, lost_bytes, clock,"
                              " crc = row_crc(" TL_STREAM_COLUMNS ") FROM streams"
                              " WHERE trace=? AND generation=? ORDER BY number",
                              "si", trace, generation);
    return r == TL_BAD ? tl_sql_say_damaged(trace, fail) : r;
}

/* ---- shards -------------------------------------------------------------------------------- */

static int add_shard(struct tl_sql *c, sqlite3_stmt *s, const char *trace, uint64_t generation,
                     const struct tl_catalog_shard *shard, struct tl_fail *fail)
{
    const struct tl_shard_row *const row = &shard->row;
    const struct tl_bytes summary = shard->summary;
    struct tl_buf begin = {0};
    int r = tl_flow_now_encode(&row->at, &begin);
    if (r < 0)
        return tl_fail_set(fail, r, "no memory");
    const struct tl_bytes begin_bytes = {begin.p, begin.n};
    r = tl_sql_bind(c, s, fail, "siiiiiiiiiiiiiiiibbi", trace, generation, shard->stream,
                    row->number, row->first, row->n, row->markers, row->byte_first, row->byte_last,
                    row->events, row->gaps, (uint64_t)row->anchors, row->anchor_first.position,
                    row->anchor_first.time, row->anchor_last.position, row->anchor_last.time,
                    row->size, &begin_bytes, &summary,
                    (uint64_t)tl_crc32c(0, summary.p, summary.n));
    tl_buf_fini(&begin);
    return r < 0 ? r : tl_sql_step(c, s, fail);
}

static int add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                      const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    sqlite3_stmt *s = NULL;
    int r = tl_sql_begin(c, fail);
    if (r < 0)
        return r;
    r = tl_sql_prepare(
        c, &s, fail,
        "INSERT OR REPLACE INTO shards(trace, generation, stream, number, first, n, markers,"
        " byte_first, byte_last, events, gaps, anchors, position_first, time_first,"
        " position_last, time_last, size, begin, summary, summary_crc, crc)"
        " VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20,"
        " row_crc(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?20))",
        "");
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = add_shard(c, s, trace, generation, &shards[i], fail);
    sqlite3_finalize(s);
    return tl_sql_end(c, r, fail);
}

static int shard_row(void *context, sqlite3_stmt *s)
{
    const struct call *call = context;
    if (!sqlite3_column_int(s, 15))
        return TL_BAD;
    struct tl_shard_row row = {
        .number = tl_sql_u64(s, 0),
        .first = tl_sql_u64(s, 1),
        .n = tl_sql_u64(s, 2),
        .markers = tl_sql_u64(s, 3),
        .byte_first = tl_sql_u64(s, 4),
        .byte_last = tl_sql_u64(s, 5),
        .events = tl_sql_u64(s, 6),
        .gaps = tl_sql_u64(s, 7),
        .anchors = (uint32_t)tl_sql_u64(s, 8),
        .anchor_first = {tl_sql_u64(s, 9), tl_sql_u64(s, 10)},
        .anchor_last = {tl_sql_u64(s, 11), tl_sql_u64(s, 12)},
        .size = tl_sql_u64(s, 13),
    };
    if (tl_flow_now_decode(&row.at, tl_sql_bytes(s, 14)) < 0)
        return TL_BAD;
    return call->shard(call->context, &row);
}

static int shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                  uint64_t stream, tl_each_shard *each, void *context, struct tl_fail *fail)
{
    struct call call = {.shard = each, .context = context};
    const int r = tl_sql_each(
        catalog, shard_row, &call, fail,
        "SELECT number, first, n, markers, byte_first, byte_last, events, gaps, anchors,"
        " position_first, time_first, position_last, time_last, size, begin,"
        " crc = row_crc(" TL_SHARD_COLUMNS ")"
        " FROM shards WHERE trace=? AND generation=? AND stream=? ORDER BY number",
        "sii", trace, generation, stream);
    return r == TL_BAD ? tl_sql_say_damaged(trace, fail) : r;
}

/* Version 1 stored no checksums: -1. */
static int intact_row(void *context, sqlite3_stmt *s)
{
    bool *const intact = context;
    const struct tl_bytes summary = tl_sql_bytes(s, 0);
    const int64_t crc = sqlite3_column_int64(s, 1);
    *intact = crc == -1 || crc == tl_crc32c(0, summary.p, summary.n);
    return TL_OK;
}

static int summary_row(void *context, sqlite3_stmt *s)
{
    const struct call *call = context;
    bool intact;
    if (intact_row(&intact, s) < 0 || !intact)
        return TL_BAD;
    return call->summary(call->context, tl_sql_bytes(s, 0));
}

static int summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                     uint64_t stream, uint64_t from, uint64_t to, tl_each_summary *each,
                     void *context, struct tl_fail *fail)
{
    struct call call = {.summary = each, .context = context};
    const int r =
        tl_sql_each(catalog, summary_row, &call, fail,
                    "SELECT summary, summary_crc FROM shards WHERE trace=? AND generation=?"
                    " AND stream=? AND number>=? AND number<? ORDER BY number",
                    "siiii", trace, generation, stream, from, to);
    return r == TL_BAD ? tl_sql_say_damaged(trace, fail) : r;
}

static int check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t stream, uint64_t number, bool *intact, struct tl_fail *fail)
{
    *intact = false;
    return tl_sql_each(catalog, intact_row, intact, fail,
                       "SELECT summary, summary_crc FROM shards WHERE trace=? AND generation=?"
                       " AND stream=? AND number=?",
                       "siii", trace, generation, stream, number);
}

/* Drop the shards and streams of the generations that `sql` matches, in one transaction. */
static int drop_generations(struct tl_catalog *catalog, const char *const sql[static 2],
                            const char *trace, uint64_t generation, uint64_t other,
                            struct tl_fail *fail)
{
    struct tl_sql *const c = tl_sql_of(catalog);
    int r = tl_sql_begin(c, fail);
    if (r < 0)
        return r;
    for (size_t i = 0; i < 2 && r >= 0; i++) {
        sqlite3_stmt *s = NULL;
        r = tl_sql_prepare(c, &s, fail, sql[i], "sii", trace, generation, other);
        if (r >= 0)
            r = tl_sql_step(c, s, fail);
        sqlite3_finalize(s);
    }
    return tl_sql_end(c, r, fail);
}

static int drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t stream, uint64_t from, struct tl_fail *fail)
{
    static const char *const sql[] = {"DELETE FROM shards WHERE trace=? AND generation IN (?,?)",
                                      "DELETE FROM streams WHERE trace=? AND generation IN (?,?)"};
    if (stream == UINT64_MAX)
        return drop_generations(catalog, sql, trace, generation, generation, fail);
    return tl_sql_run(catalog, NULL, fail,
                      "DELETE FROM shards WHERE trace=? AND generation=? AND stream=?"
                      " AND number>=?",
                      "siii", trace, generation, stream, from);
}

static int drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t other, struct tl_fail *fail)
{
    static const char *const sql[] = {
        "DELETE FROM shards WHERE trace=? AND generation NOT IN (?,?)",
        "DELETE FROM streams WHERE trace=? AND generation NOT IN (?,?)"};
    return drop_generations(catalog, sql, trace, generation, other, fail);
}

/* ---- images -------------------------------------------------------------------------------- */

static int add_image(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                     struct tl_fail *fail)
{
    return tl_sql_run(catalog, NULL, fail,
                      "INSERT INTO images(hash, name, build_id, size, created_ns, announced, crc)"
                      " VALUES(?1,?2,?3,?4,?5,0,row_crc(?1,?2,?3,?4,?5,0)) ON CONFLICT DO NOTHING",
                      "sssii", image->hash, image->name, image->build_id, image->size,
                      (uint64_t)tl_wall_ns());
}

static int image_row(void *context, sqlite3_stmt *s)
{
    struct call *const call = context;
    if (!sqlite3_column_int(s, 5)) {
        snprintf(call->name, sizeof call->name, "%.63s", tl_sql_text(s, 1));
        return TL_BAD;
    }
    const struct tl_catalog_image image = {.hash = tl_sql_text(s, 0),
                                           .name = tl_sql_text(s, 1),
                                           .build_id = tl_sql_text(s, 2),
                                           .size = tl_sql_u64(s, 3),
                                           .announced = sqlite3_column_int(s, 4) != 0};
    return call->image(call->context, &image);
}

static int images(struct tl_catalog *catalog, tl_each_image *each, void *context,
                  struct tl_fail *fail)
{
    struct call call = {.image = each, .context = context};
    const int r = tl_sql_each(catalog, image_row, &call, fail,
                              "SELECT hash, name, build_id, size, announced,"
                              " crc = row_crc(" TL_IMAGE_COLUMNS ")"
                              " FROM images ORDER BY created_ns, hash",
                              "");
    return r == TL_BAD
               ? tl_fail_set(fail, TL_BAD,
                             "the catalog's row of image %.63s is damaged; `tracelake verify --all "
                             "--repair` makes it anew",
                             call.name)
               : r;
}

static int announce_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    return tl_sql_run(catalog, NULL, fail,
                      "UPDATE images SET announced=1, crc=row_crc(hash, name, build_id, size,"
                      " created_ns, 1) WHERE hash=? AND crc=row_crc(" TL_IMAGE_COLUMNS ")",
                      "s", hash);
}

static int remove_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    return tl_sql_run(catalog, NULL, fail, "DELETE FROM images WHERE hash=?", "s", hash);
}

/* ---- the table of functions ----------------------------------------------------------------- */

const struct tl_catalog_ops tl_sql_catalog_ops = {
    .close = tl_sql_catalog_close,
    .fresh = tl_sql_catalog_fresh,
    .ready = tl_sql_catalog_ready,
    .writable = tl_sql_catalog_writable,
    .clear = tl_sql_catalog_clear,
    .check = tl_sql_catalog_check,
    .damaged = tl_sql_catalog_damaged,
    .purge = tl_sql_catalog_purge,
    .add_trace = add_trace,
    .update_trace = update_trace,
    .remove_traces = remove_traces,
    .page = page,
    .unfinished = unfinished,
    .by_content = by_content,
    .totals = totals,
    .traces = traces,
    .find = find,
    .changes = changes,
    .set_label = tl_sql_set_label,
    .labels = tl_sql_labels,
    .put_note = tl_sql_put_note,
    .remove_note = tl_sql_remove_note,
    .notes = tl_sql_notes,
    .put_stream = put_stream,
    .streams = streams,
    .add_shards = add_shards,
    .shards = shards,
    .summaries = summaries,
    .check_summary = check_summary,
    .drop_shards = drop_shards,
    .drop_others = drop_others,
    .set_retention = tl_sql_set_retention,
    .retention = tl_sql_retention,
    .add_image = add_image,
    .announce_image = announce_image,
    .remove_image = remove_image,
    .images = images,
};
