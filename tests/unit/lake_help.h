/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the lake: a lake over a memory backend, captures, results. */
#ifndef TL_TESTS_LAKE_HELP_H
#define TL_TESTS_LAKE_HELP_H

#include "ingest/repack.h"
#include "lake/lakeint.h"
#include "lake_ranges.h"
#include "opening/open.h"
#include "store/backend_memory.h"
#include "unit/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A capture with its setup in the lake's form (images by hash) and the result of decoding. */
struct capture {
    struct tl_buf bytes;
    struct tl_buf setup; /* INI text, NUL-terminated */
    struct tl_buf text;  /* of all streams, as printed by `decode --text` */
    struct tl_buf elf;   /* the program, if it was simulated */
};

static inline void read_file(const char *path, struct tl_buf *out)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot read %s", path);
    char piece[65536];
    size_t n;
    while ((n = fread(piece, 1, sizeof(piece), f)) > 0)
        assert_int_equal(tl_buf_add(out, piece, n), TL_OK);
    fclose(f);
}

struct texts {
    struct tl_buf streams[64];
    char names[64][32];
    size_t n;
};

static inline int texts_stream(void *context, const struct tl_decode_stream *stream)
{
    struct texts *t = context;
    assert_true(stream->index == t->n && t->n < 64);
    snprintf(t->names[t->n], 32, "%s", stream->name);
    return tl_buf_printf(&t->streams[t->n++], "# stream %s\n", stream->name);
}

static inline int texts_items(void *context, const struct tl_decode_stream *stream,
                              const struct tl_item *items, size_t n)
{
    struct texts *t = context;
    return tl_item_text(&t->streams[stream->index], items, n);
}

/* Decode without a lake. */
static inline void decode_text(const struct tl_setup *setup, const struct tl_image *image,
                               struct tl_bytes bytes, struct tl_buf *out)
{
    struct texts *t = calloc(1, sizeof(*t));
    const struct tl_decode_sink sink = {.context = t, .stream = texts_stream, .items = texts_items};
    struct tl_decode *d;
    struct tl_fail fail = {0};
    if (tl_decode_new(&d, setup, image, &sink, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_decode_push(d, bytes.p, bytes.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    for (size_t i = 0; i < t->n; i++) {
        assert_int_equal(tl_buf_add(out, t->streams[i].p, t->streams[i].n), TL_OK);
        tl_buf_fini(&t->streams[i]);
    }
    free(t);
}

static inline void capture_free(struct capture *c)
{
    tl_buf_fini(&c->bytes);
    tl_buf_fini(&c->setup);
    tl_buf_fini(&c->text);
    tl_buf_fini(&c->elf);
}

static inline struct tl_lake *open_lake_sized(struct tl_backend *backend, uint64_t shard_insns,
                                              unsigned threads)
{
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = shard_insns,
                                            .decode_threads = threads,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192};
    if (tl_lake_open_on(&lake, backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    return lake;
}

/* A lake over its own memory. */
static inline struct tl_lake *open_memory_lake(struct tl_backend **backend, uint64_t shard_insns,
                                               unsigned threads)
{
    assert_int_equal(tl_backend_memory(backend), TL_OK);
    return open_lake_sized(*backend, shard_insns, threads);
}

static inline void close_memory_lake(struct tl_backend *backend, struct tl_lake *lake)
{
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static inline void push_all(struct tl_lake *lake, const char *id, const struct capture *c,
                            size_t piece)
{
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char trace[64];
    uint64_t at;
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = id, .setup = (const char *)c->setup.p, .resume = true};
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, trace, &at, &fail) < 0)
        fail_msg("%s", fail.text);
    while (at < c->bytes.n) {
        const size_t n = c->bytes.n - at < piece ? c->bytes.n - (size_t)at : piece;
        if (tl_ingest_append(ingest, at, (struct tl_bytes){c->bytes.p + at, n}, &fail) < 0)
            fail_msg("%s", fail.text);
        at += n;
    }
    assert_int_equal(tl_ingest_finish(ingest, &at, &fail), TL_OK);
    assert_true(at == c->bytes.n);
    tl_ingest_close(ingest);
}

/*
 * The row of a sealed trace is written shortly after the trace reports that state, and its raw
 * bytes are packed.
 */
static inline void wait_at_rest(struct tl_lake *lake, const char *id)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    int64_t since = 0;
    for (bool busy = trace != NULL; busy;) {
        pthread_mutex_lock(&trace->lock);
        busy = trace->state == TL_TRACE_SEALED && trace->making;
        const bool packs = tl_repack_due_locked(trace);
        pthread_mutex_unlock(&trace->lock);
        pthread_mutex_lock(&lake->lock);
        busy = busy || (packs && !lake->repack_refused);
        pthread_mutex_unlock(&lake->lock);
        if (busy)
            keep_waiting(&since, id);
    }
    tl_trace_put(trace);
}

/* Wait until a trace is sealed or failed; returns its state. */
static inline int wait_done(struct tl_lake *lake, const char *id)
{
    for (int64_t since = 0;;) {
        struct tl_trace_list list;
        assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
        const int state = list.rows[0].state;
        if (state == TL_TRACE_FAILED)
            print_message("trace %s failed: %s\n", id, list.rows[0].message);
        tl_trace_list_free(&list);
        if (state == TL_TRACE_SEALED)
            wait_at_rest(lake, id);
        if (state == TL_TRACE_SEALED || state == TL_TRACE_FAILED)
            return state;
        keep_waiting(&since, id);
    }
}

/* Push all of a capture, and wait until it is decoded without failure. */
static inline void push_sealed(struct tl_lake *lake, const char *id, const struct capture *c,
                               size_t piece)
{
    push_all(lake, id, c, piece);
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
}

/*
 * Read a range. Messages must be small whatever the size of a chunk, since two of them are kept
 * waiting for a client that reads slowly.
 */
static inline void fetch(struct tl_lake *lake, const struct tl_range_request *request,
                         struct tl_buf *out)
{
    struct tl_range *range;
    struct tl_fail fail = {0};
    int r = tl_range_open(lake, request, &range, &fail);
    while (r >= 0) {
        const size_t before = out->n;
        r = tl_range_next(range, out, &fail);
        assert_true(out->n - before <= (256u << 10));
    }
    if (r != TL_EOF)
        fail_msg("%s", fail.text);
    tl_range_close(range);
}

/* The text of all streams, one after another. */
static inline void lake_text(struct tl_lake *lake, const char *id, struct tl_buf *out)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    for (size_t i = 0; i < list.rows[0].n_streams; i++) {
        const struct tl_range_request request = {.trace = id,
                                                 .stream = list.rows[0].streams[i].name,
                                                 .to = UINT64_MAX,
                                                 .format = TL_FORMAT_TEXT};
        fetch(lake, &request, out);
    }
    tl_trace_list_free(&list);
}

static inline void assert_texts_equal(const struct tl_buf *a, const struct tl_buf *b)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->p[i] == b->p[i])
        i++;
    if (i < a->n || i < b->n) {
        const size_t from = i < 200 ? 0 : i - 200;
        fail_msg("texts of %zu and %zu bytes differ at %zu:\n--- %.*s\n+++ %.*s", a->n, b->n, i,
                 (int)(a->n - from < 300 ? a->n - from : 300), (const char *)a->p + from,
                 (int)(b->n - from < 300 ? b->n - from : 300), (const char *)b->p + from);
    }
}

#endif
