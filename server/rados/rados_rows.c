/* SPDX-License-Identifier: MIT */
/*
 * Rows of the catalog as values of the index, and rows of streams and shards. Keys sort as the rows
 * are listed, so that a list is one scan.
 */
#include "rados/rados_rows.h"

#include "base/crc32c.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- values --------------------------------------------------------------------------------- */

void tl_row_number(struct tl_row *row, uint64_t value)
{
    if (row->failed >= 0)
        row->failed = tl_varint_add(&row->bytes, value);
}

static void put_bytes(struct tl_row *row, struct tl_bytes bytes)
{
    tl_row_number(row, bytes.n);
    if (row->failed >= 0)
        row->failed = tl_buf_add(&row->bytes, bytes.p, bytes.n);
}

void tl_row_text(struct tl_row *row, const char *text)
{
    const char *const t = text ? text : "";
    put_bytes(row, (struct tl_bytes){(const uint8_t *)t, strlen(t) + 1});
}

int tl_row_end(struct tl_row *row, struct tl_fail *fail)
{
    uint8_t crc[4];
    tl_put_le32(crc, tl_crc32c(0, row->bytes.p, row->bytes.n));
    if (row->failed >= 0)
        row->failed = tl_buf_add(&row->bytes, crc, sizeof crc);
    return row->failed < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory") : TL_OK;
}

int tl_row_open(struct tl_varint_reader *in, struct tl_bytes value)
{
    if (value.n < 4 || tl_crc32c(0, value.p, value.n - 4) != tl_le32(value.p + value.n - 4))
        return TL_BAD;
    *in = (struct tl_varint_reader){.p = value.p, .end = value.p + value.n - 4};
    return TL_OK;
}

static struct tl_bytes get_bytes(struct tl_varint_reader *in)
{
    const uint64_t n = tl_varint_get(in);
    const uint8_t *const p = tl_varint_bytes(in, n);
    return (struct tl_bytes){p, p ? n : 0};
}

const char *tl_row_get_text(struct tl_varint_reader *in)
{
    const struct tl_bytes text = get_bytes(in);
    if (text.n > 0 && text.p[text.n - 1] == '\0')
        return (const char *)text.p;
    in->bad = true;
    return "";
}

int tl_row_damaged(const char *key, struct tl_fail *fail)
{
    return tl_fail_set(fail, TL_BAD,
                       "the catalog is damaged (row %.200s); start once with --rebuild-catalog",
                       key);
}

int tl_row_close(const struct tl_varint_reader *in, const char *key, struct tl_fail *fail)
{
    return in->bad ? tl_row_damaged(key, fail) : TL_OK;
}

/* ---- keys ----------------------------------------------------------------------------------- */

char *tl_row_key(char out[static TL_ROW_KEY], char kind, const char *id)
{
    return tl_row_key_of(out, kind, id, NULL, 0);
}

char *tl_row_key_of(char out[static TL_ROW_KEY], char kind, const char *id, const uint64_t *n,
                    size_t n_numbers)
{
    int at = snprintf(out, TL_ROW_KEY, "%c/%.200s", kind, id);
    for (size_t i = 0; i < n_numbers; i++)
        at += snprintf(out + at, TL_ROW_KEY - (size_t)at, "/%016llx", (unsigned long long)n[i]);
    return out;
}

uint64_t tl_row_last_number(const char *key)
{
    return strtoull(strrchr(key, '/') + 1, NULL, 16);
}

/* Keys that begin with a key and '/' sort before that key and '0', the next character. */
static void add_char(char key[static TL_ROW_KEY], char c)
{
    const size_t n = strlen(key);
    snprintf(key + n, TL_ROW_KEY - n, "%c", c);
}

void tl_rows_remove(struct tl_change *change, char kind, const char *id, const uint64_t *n,
                    size_t n_numbers)
{
    char from[TL_ROW_KEY], to[TL_ROW_KEY];
    add_char(tl_row_key_of(from, kind, id, n, n_numbers), '/');
    add_char(tl_row_key_of(to, kind, id, n, n_numbers), '0');
    tl_change_remove_range(change, from, to);
}

/* ---- rows by age ---------------------------------------------------------------------------- */

/* Keys and values of a scan, copied and concatenated. */
struct listing {
    struct tl_buf bytes; /* for each: lengths of both (8 bytes each), key and NUL, value */
    size_t n;
};

