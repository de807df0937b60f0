/* SPDX-License-Identifier: MIT */
/*
 * Pieces of images in memory, shared by all that have the same bytes. A tree (tsearch(3)) of pieces
 * by size and content: pieces of one size are few, and differ early, so a comparison costs little
 * beside reading the file.
 */
#include "image/pool.h"

#include "image/image_parts.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    const uint8_t *p;
    size_t n, uses;
};

struct tl_image_pool {
    pthread_mutex_t lock;
    void *pieces;
    size_t bytes;
};

static int by_content(const void *a, const void *b)
{
    const struct piece *const x = a, *const y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->p == y->p ? 0 : memcmp(x->p, y->p, x->n);
}

int tl_image_pool_new(struct tl_image_pool **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return TL_NOMEM;
    pthread_mutex_init(&(*out)->lock, NULL);
    return TL_OK;
}

static void free_piece(void *p)
{
    free((uint8_t *)((struct piece *)p)->p);
    free(p);
}

void tl_image_pool_free(struct tl_image_pool *pool)
{
    if (!pool)
        return;
    tdestroy(pool->pieces, free_piece);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

size_t tl_image_pool_bytes(struct tl_image_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    const size_t n = pool->bytes;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

/* A new piece with a copy of the bytes. */
static struct piece *add_locked(struct tl_image_pool *pool, const uint8_t *p, size_t n)
{
    struct piece *const piece = malloc(sizeof *piece);
    uint8_t *const copy = malloc(n);
    if (piece && copy) {
        memcpy(copy, p, n);
        *piece = (struct piece){copy, n, 0};
    }
    if (!piece || !copy || !tsearch(piece, &pool->pieces, by_content)) {
        free(copy);
        free(piece);
        return NULL;
    }
    pool->bytes += n;
    return piece;
}

const uint8_t *tl_pool_take(struct tl_image_pool *pool, const uint8_t *p, size_t n)
{
    const struct piece wanted = {p, n, 0};
    pthread_mutex_lock(&pool->lock);
    struct piece *const *const found = tfind(&wanted, &pool->pieces, by_content);
    struct piece *const piece = found ? *found : add_locked(pool, p, n);
    if (piece)
        piece->uses++;
    pthread_mutex_unlock(&pool->lock);
    return piece ? piece->p : NULL;
}

void tl_pool_give(struct tl_image_pool *pool, struct tl_bytes bytes)
{
    const struct piece wanted = {bytes.p, bytes.n, 0};
    pthread_mutex_lock(&pool->lock);
    struct piece *const piece = *(struct piece **)tfind(&wanted, &pool->pieces, by_content);
    const bool last = --piece->uses == 0;
    if (last) {
        tdelete(piece, &pool->pieces, by_content);
        pool->bytes -= piece->n;
    }
    pthread_mutex_unlock(&pool->lock);
    if (last)
        free_piece(piece);
}

void tl_image_use_pool(struct tl_image *image, struct tl_image_pool *pool)
{
    image->pool = pool;
}

size_t tl_image_bytes(const struct tl_image *image, size_t *shared)
{
    size_t n = image->owned_bytes + image->symbols.cap * sizeof *image->symbols.v +
               image->symbols.n_aliases * sizeof *image->symbols.aliases +
               image->n_versions * sizeof *image->versions +
               image->n_changes * sizeof *image->changes + image->cap_parts * sizeof *image->parts;
    for (size_t i = 0; i < image->n_layers; i++) {
        const struct tl_layer *const layer = &image->layers[i];
        n += sizeof *layer + layer->cap_regions * sizeof *layer->regions +
             layer->n_symbols * sizeof *layer->symbols;
        for (size_t k = 0; k < TL_SPACE_BITS; k++)
            n += layer->owners >> k & 1 ? layer->extents[k].cap * sizeof *layer->extents[k].v : 0;
    }
    if (shared)
        *shared = image->shared_bytes;
    return n;
}
