/* SPDX-License-Identifier: MIT */
/*
 * Which frames of stored shards were read and found to have their checksum since the server
 * started: they can be sent from a mapped file without being read again. Of fixed size: what it has
 * no room for is forgotten, and read again. Internally locked.
 */
#ifndef TL_LAKE_VERIFIED_H
#define TL_LAKE_VERIFIED_H

#include "shard/shard.h"

#include <pthread.h>

#define TL_VERIFIED_SHARDS 8192
#define TL_VERIFIED_FRAMES 64 /* of each shard, its first ones; the others are not remembered */

struct tl_verified {
    pthread_mutex_t lock;
    uint64_t forgotten; /* how often */
    struct {
        uint64_t shard; /* hash of its key and checksums, and of `forgotten`; 0: none */
        uint64_t frames;
    } rows[TL_VERIFIED_SHARDS]; /* by the hash */
};

void tl_verified_init(struct tl_verified *verified);
void tl_verified_fini(struct tl_verified *verified);

/* Names a shard in the functions below: its key, and the checksums in its index. */
uint64_t tl_verified_shard(const char *key, const struct tl_shard_index *index);
/* Number of frames from `frame` on, at most `n`, that are known to be good. */
size_t tl_verified_run(struct tl_verified *verified, uint64_t shard, size_t frame, size_t n);
void tl_verified_add(struct tl_verified *verified, uint64_t shard, size_t frame, size_t n);
/* Forget everything: an object was removed or replaced. */
void tl_verified_forget(struct tl_verified *verified);

#endif