static int take_row(void *context, const char *key, struct tl_bytes value)
{
    struct listing *const l = context;
    const uint64_t lengths[2] = {strlen(key) + 1, value.n};
    int r = tl_buf_add(&l->bytes, lengths, sizeof lengths);
    if (r >= 0)
        r = tl_buf_add(&l->bytes, key, lengths[0]);
    if (r >= 0)
        r = tl_buf_add(&l->bytes, value.p, value.n);
    l->n++;
    return r;
}

/* The row at `*at`, which is advanced. */
static const char *next_row(const uint8_t **at, struct tl_bytes *value)
{
    uint64_t lengths[2];
    memcpy(lengths, *at, sizeof lengths);
    const char *const key = (const char *)*at + sizeof lengths;
    *value = (struct tl_bytes){(const uint8_t *)key + lengths[0], lengths[1]};
    *at = value->p + value->n;
    return key;
}

/* A row with its sort key: by age, then by name. */
struct aged {
    int64_t created_ns;
    const char *key;
    struct tl_bytes value;
};

static int by_age(const void *a, const void *b)
{
    const struct aged *const x = a, *const y = b;
    return x->created_ns != y->created_ns
               ? (x->created_ns > y->created_ns) - (x->created_ns < y->created_ns)
               : strcmp(x->key, y->key);
}

int tl_rows_by_age(struct tl_rados *r, const char *prefix, tl_row_age *age, tl_index_each *each,
                   void *context, struct tl_fail *fail)
{
    struct listing l = {0};
    struct aged *rows = NULL;
    int rc = tl_index_scan_all(r, prefix, take_row, &l, fail);
    if (rc >= 0 && !(rows = calloc(l.n + 1, sizeof *rows)))
        rc = tl_fail_set(fail, TL_NOMEM, "no memory");
    const uint8_t *at = l.bytes.p;
    for (size_t i = 0; rc >= 0 && i < l.n; i++) {
        rows[i].key = next_row(&at, &rows[i].value);
        rc = age(rows[i].key, rows[i].value, &rows[i].created_ns, fail);
    }
    if (rc >= 0)
        qsort(rows, l.n, sizeof *rows, by_age);
    for (size_t i = 0; rc >= 0 && i < l.n; i++)
        rc = each(context, rows[i].key, rows[i].value);
    free(rows);
    tl_buf_fini(&l.bytes);
    return rc < 0 ? rc : TL_OK;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Begin a change of rows of an existing trace, commit it. */
static int begin_rows(struct tl_change *change, struct tl_catalog *catalog, const char *trace,
                      struct tl_fail *fail)
{
    char key[TL_ROW_KEY];
    const int r = tl_change_begin_trace(change, tl_rados_backing(catalog), tl_text(trace), fail);
    if (r >= 0)
        tl_change_expect_any(change, tl_row_key(key, 'T', trace));
    return r;
}

static int commit(struct tl_change *change, const char *trace, struct tl_fail *fail)
{
    const int r = tl_change_commit(change, fail);
    return r == TL_AGAIN
               ? tl_fail_set(fail, TL_IO, "the catalog refused: there is no trace %.64s", trace)
               : r;
}

int tl_rados_put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                        const struct tl_catalog_stream *stream, struct tl_fail *fail)
{
    const uint64_t place[] = {generation, stream->index};
    struct tl_row row = {0};
    struct tl_change change;
    char key[TL_ROW_KEY];
    uint8_t clock[TL_CLOCK_RELATION_BYTES];
    tl_clock_relation_put(&stream->clock, clock);
    tl_row_text(&row, stream->name);
    tl_row_number(&row, (uint64_t)stream->protocol);
    tl_row_number(&row, stream->lost_bytes);
    put_bytes(&row, (struct tl_bytes){clock, stream->clock.pairs > 0 ? sizeof clock : 0});
    int r = tl_row_end(&row, fail);
    if (r >= 0)
        r = begin_rows(&change, catalog, trace, fail);
    if (r >= 0) {
        tl_change_set(&change, tl_row_key_of(key, 'R', trace, place, 2), tl_row_value(&row));
        r = commit(&change, trace, fail);
    }
    tl_row_fini(&row);
    return r;
}

struct stream_call {
    tl_each_stream *each;
    void *context;
    struct tl_fail *fail;
};

