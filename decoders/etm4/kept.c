/* SPDX-License-Identifier: MIT */
#include "etm4/kept.h"

#include <stdlib.h>

int tl_kept_init(struct tl_kept *kept, size_t most)
{
    *kept = (struct tl_kept){.batches = calloc(most, sizeof *kept->batches), .most = most};
    return kept->batches ? TL_OK : TL_NOMEM;
}

void tl_kept_fini(struct tl_kept *kept)
{
    free(kept->batches);
    free(kept->losses);
    *kept = (struct tl_kept){0};
}

void tl_kept_reset(struct tl_kept *kept)
{
    kept->n = kept->n_losses = 0;
}

struct tl_item_room **tl_kept_room(struct tl_kept *kept)
{
    return &kept->batches[kept->n].room;
}

void tl_kept_release(struct tl_kept *kept, struct tl_item_room **rooms)
{
    for (size_t i = 0; i < kept->most && kept->batches[i].room; i++) {
        kept->batches[i].room->next = *rooms;
        *rooms = kept->batches[i].room;
        kept->batches[i].room = NULL;
    }
    tl_kept_reset(kept);
}

int tl_kept_items(struct tl_kept *kept, size_t n)
{
    if (kept->n + 1 == kept->most)
        return TL_LIMIT;
    kept->batches[kept->n++].n = n;
    return TL_OK;
}

int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset, uint64_t bytes)
{
    if (tl_grow(&kept->losses, &kept->cap_losses, kept->n_losses + 1, sizeof *kept->losses) < 0)
        return TL_NOMEM;
    kept->losses[kept->n_losses++] = (struct tl_kept_loss){reason, offset, bytes, kept->n};
    return TL_OK;
}

static int deliver_batches(const struct tl_kept *kept, size_t from, size_t to,
                           const struct tl_stream_sink *sink)
{
    for (size_t i = from; i < to; i++) {
        const struct tl_kept_batch *const batch = &kept->batches[i];
        const int rc = sink->items(sink->context, batch->room->items, batch->n);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink)
{
    size_t at = 0;
    for (size_t i = 0; i < kept->n_losses; i++) {
        const struct tl_kept_loss *const loss = &kept->losses[i];
        int rc = deliver_batches(kept, at, loss->before, sink);
        if (rc >= 0)
            rc = sink->loss(sink->context, loss->reason, loss->offset, loss->bytes);
        if (rc < 0)
            return rc;
        at = loss->before;
    }
    return deliver_batches(kept, at, kept->n, sink);
}
