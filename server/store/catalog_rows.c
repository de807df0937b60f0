/* SPDX-License-Identifier: MIT */
/* The catalog's tables, one function per transaction. */
#include "base/crc32c.h"
#include "store/catalog_sql.h"

#include <time.h>

/* ---- traces -------------------------------------------------------------------------------- */

int tl_sql_catalog_add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                             struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(
        c, fail,
        "INSERT INTO traces(id, rig, format, setup, state, complete, created_ns, updated_ns,"
        " raw_bytes, decoded_bytes, generation, wanted, message, raw_removed, decoded_removed, "
        "earlier, content, insns, stored_bytes)"
        " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
        "ssssiiiiiiiisiissii", t->id, t->rig, t->format, t->setup, (uint64_t)t->state,
        (uint64_t)t->complete, t->created_ns, t->updated_ns, t->raw_bytes, t->decoded_bytes,
        t->generation, t->wanted, t->message, (uint64_t)t->raw_removed,
        (uint64_t)t->decoded_removed, t->earlier ? t->earlier : "", t->content ? t->content : "",
        t->insns, t->stored_bytes);
    return r == 0 ? tl_fail_set(fail, TL_EXISTS, "trace %s exists", t->id) : r < 0 ? r : TL_OK;
}

int tl_sql_catalog_update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                                struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(
        c, fail,
        "UPDATE traces SET format=?2, setup=?3, state=?4, complete=?5, updated_ns=?6, raw_bytes=?7,"
        " decoded_bytes=?8, generation=?9, wanted=?10, message=?11, raw_removed=?12,"
        " decoded_removed=?13, earlier=?14, content=?15, insns=?16, stored_bytes=?17 WHERE id=?1",
        "sssiiiiiiisiissii", t->id, t->format, t->setup, (uint64_t)t->state, (uint64_t)t->complete,
        t->updated_ns, t->raw_bytes, t->decoded_bytes, t->generation, t->wanted, t->message,
        (uint64_t)t->raw_removed, (uint64_t)t->decoded_removed, t->earlier ? t->earlier : "",
        t->content ? t->content : "", t->insns, t->stored_bytes);
    return r == 0  ? tl_fail_set(fail, TL_NOTFOUND, "there is no trace %s", t->id)
           : r < 0 ? r
                   : TL_OK;
}

int tl_sql_catalog_remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                                 struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    sqlite3_stmt *s = NULL;
    pthread_mutex_lock(&c->lock);
    int r = tl_sql_begin(c, fail);
    if (r >= 0) {
        r = tl_sql_prepare(c, &s, fail, "DELETE FROM traces WHERE id=?", "");
        for (size_t i = 0; i < n && r >= 0; i++) {
            r = tl_sql_bind(c, s, fail, "s", ids[i]);
            if (r >= 0)
                r = tl_sql_step(c, s, fail);
        }
        sqlite3_finalize(s);
        r = tl_sql_end(c, r < 0 ? r : TL_OK, fail);
    }
    pthread_mutex_unlock(&c->lock);
    return r < 0 ? r : TL_OK;
}

struct trace_call {
    int (*each)(void *context, const struct tl_catalog_trace *trace);
    void *context;
};

static int trace_row(void *context, sqlite3_stmt *s)
{
    const struct trace_call *call = context;
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
    return call->each(call->context, &t);
}

#define TRACES                                                                                     \
    "SELECT id, rig, format, setup, state, complete, created_ns, updated_ns, raw_bytes,"           \
    " decoded_bytes, generation, wanted, message,"                                                 \
    " (SELECT group_concat(line, '') FROM (SELECT key || '=' || value || char(10) AS line"         \
    "  FROM labels WHERE trace = traces.id ORDER BY key)),"                                        \
    " raw_removed, decoded_removed, earlier, content,"                                             \
    " (SELECT count(*) FROM notes WHERE trace = traces.id), insns, stored_bytes"                   \
    " FROM traces"

int tl_sql_catalog_traces(struct tl_catalog *catalog,
                          int (*each)(void *context, const struct tl_catalog_trace *trace),
                          void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct trace_call call = {each, context};
    return tl_sql_each(c, trace_row, &call, fail, TRACES " ORDER BY created_ns, id", "");
}

struct page_call {
    struct trace_call call;
    size_t n; /* number of rows so far */
};

