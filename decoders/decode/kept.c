/* SPDX-License-Identifier: MIT */
#include "decode/kept.h"

#include <stdlib.h>

void tl_kept_init(struct tl_kept *kept)
{
    *kept = (struct tl_kept){.end = &kept->first};
}

void tl_kept_fini(struct tl_kept *kept)
{
    for (size_t i = 0; i < kept->cap_digests; i++)
        tl_buf_fini(&kept->digests[i]);
    free(kept->digests);
    free(kept->losses);
    tl_kept_init(kept);
}

void tl_kept_batch(struct tl_kept *kept, struct tl_item_buffer *buffer, size_t n)
{
    buffer->next = NULL;
    buffer->n = n;
    *kept->end = buffer;
    kept->end = &buffer->next;
    kept->n++;
    kept->bytes += sizeof *buffer;
}

int tl_kept_digest(struct tl_kept *kept, const struct tl_stream_sink *sink,
                   const struct tl_item *items, size_t n)
{
    const bool continues =
        kept->n > 0 && (kept->n_losses == 0 || kept->losses[kept->n_losses - 1].before < kept->n);
    if (!continues) {
        const size_t had = kept->cap_digests;
        if (tl_grow(&kept->digests, &kept->cap_digests, kept->n + 1, sizeof *kept->digests) < 0)
            return TL_NOMEM;
        memset(kept->digests + had, 0, (kept->cap_digests - had) * sizeof *kept->digests);
        tl_buf_reset(&kept->digests[kept->n++]);
    }
    struct tl_buf *const digest = &kept->digests[kept->n - 1];
    const size_t before = digest->n;
    const int rc = sink->digest(sink->context, digest, items, n);
    kept->bytes += digest->n - before;
    return rc;
}

int tl_kept_loss(struct tl_kept *kept, const char *reason, uint64_t offset, uint64_t bytes)
{
    if (tl_grow(&kept->losses, &kept->cap_losses, kept->n_losses + 1, sizeof *kept->losses) < 0)
        return TL_NOMEM;
    kept->losses[kept->n_losses++] = (struct tl_kept_loss){reason, offset, bytes, kept->n};
    return TL_OK;
}

struct tl_kept_mark tl_kept_mark(const struct tl_kept *kept)
{
    return (struct tl_kept_mark){kept->end, kept->n, kept->n_losses, kept->bytes};
}

size_t tl_kept_cut(struct tl_kept *kept, const struct tl_kept_mark *mark,
                   struct tl_item_buffer **buffers)
{
    const size_t n = *mark->end ? kept->n - mark->n : 0;
    *kept->end = *buffers;
    *buffers = *mark->end;
    *mark->end = NULL;
    kept->end = mark->end;
    kept->n = mark->n;
    kept->n_losses = mark->n_losses;
    kept->bytes = mark->bytes;
    return n;
}

size_t tl_kept_reset(struct tl_kept *kept, struct tl_item_buffer **buffers)
{
    const struct tl_kept_mark begin = {&kept->first, 0, 0, 0};
    return tl_kept_cut(kept, &begin, buffers);
}

int tl_kept_deliver(const struct tl_kept *kept, const struct tl_stream_sink *sink)
{
    const struct tl_item_buffer *buffer = kept->first;
    size_t next_loss = 0;
    int rc = TL_OK;
    for (size_t i = 0; rc >= 0 && i <= kept->n; i++) {
        for (; rc >= 0 && next_loss < kept->n_losses && kept->losses[next_loss].before == i;
             next_loss++) {
            const struct tl_kept_loss *const loss = &kept->losses[next_loss];
            rc = sink->loss(sink->context, loss->reason, loss->offset, loss->bytes);
        }
        if (rc >= 0 && buffer) {
            rc = sink->items(sink->context, buffer->items, buffer->n);
            buffer = buffer->next;
        } else if (rc >= 0 && i < kept->n) {
            const struct tl_buf *const digest = &kept->digests[i];
            rc = sink->digested(sink->context, (struct tl_bytes){digest->p, digest->n});
        }
    }
    return rc < 0 ? rc : TL_OK;
}
