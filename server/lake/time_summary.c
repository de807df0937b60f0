/* SPDX-License-Identifier: MIT */
/*
 * Summaries are read in batches and passed on between the catalog's calls, since whoever gets them
 * may need the catalog, or a shard. What a lane keeps becomes coarser as it grows: a tile shows 512
 * buckets of however long a trace.
 */
#include "lake/time_summary.h"

#include "base/cancel.h"

#include <stdlib.h>

#define BATCH 256 /* summaries */
#define PART  8   /* of options.summary_buckets: these buckets are larger */

/* ---- from the catalog ----------------------------------------------------------------------- */

struct batch {
    struct tl_time_pyramid *v;
    size_t n;
    bool by_position;
};

static int read_summary(void *context, struct tl_bytes bytes)
{
    struct batch *const batch = context;
    struct tl_varint_reader in = {bytes.p, bytes.p + bytes.n, false};
    struct tl_buckets buckets;
    if (batch->n == BATCH)
        return TL_BAD;
    int r = tl_buckets_read(&buckets, &in);
    if (r < 0)
        return r;
    tl_buckets_fini(&buckets);
    struct tl_time_pyramid *const out = &batch->v[batch->n++];
    r = in.p < in.end ? tl_time_pyramid_read(out, &in) : TL_OK;
    if (r < 0 || !batch->by_position)
        return r;
    tl_time_pyramid_fini(out);
    return in.p < in.end ? tl_time_pyramid_read(out, &in) : TL_OK;
}

static int read_batch(const struct tl_cut *cut, size_t row, size_t end, struct batch *batch,
                      struct tl_fail *fail)
{
    struct tl_catalog *const catalog = cut->gen->lake->catalog;
    batch->n = 0;
    const int r = catalog->ops->summaries(catalog, cut->gen->trace, cut->gen->number,
                                          cut->lane->index, row, end, read_summary, batch, fail);
    return r >= 0 && batch->n != end - row ? TL_BAD : r;
}

int tl_time_summary_each(const struct tl_cut *cut, bool by_position, size_t row, size_t end,
                         tl_each_time_summary *each, void *context, size_t *next,
                         struct tl_fail *fail)
{
    struct batch batch = {.v = calloc(BATCH, sizeof *batch.v), .by_position = by_position};
    int r = batch.v ? TL_OK : TL_NOMEM;
    end = end < cut->n_stored ? end : cut->n_stored;
    for (; row < end && r >= 0; row += batch.n) {
        r = read_batch(cut, row, end - row < BATCH ? end : row + BATCH, &batch, fail);
        for (size_t i = 0; i < batch.n; i++) {
            if (r >= 0)
                r = each(context, row + i, &batch.v[i], fail);
            tl_time_pyramid_fini(&batch.v[i]);
        }
        if (r >= 0)
            r = tl_cancel_check();
    }
    *next = row;
    free(batch.v);
    return r;
}

/* ---- what a lane keeps ---------------------------------------------------------------------- */

static int coarsen(struct tl_time_summary *s, unsigned levels)
{
    struct tl_time_level up = {0};
    const int r = tl_time_level_coarsen(&up, &s->buckets, levels);
    tl_time_level_fini(&s->buckets);
    s->buckets = up;
    s->level += levels;
    return r;
}

struct adding {
    struct tl_time_summary *to;
    const struct tl_cut *cut;
};

static int add_shard(void *context, size_t row, const struct tl_time_pyramid *pyramid,
                     struct tl_fail *fail)
{
    const struct adding *const a = context;
    struct tl_time_summary *const s = a->to;
    const size_t most = a->cut->gen->lake->options.summary_buckets / PART;
    unsigned shift;
    int r = TL_OK;
    (void)fail;
    s->unknown |= pyramid->n == 0 && (s->by_position || a->cut->rows[row].anchors > 0);
    if (pyramid->n > 0 && pyramid->finest > s->level)
        r = coarsen(s, pyramid->finest - s->level);
    const struct tl_time_level *const level = tl_time_pyramid_at(pyramid, s->level, &shift);
    for (size_t i = 0; level && !s->unknown && i < level->n && r >= 0; i++) {
        struct tl_time_bucket *const to =
            tl_time_level_at(&s->buckets, level->p[i].number >> shift);
        r = to ? tl_time_bucket_merge(to, &level->p[i]) : TL_NOMEM;
    }
    while (r >= 0 && s->buckets.n > most && s->level + 1 < TL_TIME_LEVELS)
        r = coarsen(s, 1);
    s->shards = row + 1;
    return r;
}

void tl_time_summary_forget(struct tl_time_summary *s)
{
    pthread_mutex_lock(&s->lock);
    tl_time_level_fini(&s->buckets);
    s->level = 0;
    s->shards = 0;
    s->unknown = false;
    pthread_mutex_unlock(&s->lock);
}

/* Bring the lane's summary up to the cut. */
static int catch_up(const struct tl_cut *cut, struct tl_time_summary *s, struct tl_fail *fail)
{
    struct adding adding = {s, cut};
    size_t next;
    if (s->shards >= cut->n_stored)
        return TL_OK;
    return tl_time_summary_each(cut, s->by_position, (size_t)s->shards, cut->n_stored, add_shard,
                                &adding, &next, fail);
}

/* Copy the buckets that lie in [number, number + n) of a coarser level. */
static int copy_part(const struct tl_time_summary *s, uint64_t number, uint64_t n, unsigned shift,
                     struct tl_time_level *out)
{
    int r = TL_OK;
    for (size_t i = 0; i < s->buckets.n && r >= 0; i++) {
        const uint64_t up = s->buckets.p[i].number >> shift;
        if (up < number || up - number >= n)
            continue;
        struct tl_time_bucket *const to = tl_time_level_at(out, s->buckets.p[i].number);
        r = to ? tl_time_bucket_merge(to, &s->buckets.p[i]) : TL_NOMEM;
    }
    return r;
}

int tl_time_summary_get(const struct tl_cut *cut, struct tl_time_summary *s, unsigned level,
                        uint64_t number, uint64_t n, struct tl_time_level *out, unsigned *shift,
                        size_t *rows, bool *found, struct tl_fail *fail)
{
    pthread_mutex_lock(&s->lock);
    int r = catch_up(cut, s, fail);
    *found = r >= 0 && !s->unknown && s->level <= level;
    *shift = *found ? 2 * (level - s->level) : 0;
    *rows = *found ? (size_t)s->shards : 0;
    if (*found)
        r = copy_part(s, number, n, *shift, out);
    pthread_mutex_unlock(&s->lock);
    return r;
}
