/* SPDX-License-Identifier: MIT */
/* Shared by the fuzz targets of byte-stream decoders. */
#ifndef TL_FUZZ_STREAM_H
#define TL_FUZZ_STREAM_H

#include "decode/ops.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_result {
    struct tl_buf text;
    uint64_t lost;
    struct steps steps;
};

static inline int fuzz_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(&((struct fuzz_result *)context)->steps, items, n);
    return tl_item_text(&((struct fuzz_result *)context)->text, items, n);
}

static inline int fuzz_packet(void *context, const char *line)
{
    return tl_buf_printf(&((struct fuzz_result *)context)->text, "%s\n", line);
}

static inline int fuzz_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    if (!reason || (!bytes && strcmp(reason, TL_LOSS_TIME_RESTART) != 0))
        abort();
    ((struct fuzz_result *)context)->lost += bytes;
    return TL_OK;
}

static inline void fuzz_decode(const struct tl_stream_ops *ops, bool packets, const uint8_t *p,
                               size_t n, size_t chunk, struct fuzz_result *r)
{
    const struct tl_source source = {.id = 0x10};
    const struct tl_stream_sink sink = {r, fuzz_items, packets ? fuzz_packet : NULL, fuzz_loss,
                                        false};
    struct tl_stream_decoder *d;
    *r = (struct fuzz_result){0};
    if (ops->create(&d, &source, NULL, &sink, NULL) < 0)
        abort();
    for (size_t i = 0; i < n; i += chunk) {
        const struct tl_run run = {p + i, n - i < chunk ? n - i : chunk, i, NULL};
        if (ops->push(d, &run) < 0)
            abort();
    }
    if (ops->finish(d, TL_LOSS_CUT_OFF) < 0 || r->lost > n)
        abort();
    ops->destroy(d);
}

/*
 * Items and packets are compared separately: a batch of items is delivered when it is full or at
 * the end of a push, a packet immediately.
 */
static inline int fuzz_stream(const struct tl_stream_ops *ops, const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct fuzz_result whole, parts;
    fuzz_decode(ops, false, data + 1, size - 1, size, &whole);
    fuzz_decode(ops, false, data + 1, size - 1, 1 + data[0] % 64, &parts);
    if (whole.text.n != parts.text.n || whole.lost != parts.lost ||
        (whole.text.n && memcmp(whole.text.p, parts.text.p, whole.text.n)))
        abort();
    tl_buf_fini(&parts.text);
    tl_buf_fini(&whole.text);
    fuzz_decode(ops, true, data + 1, size - 1, size, &whole);
    tl_buf_fini(&whole.text);
    return 0;
}

#endif
