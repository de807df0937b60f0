/* SPDX-License-Identifier: MIT */
/*
 * Adds functions' counts of a shard as its buckets end. They are in sorted lists, since a bucket
 * has some dozens of a program's thousands of functions.
 */
#include "shard/function_counts.h"

#include <stdlib.h>

void tl_function_counts_begin(struct tl_time_pyramid *counts)
{
    counts->finest = TL_LEVEL_STORED;
    counts->n = TL_COUNTS_LEVEL - TL_LEVEL_STORED + 1;
}

int tl_function_counts_read(struct tl_time_pyramid *out, struct tl_varint_reader *in)
{
    const int r = tl_time_pyramid_read(out, in);
    if (r < 0 || out->n == 0 ||
        (out->finest == TL_LEVEL_STORED && out->finest + out->n == TL_COUNTS_LEVEL + 1))
        return r;
    tl_time_pyramid_fini(out);
    return TL_BAD;
}

static int by_function(const void *a, const void *b)
{
    const struct tl_time_share *const x = a, *const y = b;
    return x->function < y->function ? -1 : x->function > y->function;
}

int tl_function_counts_add(struct tl_time_pyramid *counts, unsigned level, uint64_t number,
                           struct tl_time_share *shares, size_t n)
{
    struct tl_time_bucket add = {.shares = shares, .n_shares = (uint32_t)n};
    struct tl_time_bucket *const to =
        tl_time_level_at(&counts->levels[level - counts->finest], number);
    if (!to)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++)
        add.ticks[TL_TIMED_RUN] += shares[i].ticks;
    if (n > 1)
        qsort(shares, n, sizeof *shares, by_function);
    return tl_time_bucket_merge(to, &add);
}

bool tl_function_counts_has(const struct tl_time_pyramid *counts, uint64_t number)
{
    const struct tl_time_level *const own = &counts->levels[0];
    for (size_t i = 0; counts->n > 0 && i < own->n; i++)
        if (own->p[i].number == number)
            return true;
    return false;
}
