/* SPDX-License-Identifier: MIT */
/*
 * Queues references to the bytes to be sent, and forgets them as the socket takes them. Blocks are
 * reused and shared, so that sending a range does not allocate for each frame.
 */
#include "net/outq.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK  16384
#define LITTLE 1024 /* bytes for which counting is not worth while: requests are counted, too */

struct tl_chunk *tl_chunk_new(size_t n)
{
    if (n > SIZE_MAX - sizeof(struct tl_chunk))
        return NULL;
    struct tl_chunk *const chunk = malloc(sizeof *chunk + n);
    if (chunk)
        *chunk = (struct tl_chunk){.refs = 1, .p = (uint8_t *)(chunk + 1), .n = n, .cap = n};
    return chunk;
}

struct tl_chunk *tl_chunk_of(struct tl_buf *buf)
{
    struct tl_chunk *const chunk = malloc(sizeof *chunk);
    if (chunk) {
        *chunk = (struct tl_chunk){
            .refs = 1, .p = buf->p, .n = buf->n, .cap = buf->cap, .owned = buf->p};
        *buf = (struct tl_buf){0};
    }
    return chunk;
}

struct tl_chunk *tl_chunk_fixed(struct tl_bytes bytes, void (*let_go)(void *owner), void *owner)
{
    struct tl_chunk *const chunk = malloc(sizeof *chunk);
    if (chunk)
        *chunk = (struct tl_chunk){.refs = 1,
                                   .p = (uint8_t *)(uintptr_t)bytes.p,
                                   .n = bytes.n,
                                   .cap = bytes.n,
                                   .owned = owner,
                                   .let_go = let_go};
    return chunk;
}

void tl_chunk_put(struct tl_chunk *chunk)
{
    if (!chunk || --chunk->refs)
        return;
    if (chunk->account)
        tl_account_release(chunk->account, TL_USE_ANSWERS, chunk->held);
    tl_account_put(chunk->account);
    if (chunk->let_go)
        chunk->let_go(chunk->owned);
    else
        free(chunk->owned);
    free(chunk);
}

void tl_chunk_charge(struct tl_chunk *chunk, struct tl_account *account)
{
    const size_t held = chunk->mapped ? chunk->cap / TL_CHUNK_MAPPED : chunk->cap;
    if (held < LITTLE || chunk->account)
        return;
    chunk->held = held;
    chunk->account = tl_account_get(account);
    tl_account_charge(account, TL_USE_ANSWERS, held);
}

static struct tl_slice *slice_at(const struct tl_outq *q, size_t i)
{
    return &q->at[(q->first + i) & (q->cap - 1)];
}

void tl_outq_fini(struct tl_outq *q)
{
    for (size_t i = 0; i < q->count; i++)
        tl_chunk_put(slice_at(q, i)->chunk);
    tl_chunk_put(q->block);
    free(q->at);
    *q = (struct tl_outq){0};
}

static int make_room(struct tl_outq *q)
{
    if (q->count < q->cap)
        return TL_OK;
    const size_t cap = q->cap ? q->cap * 2 : 32;
    struct tl_slice *const grown = malloc(cap * sizeof *grown);
    if (!grown)
        return TL_NOMEM;
    for (size_t i = 0; i < q->count; i++)
        grown[i] = *slice_at(q, i);
    free(q->at);
    q->at = grown;
    q->cap = cap;
    q->first = 0;
    return TL_OK;
}

int tl_outq_slice(struct tl_outq *q, struct tl_chunk *chunk, size_t at, size_t n)
{
    const uint8_t *const p = chunk->p + at;
    if (q->count) {
        struct tl_slice *const last = slice_at(q, q->count - 1);
        if (last->chunk == chunk && last->p + last->n == p) {
            last->n += n;
            q->bytes += n;
            return TL_OK;
        }
    }
    const int rc = make_room(q);
    if (rc < 0)
        return rc;
    chunk->refs++;
    *slice_at(q, q->count++) = (struct tl_slice){p, n, chunk};
    q->bytes += n;
    return TL_OK;
}

int tl_outq_copy(struct tl_outq *q, const void *p, size_t n)
{
    if (!q->block || q->block->cap - q->block->n < n) {
        struct tl_chunk *const fresh = tl_chunk_new(n > BLOCK ? n : BLOCK);
        if (!fresh)
            return TL_NOMEM;
        fresh->n = 0;
        tl_chunk_put(q->block);
        q->block = fresh;
    }
    struct tl_chunk *const block = q->block;
    const size_t at = block->n;
    memcpy(block->p + at, p, n);
    const int rc = tl_outq_slice(q, block, at, n);
    if (rc == TL_OK)
        block->n += n;
    return rc;
}

int tl_outq_peek(const struct tl_outq *q, struct iovec *out, int max)
{
    int n = 0;
    for (; n < max && (size_t)n < q->count; n++) {
        const struct tl_slice *const s = slice_at(q, (size_t)n);
        out[n] = (struct iovec){(void *)(uintptr_t)s->p, s->n};
    }
    return n;
}

int32_t tl_outq_blank(struct tl_outq *q)
{
    const int32_t mapped = slice_at(q, 0)->chunk->mapped;
    size_t most = 0;
    if (mapped == 0)
        return 0;
    for (size_t i = 0; i < q->count; i++)
        if (slice_at(q, i)->chunk->mapped == mapped && slice_at(q, i)->n > most)
            most = slice_at(q, i)->n;
    struct tl_chunk *const zeros = tl_chunk_new(most);
    if (!zeros)
        return 0;
    memset(zeros->p, 0, most);
    for (size_t i = 0; i < q->count; i++) {
        struct tl_slice *const s = slice_at(q, i);
        if (s->chunk->mapped != mapped)
            continue;
        tl_chunk_put(s->chunk);
        s->p = zeros->p;
        s->chunk = zeros;
        zeros->refs++;
    }
    tl_chunk_put(zeros);
    return mapped;
}

void tl_outq_drop(struct tl_outq *q, size_t n)
{
    q->bytes -= n;
    while (n) {
        struct tl_slice *const s = slice_at(q, 0);
        if (n < s->n) {
            s->p += n;
            s->n -= n;
            return;
        }
        n -= s->n;
        tl_chunk_put(s->chunk);
        q->first = (q->first + 1) & (q->cap - 1);
        q->count--;
    }
    /* Everything is written: reuse the block instead of allocating a new one. */
    if (!q->count && q->block && q->block->refs == 1)
        q->block->n = 0;
}