static int page_row(void *context, sqlite3_stmt *s)
{
    struct page_call *page = context;
    page->n++;
    return trace_row(&page->call, s);
}

int tl_sql_catalog_find(struct tl_catalog *catalog, const char *id,
                        int (*each)(void *context, const struct tl_catalog_trace *trace),
                        void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct page_call page = {{each, context}, 0};
    const int r = tl_sql_each(c, page_row, &page, fail, TRACES " WHERE id=?", "s", id);
    if (r >= 0 && page.n == 0)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no trace %s", id);
    return r;
}

int tl_sql_catalog_page(struct tl_catalog *catalog, const struct tl_trace_place *behind,
                        size_t most,
                        int (*each)(void *context, const struct tl_catalog_trace *trace),
                        void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct page_call page = {{each, context}, 0};
    const int r =
        behind ? tl_sql_each(c, page_row, &page, fail,
                             TRACES " WHERE created_ns <= ?1 AND (created_ns < ?1 OR id > ?2)"
                                    " ORDER BY created_ns DESC, id LIMIT ?3",
                             "isi", behind->created_ns, behind->id, (uint64_t)most)
               : tl_sql_each(c, page_row, &page, fail,
                             TRACES " ORDER BY created_ns DESC, id LIMIT ?", "i", (uint64_t)most);
    return r < 0 ? r : page.n == most;
}

int tl_sql_catalog_unfinished(struct tl_catalog *catalog,
                              int (*each)(void *context, const struct tl_catalog_trace *trace),
                              void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct trace_call call = {each, context};
    return tl_sql_each(c, trace_row, &call, fail, /* exactly the expression of its index */
                       TRACES " WHERE state < 2 OR"
                              " (complete = 1 AND raw_removed = 0 AND content = '')",
                       "");
}

int tl_sql_catalog_by_content(struct tl_catalog *catalog, const char *content,
                              int (*each)(void *context, const struct tl_catalog_trace *trace),
                              void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct page_call page = {{each, context}, 0};
    const int r = tl_sql_each(c, page_row, &page, fail,
                              TRACES " WHERE content = ? AND content <> ''"
                                     " ORDER BY created_ns DESC LIMIT 1",
                              "s", content);
    return r < 0 ? r : page.n ? TL_OK : TL_NOTFOUND;
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

int tl_sql_catalog_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                          struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    *out = (struct tl_catalog_totals){0};
    return tl_sql_each(c, totals_row, out, fail,
                       "SELECT state, count(*), total(raw_bytes * (1 - raw_removed)),"
                       " total(insns), total(stored_bytes) FROM traces GROUP BY state",
                       "");
}

int tl_sql_catalog_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                             const char *value, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    int r;
    if (*value)
        r = tl_sql_run(c, fail,
                       "INSERT INTO labels(trace, key, value) VALUES(?,?,?)"
                       " ON CONFLICT DO UPDATE SET value=excluded.value",
                       "sss", trace, key, value);
    else
        r = tl_sql_run(c, fail, "DELETE FROM labels WHERE trace=? AND key=?", "ss", trace, key);
    return r < 0 ? r : TL_OK;
}

static int label_row(void *context, sqlite3_stmt *s)
{
    return tl_buf_printf(context, "%s=%s\n", tl_sql_text(s, 0), tl_sql_text(s, 1));
}

int tl_sql_catalog_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                          struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    return tl_sql_each(c, label_row, out, fail,
                       "SELECT key, value FROM labels WHERE trace=? ORDER BY key", "s", trace);
}

/* ---- streams ------------------------------------------------------------------------------- */

int tl_sql_catalog_put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                              const struct tl_catalog_stream *stream, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    uint8_t clock[TL_CLOCK_RELATION_BYTES];
    const struct tl_bytes told = {clock, stream->clock.pairs > 0 ? sizeof(clock) : 0};
    tl_clock_relation_put(&stream->clock, clock);
    const int r = tl_sql_run(
        c, fail,
        "INSERT INTO streams(trace, generation, number, name, protocol, lost_bytes, clock)"
        " VALUES(?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET name=excluded.name,"
        " protocol=excluded.protocol, lost_bytes=excluded.lost_bytes, clock=excluded.clock",
        "siisiib", trace, generation, stream->index, stream->name, (uint64_t)stream->protocol,
        stream->lost_bytes, &told);
    return r < 0 ? r : TL_OK;
}

