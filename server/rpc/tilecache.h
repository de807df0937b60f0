/* SPDX-License-Identifier: MIT */
/*
 * Cache of encoded tiles that will never change, so that a tile viewed often is computed and
 * compressed once. Evicts the least recently used when it is full. Internally locked, for short
 * times.
 */
#ifndef TL_RPC_TILECACHE_H
#define TL_RPC_TILECACHE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>

#define TL_TILECACHE_BYTES (48u << 20)

struct tl_tilecache;

/* Create a cache of at most `most` bytes, plus a small overhead per tile. TL_NOMEM. */
TL_MUST_USE int tl_tilecache_new(struct tl_tilecache **out, size_t most);
void tl_tilecache_free(struct tl_tilecache *cache); /* accepts NULL */

/*
 * Identifies a tile and its encoding. Zero the whole struct first: keys are compared byte by byte.
 */
struct tl_tilekey {
    char trace[64];
    uint64_t generation, index;
    uint32_t axis, level, lane_from, lane_to;
    bool gzip;
};

/* Get a tile's bytes, valid until tl_tilecache_let_go() is called with the result, even if the
 * cache is freed before. NULL: not cached. */
void *tl_tilecache_get(struct tl_tilecache *cache, const struct tl_tilekey *key,
                       struct tl_bytes *out);
void tl_tilecache_let_go(void *tile);
/* Store a copy, if there is memory. */
void tl_tilecache_put(struct tl_tilecache *cache, const struct tl_tilekey *key,
                      struct tl_bytes tile);
/* Append Prometheus text. TL_NOMEM. */
TL_MUST_USE int tl_tilecache_metrics(struct tl_tilecache *cache, struct tl_buf *out);

#endif
