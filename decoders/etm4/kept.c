/* SPDX-License-Identifier: MIT */
#include "etm4/kept.h"

#include "flow/batch.h"

#include <stdlib.h>

void tl_kept_fini(struct tl_kept *kept)
{
    free(kept->items);
    free(kept->steps);
    free(kept->losses);
    tl_buf_fini(&kept->payload);
    *kept = (struct tl_kept){0};
}

void tl_kept_reset(struct tl_kept *kept, size_t most)
{
    if (kept->cap * sizeof *kept->items + kept->cap_steps * sizeof *kept->steps > most)
        tl_kept_fini(kept);
    kept->n = kept->n_steps = kept->n_losses = 0;
    tl_buf_reset(&kept->payload);
}

size_t tl_kept_bytes(const struct tl_kept *kept)
{
    return kept->n * sizeof *kept->items + kept->n_steps * sizeof *kept->steps +
           kept->n_losses * sizeof *kept->losses + kept->payload.n;
}

static int keep_path(struct tl_kept *kept, struct tl_item *item)
{
    if (tl_grow(&kept->steps, &kept->cap_steps, kept->n_steps + item->n, sizeof *kept->steps) < 0)
        return TL_NOMEM;
    memcpy(kept->steps + kept->n_steps, item->path, item->n * sizeof *item->path);
    item->path = (const uintptr_t *)kept->n_steps;
    kept->n_steps += item->n;
    return TL_OK;
}

static int keep_payload(struct tl_kept *kept, struct tl_item *item)
{
    const uint8_t *const data = item->data;
    item->data = (const uint8_t *)(uintptr_t)kept->payload.n;
    return tl_buf_add(&kept->payload, data, item->n);
}

int tl_kept_items(struct tl_kept *kept, const struct tl_item *items, size_t n)
{
    int rc = tl_grow(&kept->items, &kept->cap, kept->n + n, sizeof *kept->items);
    for (size_t i = 0; rc == TL_OK && i < n; i++) {
        struct tl_item *const item = &kept->items[kept->n];
        *item = items[i];
        if (item->kind == TL_ITEM_PATH)
            rc = keep_path(kept, item);
        else if (item->kind == TL_ITEM_SOFTWARE)
            rc = keep_payload(kept, item);
        kept->n++;
    }
    return rc;
}

int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset, uint64_t bytes)
{
    if (tl_grow(&kept->losses, &kept->cap_losses, kept->n_losses + 1, sizeof *kept->losses) < 0)
        return TL_NOMEM;
    kept->losses[kept->n_losses++] = (struct tl_kept_loss){reason, offset, bytes, kept->n};
    return TL_OK;
}

/* Indices become pointers, now that nothing moves any more. */
static void resolve(struct tl_kept *kept)
{
    for (size_t i = 0; i < kept->n; i++) {
        struct tl_item *const item = &kept->items[i];
        if (item->kind == TL_ITEM_PATH)
            item->path = kept->steps + (uintptr_t)item->path;
        else if (item->kind == TL_ITEM_SOFTWARE)
            item->data = kept->payload.p + (uintptr_t)item->data;
    }
}

/* For sinks that want single blocks. */
static int deliver_single(const struct tl_item *items, size_t n, const struct tl_stream_sink *sink)
{
    struct tl_item out[TL_BATCH_ITEMS];
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t steps = items[i].kind == TL_ITEM_PATH ? items[i].n : 1;
        for (size_t k = 0; k < steps; k++) {
            out[used++] = items[i].kind == TL_ITEM_PATH ? tl_path_item(&items[i], k) : items[i];
            if (used < TL_BATCH_ITEMS)
                continue;
            const int rc = sink->items(sink->context, out, used);
            if (rc < 0)
                return rc;
            used = 0;
        }
    }
    return used ? sink->items(sink->context, out, used) : TL_OK;
}

static int deliver_items(const struct tl_item *items, size_t n, const struct tl_stream_sink *sink)
{
    if (!sink->paths)
        return deliver_single(items, n, sink);
    for (size_t i = 0; i < n; i += TL_BATCH_ITEMS) {
        const size_t part = n - i < TL_BATCH_ITEMS ? n - i : TL_BATCH_ITEMS;
        const int rc = sink->items(sink->context, items + i, part);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_kept_deliver(struct tl_kept *kept, const struct tl_stream_sink *sink)
{
    size_t at = 0;
    resolve(kept);
    for (size_t i = 0; i < kept->n_losses; i++) {
        const struct tl_kept_loss *const loss = &kept->losses[i];
        int rc = deliver_items(kept->items + at, loss->before - at, sink);
        if (rc >= 0)
            rc = sink->loss(sink->context, loss->reason, loss->offset, loss->bytes);
        if (rc < 0)
            return rc;
        at = loss->before;
    }
    const int rc = deliver_items(kept->items + at, kept->n - at, sink);
    return rc < 0 ? rc : TL_OK;
}