struct stream_call {
    int (*each)(void *context, const struct tl_catalog_stream *stream);
    void *context;
};

static int stream_row(void *context, sqlite3_stmt *s)
{
    const struct stream_call *call = context;
    struct tl_catalog_stream stream = {.index = tl_sql_u64(s, 0),
                                       .name = tl_sql_text(s, 1),
                                       .protocol = sqlite3_column_int(s, 2),
                                       .lost_bytes = tl_sql_u64(s, 3)};
    tl_clock_relation_get(&stream.clock, tl_sql_bytes(s, 4));
    return call->each(call->context, &stream);
}

int tl_sql_catalog_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           int (*each)(void *context, const struct tl_catalog_stream *stream),
                           void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct stream_call call = {each, context};
    return tl_sql_each(c, stream_row, &call, fail,
                       "SELECT number, name, protocol, lost_bytes, clock FROM streams"
                       " WHERE trace=? AND generation=? ORDER BY number",
                       "si", trace, generation);
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

int tl_sql_catalog_add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                              const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    sqlite3_stmt *s = NULL;
    pthread_mutex_lock(&c->lock);
    int r = tl_sql_begin(c, fail);
    if (r >= 0) {
        r = tl_sql_prepare(
            c, &s, fail,
            "INSERT OR REPLACE INTO shards(trace, generation, stream, number, first, n, markers,"
            " byte_first, byte_last, events, gaps, anchors, position_first, time_first,"
            " position_last, time_last, size, begin, summary, summary_crc)"
            " VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            "");
        for (size_t i = 0; r >= 0 && i < n; i++)
            r = add_shard(c, s, trace, generation, &shards[i], fail);
        sqlite3_finalize(s);
        r = tl_sql_end(c, r, fail);
    }
    pthread_mutex_unlock(&c->lock);
    return r;
}

struct shard_call {
    int (*each)(void *context, const struct tl_shard_row *row);
    void *context;
};

static int shard_row(void *context, sqlite3_stmt *s)
{
    const struct shard_call *call = context;
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
    return call->each(call->context, &row);
}

int tl_sql_catalog_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                          uint64_t stream,
                          int (*each)(void *context, const struct tl_shard_row *row), void *context,
                          struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct shard_call call = {each, context};
    return tl_sql_each(
        c, shard_row, &call, fail,
        "SELECT number, first, n, markers, byte_first, byte_last, events, gaps, anchors,"
        " position_first, time_first, position_last, time_last, size, begin"
        " FROM shards WHERE trace=? AND generation=? AND stream=? ORDER BY number",
        "sii", trace, generation, stream);
}

struct summary_call {
    int (*each)(void *context, struct tl_bytes summary);
    void *context;
};

static int summary_row(void *context, sqlite3_stmt *s)
{
    const struct summary_call *call = context;
    return call->each(call->context, tl_sql_bytes(s, 0));
}

int tl_sql_catalog_summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                             uint64_t stream, uint64_t from, uint64_t to,
                             int (*each)(void *context, struct tl_bytes summary), void *context,
                             struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct summary_call call = {each, context};
    return tl_sql_each(c, summary_row, &call, fail,
                       "SELECT summary FROM shards WHERE trace=? AND generation=? AND stream=?"
                       " AND number>=? AND number<? ORDER BY number",
                       "siiii", trace, generation, stream, from, to);
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

int tl_sql_catalog_check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                                 uint64_t stream, uint64_t number, bool *intact,
                                 struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    *intact = false;
    return tl_sql_each(c, intact_row, intact, fail,
                       "SELECT summary, summary_crc FROM shards WHERE trace=? AND generation=?"
                       " AND stream=? AND number=?",
                       "siii", trace, generation, stream, number);
}

int tl_sql_catalog_drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                               uint64_t stream, uint64_t from, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    int r;
    if (stream != UINT64_MAX) {
        r = tl_sql_run(c, fail,
                       "DELETE FROM shards WHERE trace=? AND generation=? AND stream=?"
                       " AND number>=?",
                       "siii", trace, generation, stream, from);
        return r < 0 ? r : TL_OK;
    }
    r = tl_sql_run(c, fail, "DELETE FROM shards WHERE trace=? AND generation=?", "si", trace,
                   generation);
    if (r >= 0)
        r = tl_sql_run(c, fail, "DELETE FROM streams WHERE trace=? AND generation=?", "si", trace,
                       generation);
    return r < 0 ? r : TL_OK;
}