static int stream_row(void *context, const char *key, struct tl_bytes value)
{
    const struct stream_call *const call = context;
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, call->fail);
    struct tl_catalog_stream stream = {.index = tl_row_last_number(key),
                                       .name = tl_row_get_text(&in)};
    stream.protocol = (int)tl_varint_get(&in);
    stream.lost_bytes = tl_varint_get(&in);
    tl_clock_relation_get(&stream.clock, get_bytes(&in));
    const int r = tl_row_close(&in, key, call->fail);
    return r < 0 ? r : call->each(call->context, &stream);
}

/* Scan all rows with keys "KIND/trace/<n[0]>/…/" and one more number. */
static int scan(struct tl_catalog *catalog, char kind, const char *trace, const uint64_t *n,
                size_t n_numbers, uint64_t from, tl_index_each *each, void *context,
                struct tl_fail *fail)
{
    char prefix[TL_ROW_KEY], after_name[TL_ROW_KEY];
    uint64_t last[4] = {0};
    for (size_t i = 0; i < n_numbers; i++)
        last[i] = n[i];
    last[n_numbers] = from - 1;
    add_char(tl_row_key_of(prefix, kind, trace, n, n_numbers), '/');
    tl_row_key_of(after_name, kind, trace, last, n_numbers + 1);
    return tl_index_scan(tl_rados_backing(catalog), tl_text(trace), prefix,
                         from > 0 ? after_name : "", each, context, fail);
}

int tl_rados_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                     tl_each_stream *each, void *context, struct tl_fail *fail)
{
    struct stream_call call = {each, context, fail};
    return scan(catalog, 'R', trace, &generation, 1, 0, stream_row, &call, fail);
}

/* ---- shards --------------------------------------------------------------------------------- */

static int write_shard(const struct tl_shard_row *s, struct tl_row *row, struct tl_fail *fail)
{
    const uint64_t numbers[] = {s->first,
                                s->n,
                                s->markers,
                                s->byte_first,
                                s->byte_last,
                                s->events,
                                s->gaps,
                                s->anchors,
                                s->anchor_first.position,
                                s->anchor_first.time,
                                s->anchor_last.position,
                                s->anchor_last.time,
                                s->size};
    struct tl_buf begin = {0};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tl_row_number(row, numbers[i]);
    const int r = tl_flow_now_encode(&s->at, &begin);
    if (r >= 0)
        put_bytes(row, (struct tl_bytes){begin.p, begin.n});
    tl_buf_fini(&begin);
    return r < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory") : tl_row_end(row, fail);
}

static int read_shard(struct tl_shard_row *s, struct tl_varint_reader *in)
{
    uint64_t *const numbers[] = {&s->first,     &s->n,      &s->markers, &s->byte_first,
                                 &s->byte_last, &s->events, &s->gaps};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = tl_varint_get(in);
    s->anchors = (uint32_t)tl_varint_get(in);
    s->anchor_first.position = tl_varint_get(in);
    s->anchor_first.time = tl_varint_get(in);
    s->anchor_last.position = tl_varint_get(in);
    s->anchor_last.time = tl_varint_get(in);
    s->size = tl_varint_get(in);
    return tl_flow_now_decode(&s->at, get_bytes(in));
}

static int set_shard(struct tl_change *change, const char *trace, uint64_t generation,
                     const struct tl_catalog_shard *shard, struct tl_fail *fail)
{
    const uint64_t place[] = {generation, shard->stream, shard->row.number};
    struct tl_row row = {0}, summary = {0};
    char key[TL_ROW_KEY];
    int r = write_shard(&shard->row, &row, fail);
    put_bytes(&summary, shard->summary);
    if (r >= 0)
        r = tl_row_end(&summary, fail);
    if (r >= 0) {
        tl_change_set(change, tl_row_key_of(key, 'H', trace, place, 3), tl_row_value(&row));
        tl_change_set(change, tl_row_key_of(key, 'Y', trace, place, 3), tl_row_value(&summary));
    }
    tl_row_fini(&row);
    tl_row_fini(&summary);
    return r;
}

int tl_rados_add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                        const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail)
{
    struct tl_change change;
    int r = begin_rows(&change, catalog, trace, fail);
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = set_shard(&change, trace, generation, &shards[i], fail);
    if (r < 0) {
        tl_change_drop(&change);
        return r;
    }
    return commit(&change, trace, fail);
}

struct shard_call {
    tl_each_shard *each;
    void *context;
    struct tl_fail *fail;
};

