/* SPDX-License-Identifier: MIT */
/*
 * Keeps encoded tiles in a hash table and a list by last use. Tiles are reference-counted, so that
 * one can be sent without a copy while it is evicted.
 */
#include "rpc/tilecache.h"

#include "base/hash.h"
#include "base/prometheus.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4096 /* a power of two */

struct entry {
    struct entry *next;          /* next in the slot */
    struct entry *newer, *older; /* in order of use */
    atomic_uint refs;
    struct tl_tilekey key;
    size_t n;
    uint8_t p[];
};

struct tl_tilecache {
    pthread_mutex_t lock;
    size_t most;
    /* Guarded by the lock: */
    size_t bytes;
    uint64_t hits, misses;
    struct entry *newest, *oldest;
    struct entry *slots[SLOTS];
};

int tl_tilecache_new(struct tl_tilecache **out, size_t most)
{
    struct tl_tilecache *const cache = calloc(1, sizeof *cache);
    if (!cache)
        return TL_NOMEM;
    pthread_mutex_init(&cache->lock, NULL);
    cache->most = most;
    *out = cache;
    return TL_OK;
}

void tl_tilecache_free(struct tl_tilecache *cache)
{
    if (!cache)
        return;
    for (struct entry *e = cache->newest, *older; e; e = older) {
        older = e->older;
        tl_tilecache_let_go(e);
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

static struct entry **slot_of(struct tl_tilecache *cache, const struct tl_tilekey *key)
{
    const uint64_t hash = tl_fnv(TL_FNV, key, sizeof *key);
    return &cache->slots[(hash ^ hash >> 32) & (SLOTS - 1)];
}

static struct entry *find_locked(struct tl_tilecache *cache, const struct tl_tilekey *key)
{
    struct entry *e = *slot_of(cache, key);
    while (e && memcmp(&e->key, key, sizeof *key) != 0)
        e = e->next;
    return e;
}

static void unlink_locked(struct tl_tilecache *cache, struct entry *e)
{
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_locked(struct tl_tilecache *cache, struct entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(e->older ? &e->older->newer : &cache->oldest) = e;
    cache->newest = e;
}

void tl_tilecache_let_go(void *tile)
{
    struct entry *const e = tile;
    if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) == 1)
        free(e);
}

static void forget_locked(struct tl_tilecache *cache, struct entry *e)
{
    struct entry **p = slot_of(cache, &e->key);
    while (*p != e)
        p = &(*p)->next;
    *p = e->next;
    unlink_locked(cache, e);
    cache->bytes -= e->n;
    tl_tilecache_let_go(e);
}

void *tl_tilecache_get(struct tl_tilecache *cache, const struct tl_tilekey *key,
                       struct tl_bytes *out)
{
    pthread_mutex_lock(&cache->lock);
    struct entry *const e = find_locked(cache, key);
    if (e) {
        unlink_locked(cache, e);
        link_locked(cache, e);
        atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
        cache->hits++;
    } else {
        cache->misses++;
    }
    pthread_mutex_unlock(&cache->lock);
    if (e)
        *out = (struct tl_bytes){e->p, e->n};
    return e;
}

void tl_tilecache_put(struct tl_tilecache *cache, const struct tl_tilekey *key,
                      struct tl_bytes tile)
{
    if (tile.n > cache->most)
        return;
    struct entry *const e = malloc(sizeof *e + tile.n);
    if (!e)
        return;
    atomic_init(&e->refs, 1);
    e->key = *key;
    e->n = tile.n;
    memcpy(e->p, tile.p, tile.n);
    pthread_mutex_lock(&cache->lock);
    struct entry *const there = find_locked(cache, key);
    if (there)
        forget_locked(cache, there);
    struct entry **const slot = slot_of(cache, key);
    e->next = *slot;
    *slot = e;
    link_locked(cache, e);
    cache->bytes += e->n;
    while (cache->bytes > cache->most)
        forget_locked(cache, cache->oldest);
    pthread_mutex_unlock(&cache->lock);
}

int tl_tilecache_metrics(struct tl_tilecache *cache, struct tl_buf *out)
{
    pthread_mutex_lock(&cache->lock);
    const uint64_t hits = cache->hits, misses = cache->misses, bytes = cache->bytes;
    pthread_mutex_unlock(&cache->lock);
    const struct tl_metric metrics[] = {
        {"tile_cache_bytes", "Encoded tiles kept in memory.", bytes},
        {"tile_cache_hits_total", "Tiles answered from memory.", hits},
        {"tile_cache_misses_total", "Tiles that were not in memory.", misses},
    };
    return tl_metrics_add(out, metrics, sizeof metrics / sizeof *metrics);
}