int tl_sql_catalog_drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                               uint64_t other, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    int r = tl_sql_run(c, fail, "DELETE FROM shards WHERE trace=? AND generation NOT IN (?,?)",
                       "sii", trace, generation, other);
    if (r >= 0)
        r = tl_sql_run(c, fail, "DELETE FROM streams WHERE trace=? AND generation NOT IN (?,?)",
                       "sii", trace, generation, other);
    return r < 0 ? r : TL_OK;
}

/* ---- images -------------------------------------------------------------------------------- */

int tl_sql_catalog_add_image(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                             struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t created = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    const int r =
        tl_sql_run(c, fail,
                   "INSERT INTO images(hash, name, build_id, size, created_ns, announced)"
                   " VALUES(?,?,?,?,?,0) ON CONFLICT DO NOTHING",
                   "sssii", image->hash, image->name, image->build_id, image->size, created);
    return r < 0 ? r : TL_OK;
}

struct image_call {
    int (*each)(void *context, const struct tl_catalog_image *image);
    void *context;
};

static int image_row(void *context, sqlite3_stmt *s)
{
    const struct image_call *call = context;
    const struct tl_catalog_image image = {.hash = tl_sql_text(s, 0),
                                           .name = tl_sql_text(s, 1),
                                           .build_id = tl_sql_text(s, 2),
                                           .size = tl_sql_u64(s, 3),
                                           .announced = sqlite3_column_int(s, 4) != 0};
    return call->each(call->context, &image);
}

int tl_sql_catalog_images(struct tl_catalog *catalog,
                          int (*each)(void *context, const struct tl_catalog_image *image),
                          void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct image_call call = {each, context};
    return tl_sql_each(
        c, image_row, &call, fail,
        "SELECT hash, name, build_id, size, announced FROM images ORDER BY created_ns, hash", "");
}

int tl_sql_catalog_announce_image(struct tl_catalog *catalog, const char *hash,
                                  struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(c, fail, "UPDATE images SET announced=1 WHERE hash=?", "s", hash);
    return r < 0 ? r : TL_OK;
}

int tl_sql_catalog_remove_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    const int r = tl_sql_run(c, fail, "DELETE FROM images WHERE hash=?", "s", hash);
    return r < 0 ? r : TL_OK;
}

/* ---- retention ----------------------------------------------------------------------------- */

int tl_sql_catalog_set_retention(struct tl_catalog *catalog, const char *scope,
                                 const struct tl_retention *rule, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    int r;
    if (rule)
        r = tl_sql_run(c, fail, "INSERT OR REPLACE INTO retention VALUES(?,?,?,?,?)", "siiii",
                       scope, rule->raw_age_s, rule->raw_bytes, rule->decoded_age_s,
                       rule->decoded_bytes);
    else
        r = tl_sql_run(c, fail, "DELETE FROM retention WHERE scope=?", "s", scope);
    return r < 0 ? r : TL_OK;
}

struct retention_call {
    int (*each)(void *context, const char *scope, const struct tl_retention *rule);
    void *context;
};

static int retention_row(void *context, sqlite3_stmt *s)
{
    const struct retention_call *call = context;
    const struct tl_retention rule = {tl_sql_u64(s, 1), tl_sql_u64(s, 2), tl_sql_u64(s, 3),
                                      tl_sql_u64(s, 4)};
    return call->each(call->context, tl_sql_text(s, 0), &rule);
}

int tl_sql_catalog_retention(struct tl_catalog *catalog,
                             int (*each)(void *context, const char *scope,
                                         const struct tl_retention *rule),
                             void *context, struct tl_fail *fail)
{
    struct tl_sql *c = tl_sql_of(catalog);
    struct retention_call call = {each, context};
    return tl_sql_each(c, retention_row, &call, fail,
                       "SELECT scope, raw_age_s, raw_bytes, decoded_age_s, decoded_bytes"
                       " FROM retention ORDER BY scope",
                       "");
}
