/* SPDX-License-Identifier: MIT */
/*
 * A walk joins blocks along straight-line flow. This splits its runs of instructions again into the
 * blocks that a decoder would deliver: each ends with an instruction that can change the flow, and
 * has its function. Repeated runs yield the same blocks, with numbers (flow/block.h), so that an
 * indexer recognises them. Not thread-safe.
 */
#ifndef TL_SHARD_RUNS_H
#define TL_SHARD_RUNS_H

#include "shard/walk.h"

#define TL_RUNS_LISTS 4096

struct tl_block_run;

struct tl_runs {
    const struct tl_image *image;              /* borrowed; NULL: no functions */
    struct tl_block_run *lists[TL_RUNS_LISTS]; /* hash table by content */
    size_t bytes;                              /* total size */
    uint32_t blocks;                           /* block numbers assigned */
};

/* Free; applies to an object zeroed except for `image`. */
void tl_runs_fini(struct tl_runs *runs);

/*
 * Split the PATH items of a walk with TL_WALK_SPANS; `now` is the state before the first item. The
 * blocks are valid until the next call. TL_NOMEM, TL_BAD.
 */
TL_MUST_USE int tl_runs_split(struct tl_runs *runs, struct tl_walk *walk,
                              const struct tl_flow_now *now);

#endif
