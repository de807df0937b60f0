/* SPDX-License-Identifier: MIT */
/* Runs one stream decoder over bytes, at any chunking, and keeps its text, packets and losses. */
#ifndef TL_TEST_STREAM_HARNESS_H
#define TL_TEST_STREAM_HARNESS_H

#include "decode/ops.h"

#include <stdlib.h>
#include <string.h>

struct stream_result {
    struct tl_buf text;
    struct tl_buf packets;
    uint64_t lost;
    unsigned losses;
};

static inline int harness_items(void *context, const struct tl_item *items, size_t n)
{
    struct stream_result *const r = context;
    return tl_item_text(&r->text, items, n);
}

static inline int harness_packet(void *context, const char *line)
{
    struct stream_result *const r = context;
    return tl_buf_printf(&r->packets, "%s\n", line);
}

static inline int harness_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct stream_result *const r = context;
    r->lost += bytes;
    r->losses++;
    return TL_OK;
}

/* `chunk` 0: all at once; else random pieces of at most so many bytes. */
static inline void run_stream(const struct tl_stream_ops *ops, const struct tl_source *source,
                              const uint8_t *p, size_t n, size_t chunk, struct stream_result *r)
{
    *r = (struct stream_result){0};
    const struct tl_stream_sink sink = {r, harness_items, harness_packet, harness_loss};
    struct tl_stream_decoder *d;
    struct tl_fail fail;
    if (ops->create(&d, source, NULL, &sink, &fail) < 0)
        abort();
    for (size_t at = 0; at < n;) {
        size_t piece = chunk ? 1 + (size_t)rand() % chunk : n;
        piece = piece < n - at ? piece : n - at;
        const struct tl_run run = {p + at, piece, at, TL_RUN_LINEAR};
        if (ops->push(d, &run) < 0)
            abort();
        at += piece;
    }
    if (ops->finish(d) < 0)
        abort();
    ops->destroy(d);
    if (tl_buf_add(&r->text, "", 1) < 0 || tl_buf_add(&r->packets, "", 1) < 0)
        abort();
}

static inline void free_stream(struct stream_result *r)
{
    tl_buf_fini(&r->text);
    tl_buf_fini(&r->packets);
}

static inline bool same_stream(const struct stream_result *a, const struct stream_result *b)
{
    return a->text.n == b->text.n && a->packets.n == b->packets.n && a->lost == b->lost &&
           !memcmp(a->text.p, b->text.p, a->text.n) &&
           !memcmp(a->packets.p, b->packets.p, a->packets.n);
}

#endif
