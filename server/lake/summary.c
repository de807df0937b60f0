/* SPDX-License-Identifier: MIT */
/*
 * Summaries of spans of many shards, read from the catalog without opening a shard. A lane keeps
 * the buckets of all its shards. When these become too many, groups of four are merged, so that a
 * trace of any length uses at most lake->options.summary_buckets in memory. For a part of it for
 * which those are too coarse, finer ones are read from the catalog, as coarse as the part allows.
 */
#include "lake/cut.h"

/*
 * Fewer than this fraction of the maximum number of buckets are too few for the columns of a tile.
 */
#define TOO_FEW 32

/* Buckets being summed up. */
struct sum {
    struct tl_buckets *all;
    size_t most;
};

static int coarsen(struct tl_buckets *buckets)
{
    struct tl_buckets up = {.level = buckets->level + 1};
    const int r = tl_buckets_merge(&up, buckets);
    if (r < 0) {
        tl_buckets_fini(&up);
        return r;
    }
    tl_buckets_fini(buckets);
    *buckets = up;
    return TL_OK;
}

static int add(void *context, struct tl_bytes bytes)
{
    const struct sum *const sum = context;
    struct tl_buckets part;
    int r = tl_buckets_decode(&part, bytes);
    if (r < 0)
        return r;
    r = part.level == TL_LEVEL_SUMMARY ? tl_buckets_merge(sum->all, &part) : TL_BAD;
    tl_buckets_fini(&part);
    while (r >= 0 && sum->all->n > sum->most)
        r = coarsen(sum->all);
    return r;
}

/* Add shards [first, last). */
static int read(const struct tl_cut *cut, uint64_t first, uint64_t last, struct tl_buckets *into,
                struct tl_fail *fail)
{
    struct tl_lake *const lake = cut->gen->lake;
    struct sum sum = {into, lake->options.summary_buckets};
    return lake->catalog->ops->summaries(lake->catalog, cut->gen->trace, cut->gen->number,
                                         cut->lane->index, first, last, add, &sum, fail);
}

/* Copy the lane's buckets that overlap positions [from, to). */
static int copy_part(struct tl_lane *lane, uint64_t from, uint64_t to, struct tl_buckets *out,
                     uint64_t *shards)
{
    int r = TL_OK;
    pthread_mutex_lock(&lane->lock);
    const struct tl_buckets *const all = &lane->summary;
    const uint64_t low = from >> 2 * all->level, high = to >> 2 * all->level;
    const size_t i = low <= all->first           ? 0
                     : low - all->first < all->n ? (size_t)(low - all->first)
                                                 : all->n;
    size_t n = all->n - i;
    if (high < all->first)
        n = 0;
    else if (high - all->first - i < n)
        n = (size_t)(high - all->first - i) + 1;
    *shards = lane->summary_shards;
    *out = (struct tl_buckets){.level = all->level, .first = all->first + i};
    if (n > 0)
        r = tl_grow(&out->p, &out->cap, n, sizeof(*out->p));
    if (r >= 0 && n > 0) {
        memcpy(out->p, all->p + i, n * sizeof(*out->p));
        out->n = n;
    }
    pthread_mutex_unlock(&lane->lock);
    return r;
}

/* Store a newer summary in the lane, unless another thread was faster. */
static void keep(struct tl_lane *lane, struct tl_buckets *summary, uint64_t shards)
{
    pthread_mutex_lock(&lane->lock);
    if (shards > lane->summary_shards) {
        tl_buckets_fini(&lane->summary);
        lane->summary = *summary;
        lane->summary_shards = shards;
        *summary = (struct tl_buckets){0};
    }
    pthread_mutex_unlock(&lane->lock);
}

void tl_lane_forget_summary_locked(struct tl_lane *lane)
{
    tl_buckets_fini(&lane->summary);
    lane->summary.level = TL_LEVEL_SUMMARY;
    lane->summary_shards = 0;
}

/* Bring the lane's summary up to the cut. */
static int catch_up(const struct tl_cut *cut, struct tl_fail *fail)
{
    struct tl_lane *const lane = cut->lane;
    struct tl_buckets all = {0};
    uint64_t shards;
    pthread_mutex_lock(&lane->lock);
    shards = lane->summary_shards;
    pthread_mutex_unlock(&lane->lock);
    if (shards >= cut->n_stored)
        return TL_OK;
    int r = copy_part(lane, 0, UINT64_MAX, &all, &shards);
    if (r >= 0 && shards < cut->n_stored)
        r = read(cut, shards, cut->n_stored, &all, fail);
    if (r >= 0 && shards < cut->n_stored)
        keep(lane, &all, cut->n_stored);
    tl_buckets_fini(&all);
    return r;
}

int tl_cut_summary(const struct tl_cut *cut, uint64_t from, uint64_t to, struct tl_buckets *out,
                   uint64_t *shards, struct tl_fail *fail)
{
    *out = (struct tl_buckets){.level = TL_LEVEL_SUMMARY};
    *shards = 0;
    int r = catch_up(cut, fail);
    if (r >= 0)
        r = copy_part(cut->lane, from, to, out, shards);
    const bool whole = from == 0 && to == UINT64_MAX;
    if (r < 0 || whole || out->level == TL_LEVEL_SUMMARY ||
        out->n >= cut->gen->lake->options.summary_buckets / TOO_FEW)
        return r;
    const size_t first = tl_cut_items_at(cut, from), last = tl_cut_shard_at(cut, to);
    tl_buckets_fini(out);
    *out = (struct tl_buckets){.level = TL_LEVEL_SUMMARY};
    *shards = cut->n_stored;
    return read(cut, first, last < cut->n_stored ? last + 1 : cut->n_stored, out, fail);
}
