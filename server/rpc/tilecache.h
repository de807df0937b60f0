/* SPDX-License-Identifier: MIT */
/*
 * Encoded tiles that will never change, so that what many look at is computed and packed once. The
 * least used go first where there are too many bytes. Internally locked, for moments.
 */
#ifndef TL_RPC_TILECACHE_H
#define TL_RPC_TILECACHE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>

#define TL_TILECACHE_BYTES (48u << 20)

struct tl_tilecache;

/* It keeps at most `most` bytes, and a little for each tile. TL_NOMEM. */
TL_MUST_USE int tl_tilecache_new(struct tl_tilecache **out, size_t most);
void tl_tilecache_free(struct tl_tilecache *cache); /* NULL is fine */

/* Which tile, and how it is encoded. Zero all of it first: it is compared byte by byte. */
struct tl_tilekey {
    char trace[64];
    uint64_t generation, index;
    uint32_t axis, level, lane_from, lane_to;
    bool gzip;
};

/* The tile's bytes, which live until tl_tilecache_let_go() is called with what is returned, even if
 * the cache is gone by then. NULL: it is not there. */
void *tl_tilecache_get(struct tl_tilecache *cache, const struct tl_tilekey *key,
                       struct tl_bytes *out);
void tl_tilecache_let_go(void *tile);
/* Keep a copy, if there is memory. */
void tl_tilecache_put(struct tl_tilecache *cache, const struct tl_tilekey *key,
                      struct tl_bytes tile);
/* Append Prometheus text. TL_NOMEM. */
TL_MUST_USE int tl_tilecache_metrics(struct tl_tilecache *cache, struct tl_buf *out);

#endif
