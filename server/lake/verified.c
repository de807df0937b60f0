/* SPDX-License-Identifier: MIT */
/*
 * Remembers which frames of stored shards had their checksum, in a table of fixed size. Forgetting
 * all of them only advances a counter, because it is part of what entries are compared with.
 */
#include "lake/verified.h"

#include "base/hash.h"

void tl_verified_init(struct tl_verified *verified)
{
    pthread_mutex_init(&verified->lock, NULL);
}

void tl_verified_fini(struct tl_verified *verified)
{
    pthread_mutex_destroy(&verified->lock);
}

uint64_t tl_verified_shard(const char *key, const struct tl_shard_index *index)
{
    uint64_t hash = tl_fnv_text(key);
    for (size_t i = 0; i < index->n_frames && i < TL_VERIFIED_FRAMES; i++)
        hash = tl_fnv(hash, &index->frames[i].crc, sizeof(index->frames[i].crc));
    return hash ? hash : 1;
}

/* What stands for a shard in the table; changes when everything is forgotten. */
static uint64_t name_locked(const struct tl_verified *verified, uint64_t shard)
{
    return shard + verified->forgotten * UINT64_C(0x9e3779b97f4a7c15);
}

static size_t row_of(uint64_t shard)
{
    return (size_t)(shard >> 32) % TL_VERIFIED_SHARDS;
}

size_t tl_verified_run(struct tl_verified *verified, uint64_t shard, size_t frame, size_t n)
{
    size_t run = 0;
    uint64_t frames = 0;
    pthread_mutex_lock(&verified->lock);
    if (verified->rows[row_of(shard)].shard == name_locked(verified, shard))
        frames = verified->rows[row_of(shard)].frames;
    pthread_mutex_unlock(&verified->lock);
    while (run < n && frame + run < TL_VERIFIED_FRAMES && (frames >> (frame + run) & 1))
        run++;
    return run;
}

void tl_verified_add(struct tl_verified *verified, uint64_t shard, size_t frame, size_t n)
{
    uint64_t frames = 0;
    for (size_t i = frame; i < frame + n && i < TL_VERIFIED_FRAMES; i++)
        frames |= UINT64_C(1) << i;
    pthread_mutex_lock(&verified->lock);
    const uint64_t name = name_locked(verified, shard);
    if (verified->rows[row_of(shard)].shard != name) {
        verified->rows[row_of(shard)].shard = name;
        verified->rows[row_of(shard)].frames = 0;
    }
    verified->rows[row_of(shard)].frames |= frames;
    pthread_mutex_unlock(&verified->lock);
}

void tl_verified_forget(struct tl_verified *verified)
{
    pthread_mutex_lock(&verified->lock);
    verified->forgotten++;
    pthread_mutex_unlock(&verified->lock);
}
