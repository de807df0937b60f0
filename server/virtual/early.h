/* SPDX-License-Identifier: MIT */
/* The index of shards that are outlined, but not indexed yet, for questions about them. */
#ifndef TL_VIRTUAL_EARLY_H
#define TL_VIRTUAL_EARLY_H

#include <stddef.h>

struct tl_lane;
struct tl_view;

/*
 * Replace the first of these `n` views, consecutive shards of a lane of an outline, by views of the
 * same shards with their index: as many as are in memory from before, or can be indexed in a
 * fraction of a second. Returns their number; fewer than can be if memory or the medium fails, or
 * the request is cancelled. A growing shard may have grown. The index is what decoding would have
 * made, without calls, which readers count themselves. One caller at a time for each lane, others
 * wait.
 */
size_t tl_index_early(struct tl_lane *lane, struct tl_view **views, size_t n);

#endif
