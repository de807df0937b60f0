/* SPDX-License-Identifier: MIT */
/* Counting the hits of a search in a stream, by all threads that are free. */
#ifndef TL_QUERY_SEEK_COUNT_H
#define TL_QUERY_SEEK_COUNT_H

#include "query/seek.h"

/* Between which positions hits are counted. */
struct tl_seek_edges {
    const uint64_t *p; /* they do not decrease */
    size_t n;
    /* NULL, or called before the first hit of a shard is counted, by any thread: replaces those of
     * `edges`, a copy of `p`, that are in the shard by more exact ones. */
    int (*refine)(const void *context, size_t shard, uint64_t *edges, struct tl_fail *fail);
    const void *context;
};

/*
 * Count the hits of a range (never `backward`): counts[k] gets those with exactly `k` of the edges
 * at or before them; it has edges->n + 1 elements, which are added to. Errors as tl_seek_shard()
 * and edges->refine(), or TL_CANCELLED.
 */
TL_MUST_USE int tl_seek_count_between(struct tl_lake *lake, const struct tl_sought *sought,
                                      const struct tl_cut *cut, const struct tl_seek_range *range,
                                      const struct tl_seek_edges *edges, uint64_t *counts,
                                      struct tl_fail *fail);

#endif
