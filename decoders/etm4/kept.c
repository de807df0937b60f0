/* SPDX-License-Identifier: MIT */
#include "etm4/kept.h"

#include "flow/batch.h"

#include <stdlib.h>

#define TAKEN 1u
#define PATH  2u
#define WHOLE 4u
#define TAGS  7u /* bits that are 0 in a block's address */

#define ITEM_WORDS (1 + (sizeof(struct tl_item) + 7) / 8)

void tl_kept_fini(struct tl_kept *kept)
{
    free(kept->words);
    free(kept->steps);
    free(kept->losses);
    *kept = (struct tl_kept){0};
}

void tl_kept_reset(struct tl_kept *kept, size_t most)
{
    if (kept->cap * sizeof *kept->words + kept->cap_steps * sizeof *kept->steps > most)
        tl_kept_fini(kept);
    kept->n = kept->n_steps = kept->n_losses = 0;
}

size_t tl_kept_bytes(const struct tl_kept *kept)
{
    return kept->n * sizeof *kept->words + kept->n_steps * sizeof *kept->steps +
           kept->n_losses * sizeof *kept->losses;
}

static int keep_path(struct tl_kept *kept, const struct tl_item *item)
{
    if (tl_grow(&kept->steps, &kept->cap_steps, kept->n_steps + item->n, sizeof *kept->steps) < 0)
        return TL_NOMEM;
    memcpy(kept->steps + kept->n_steps, item->path, item->n * sizeof *item->path);
    kept->n_steps += item->n;
    uint64_t *const w = kept->words + kept->n;
    w[0] = (uint64_t)item->n << 8 | PATH;
    w[1] = item->offset;
    w[2] = item->value;
    kept->n += 3;
    return TL_OK;
}

static int keep_other(struct tl_kept *kept, const struct tl_item *item)
{
    kept->words[kept->n] = WHOLE;
    memcpy(kept->words + kept->n + 1, item, sizeof *item);
    kept->n += ITEM_WORDS;
    if (item->kind != TL_ITEM_SOFTWARE)
        return TL_OK;
    const size_t words = (item->n + 7) / 8;
    if (tl_grow(&kept->words, &kept->cap, kept->n + words, sizeof *kept->words) < 0)
        return TL_NOMEM;
    memcpy(kept->words + kept->n, item->data, item->n);
    kept->n += words;
    return TL_OK;
}

int tl_kept_items(struct tl_kept *kept, const struct tl_item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_item *const item = &items[i];
        int rc = kept->cap - kept->n >= ITEM_WORDS
                     ? TL_OK
                     : tl_grow(&kept->words, &kept->cap, kept->n + ITEM_WORDS, sizeof *kept->words);
        if (rc == TL_OK && item->kind == TL_ITEM_BLOCK && item->n == item->block->n) {
            uint64_t *const w = kept->words + kept->n;
            w[0] = (uintptr_t)item->block | (item->flags & TL_ITEM_TAKEN ? TAKEN : 0);
            w[1] = item->offset;
            kept->n += 2;
        } else if (rc == TL_OK) {
            rc = item->kind == TL_ITEM_PATH ? keep_path(kept, item) : keep_other(kept, item);
        }
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset, uint64_t bytes)
{
    if (tl_grow(&kept->losses, &kept->cap_losses, kept->n_losses + 1, sizeof *kept->losses) < 0)
        return TL_NOMEM;
    kept->losses[kept->n_losses++] = (struct tl_kept_loss){reason, offset, bytes, kept->n};
    return TL_OK;
}

/* A delivery under way. */
struct delivery {
    const struct tl_kept *kept;
    const struct tl_stream_sink *sink;
    size_t at;      /* the next word */
    size_t at_step; /* the next step */
    size_t n;
    struct tl_item items[TL_BATCH_ITEMS];
};

static int send(struct delivery *d)
{
    const size_t n = d->n;
    d->n = 0;
    return n ? d->sink->items(d->sink->context, d->items, n) : TL_OK;
}

/* A path's blocks, one by one. */
static int send_single(struct delivery *d, const struct tl_item *path)
{
    for (size_t i = 0; i < path->n; i++) {
        const int rc = d->n == TL_BATCH_ITEMS ? send(d) : TL_OK;
        if (rc < 0)
            return rc;
        d->items[d->n++] = tl_path_item(path, i);
    }
    return TL_OK;
}

static struct tl_item take_path(struct delivery *d)
{
    const uint64_t *const w = d->kept->words + d->at;
    const uintptr_t *const steps = d->kept->steps + d->at_step;
    d->at += 3;
    d->at_step += (size_t)(w[0] >> 8);
    return (struct tl_item){.kind = TL_ITEM_PATH,
                            .flags = TL_ITEM_HAS_PC,
                            .n = (uint32_t)(w[0] >> 8),
                            .pc = tl_path_block(*steps)->pc,
                            .value = w[2],
                            .offset = w[1],
                            .path = steps};
}

static struct tl_item take_block(struct delivery *d)
{
    const uint64_t *const w = d->kept->words + d->at;
    const struct tl_block *const b = (const struct tl_block *)(uintptr_t)(w[0] & ~(uint64_t)TAGS);
    d->at += 2;
    return (struct tl_item){.kind = TL_ITEM_BLOCK,
                            .flags = (uint8_t)(TL_ITEM_HAS_PC | (w[0] & TAKEN ? TL_ITEM_TAKEN : 0)),
                            .n = b->n,
                            .pc = b->pc,
                            .offset = w[1],
                            .block = b};
}

static struct tl_item take_other(struct delivery *d)
{
    struct tl_item item;
    memcpy(&item, d->kept->words + d->at + 1, sizeof item);
    d->at += ITEM_WORDS;
    if (item.kind == TL_ITEM_SOFTWARE) {
        item.data = (const uint8_t *)(d->kept->words + d->at);
        d->at += (item.n + 7) / 8;
    }
    return item;
}

/* Deliver up to word `end`. */
static int deliver_to(struct delivery *d, size_t end)
{
    while (d->at < end) {
        int rc = d->n == TL_BATCH_ITEMS ? send(d) : TL_OK;
        if (rc < 0)
            return rc;
        const uint64_t word = d->kept->words[d->at];
        if (word & PATH) {
            const struct tl_item path = take_path(d);
            if (d->sink->paths)
                d->items[d->n++] = path;
            else
                rc = send_single(d, &path);
        } else {
            d->items[d->n++] = word & WHOLE ? take_other(d) : take_block(d);
        }
        if (rc < 0)
            return rc;
    }
    return send(d);
}

int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink)
{
    struct delivery d;
    d.kept = kept;
    d.sink = sink;
    d.at = d.at_step = d.n = 0;
    for (size_t i = 0; i < kept->n_losses; i++) {
        const struct tl_kept_loss *const loss = &kept->losses[i];
        int rc = deliver_to(&d, loss->before);
        if (rc >= 0)
            rc = sink->loss(sink->context, loss->reason, loss->offset, loss->bytes);
        if (rc < 0)
            return rc;
    }
    const int rc = deliver_to(&d, kept->n);
    return rc < 0 ? rc : TL_OK;
}