static int shard_row(void *context, const char *key, struct tl_bytes value)
{
    const struct shard_call *const call = context;
    struct tl_shard_row row = {.number = tl_row_last_number(key)};
    struct tl_varint_reader in;
    if (tl_row_open(&in, value) < 0 || read_shard(&row, &in) < 0)
        return tl_row_damaged(key, call->fail);
    const int r = tl_row_close(&in, key, call->fail);
    return r < 0 ? r : call->each(call->context, &row);
}

int tl_rados_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                    uint64_t stream, tl_each_shard *each, void *context, struct tl_fail *fail)
{
    struct shard_call call = {each, context, fail};
    const uint64_t place[] = {generation, stream};
    return scan(catalog, 'H', trace, place, 2, 0, shard_row, &call, fail);
}

struct summary_call {
    tl_each_summary *each;
    void *context;
    uint64_t to;
    struct tl_fail *fail;
};

static int summary_row(void *context, const char *key, struct tl_bytes value)
{
    const struct summary_call *const call = context;
    struct tl_varint_reader in;
    if (tl_row_last_number(key) >= call->to)
        return 1; /* ends the scan */
    if (tl_row_open(&in, value) < 0)
        return tl_row_damaged(key, call->fail);
    const struct tl_bytes summary = get_bytes(&in);
    const int r = tl_row_close(&in, key, call->fail);
    return r < 0 ? r : call->each(call->context, summary);
}

int tl_rados_summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t stream, uint64_t from, uint64_t to, tl_each_summary *each,
                       void *context, struct tl_fail *fail)
{
    struct summary_call call = {each, context, to, fail};
    const uint64_t place[] = {generation, stream};
    const int r = scan(catalog, 'Y', trace, place, 2, from, summary_row, &call, fail);
    return r < 0 ? r : TL_OK;
}

int tl_rados_check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           uint64_t stream, uint64_t number, bool *intact, struct tl_fail *fail)
{
    const uint64_t place[] = {generation, stream, number};
    struct tl_buf value = {0};
    struct tl_varint_reader in;
    char key[TL_ROW_KEY];
    const int r = tl_index_get(tl_rados_backing(catalog), tl_text(trace),
                               tl_row_key_of(key, 'Y', trace, place, 3), &value, fail);
    *intact = r >= 0 && tl_row_open(&in, (struct tl_bytes){value.p, value.n}) >= 0;
    tl_buf_fini(&value);
    return r == TL_NOTFOUND ? TL_OK : r;
}

int tl_rados_drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t stream, uint64_t from, struct tl_fail *fail)
{
    const uint64_t place[] = {generation, stream, from};
    char first[TL_ROW_KEY], end[TL_ROW_KEY];
    struct tl_change change;
    const int r = tl_change_begin_trace(&change, tl_rados_backing(catalog), tl_text(trace), fail);
    if (r < 0)
        return r;
    for (const char *kind = "HY"; *kind && stream != UINT64_MAX; kind++) {
        tl_row_key_of(first, *kind, trace, place, 3);
        add_char(tl_row_key_of(end, *kind, trace, place, 2), '0');
        tl_change_remove_range(&change, first, end);
    }
    for (const char *kind = "HYR"; *kind && stream == UINT64_MAX; kind++)
        tl_rows_remove(&change, *kind, trace, place, 1);
    return commit(&change, trace, fail);
}

/* Remove what is before, between and after the two that are kept. */
int tl_rados_drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t other, struct tl_fail *fail)
{
    const uint64_t low = generation < other ? generation : other,
                   high = generation < other ? other : generation;
    char from[TL_ROW_KEY], to[TL_ROW_KEY];
    struct tl_change change;
    const int r = tl_change_begin_trace(&change, tl_rados_backing(catalog), tl_text(trace), fail);
    if (r < 0)
        return r;
    for (const char *kind = "HYR"; *kind; kind++) {
        add_char(tl_row_key(from, *kind, trace), '/');
        add_char(tl_row_key_of(to, *kind, trace, &low, 1), '/');
        tl_change_remove_range(&change, from, to);
        if (low < high) {
            add_char(tl_row_key_of(from, *kind, trace, &low, 1), '0');
            add_char(tl_row_key_of(to, *kind, trace, &high, 1), '/');
            tl_change_remove_range(&change, from, to);
        }
        add_char(tl_row_key_of(from, *kind, trace, &high, 1), '0');
        add_char(tl_row_key(to, *kind, trace), '0');
        tl_change_remove_range(&change, from, to);
    }
    return commit(&change, trace, fail);
}
