/* SPDX-License-Identifier: MIT */
/*
 * Runs one stream decoder over bytes, in chunks of any size, and keeps its text, packets and
 * losses.
 */
#ifndef TL_TEST_STREAM_HARNESS_H
#define TL_TEST_STREAM_HARNESS_H

#include "decode/ops.h"
#include "frame/tpiu.h"
#include "steps.h"
#include "unit/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream_result {
    struct tl_buf text;
    struct tl_buf packets;
    uint64_t lost;
    unsigned losses;
    struct steps steps;
};

static inline int harness_items(void *context, const struct tl_item *items, size_t n)
{
    struct stream_result *const r = context;
    steps_demand(&r->steps, items, n);
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

/* `chunk` 0: all at once; otherwise random pieces of at most this many bytes. */
static inline void run_stream(const struct tl_stream_ops *ops, const struct tl_source *source,
                              const uint8_t *p, size_t n, size_t chunk, struct stream_result *r)
{
    *r = (struct stream_result){0};
    const struct tl_stream_sink sink = {r, harness_items, harness_packet, harness_loss, false};
    struct tl_stream_decoder *d;
    struct tl_fail fail;
    if (ops->create(&d, source, NULL, &sink, &fail) < 0)
        abort();
    for (size_t at = 0; at < n;) {
        size_t piece = chunk ? 1 + (size_t)rand() % chunk : n;
        piece = piece < n - at ? piece : n - at;
        const struct tl_run run = {p + at, piece, at, NULL};
        if (ops->push(d, &run) < 0)
            abort();
        at += piece;
    }
    if (ops->finish(d, TL_LOSS_CUT_OFF) < 0)
        abort();
    ops->destroy(d);
    if (tl_buf_add(&r->text, "", 1) < 0 || tl_buf_add(&r->packets, "", 1) < 0)
        abort();
}

/* ---- real captures and golden listings -------------------- */

static inline int harness_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct tl_stream_decoder *const d = *(struct tl_stream_decoder **)context;
    return id == ((uint8_t **)context)[1][0] ? d->ops->push(d, run) : TL_OK;
}

/* Decode source `id` of a capture of formatter frames. False: the capture is not available. */
static inline bool run_capture(const struct tl_stream_ops *ops, const char *name, uint8_t id,
                               bool framed, struct stream_result *r)
{
    char path[4096];
    *r = (struct stream_result){0};
    FILE *const f = test_data(path, sizeof path, name) ? fopen(path, "rb") : NULL;
    if (!f)
        return false;
    static uint8_t bytes[1 << 20];
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    const struct tl_source source = {.id = id};
    const struct tl_stream_sink sink = {r, harness_items, harness_packet, harness_loss, false};
    struct tl_stream_decoder *d;
    if (ops->create(&d, &source, NULL, &sink, NULL) < 0)
        abort();
    void *const context[2] = {d, &id};
    static struct tl_tpiu frames;
    const struct tl_tpiu_sink runs = {.context = (void *)context, .run = harness_run};
    tl_tpiu_init(&frames, TL_TPIU_ALIGNED, 0, &runs);
    const struct tl_run run = {bytes, n, 0, NULL};
    if ((framed ? tl_tpiu_push(&frames, bytes, n) : ops->push(d, &run)) < 0 ||
        ops->finish(d, TL_LOSS_CUT_OFF) < 0)
        abort();
    ops->destroy(d);
    if (tl_buf_add(&r->text, "", 1) < 0 || tl_buf_add(&r->packets, "", 1) < 0)
        abort();
    return true;
}

/* The lines of a golden listing that `convert` accepts, converted. */
static inline bool read_golden(const char *name, int (*convert)(struct tl_buf *, const char *),
                               struct tl_buf *out)
{
    char path[4000], command[4200];
    if (!test_data(path, sizeof path, name))
        return false;
    snprintf(command, sizeof command, "gzip -dc '%s'", path);
    FILE *const f = popen(command, "r");
    if (!f)
        return false;
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0)
        if (convert(out, line) < 0)
            abort();
    free(line);
    pclose(f);
    return true;
}

/* Only the lines of `text` that begin with `prefix`. */
static inline void filter(const struct tl_buf *text, const char *prefix, struct tl_buf *out)
{
    const char *p = (const char *)text->p;
    while (p && *p) {
        const char *const end = strchr(p, '\n');
        const size_t n = end ? (size_t)(end - p) + 1 : strlen(p);
        if (!strncmp(p, prefix, strlen(prefix)) && tl_buf_add(out, p, n) < 0)
            abort();
        p += n;
    }
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
