/* SPDX-License-Identifier: MIT */
/*
 * A walk joins blocks where the flow went straight on. Here its runs of instructions are taken
 * apart again, to the blocks that a decoder would deliver: each ends with an instruction that can
 * change the flow, and has its function. Those of runs that come again are the same blocks, with
 * numbers (flow/block.h), so that an indexer knows them. Not thread-safe.
 */
#ifndef TL_STORE_RUNS_H
#define TL_STORE_RUNS_H

#include "store/walk.h"

#define TL_RUNS_LISTS 4096

struct tl_block_run;

struct tl_runs {
    const struct tl_image *image;              /* borrowed; NULL: there are no functions */
    struct tl_block_run *lists[TL_RUNS_LISTS]; /* by a hash of what they are */
    size_t bytes;                              /* of all */
    uint32_t blocks;                           /* numbers that were given */
};

/* Of one that is zeroed but for `image`. */
void tl_runs_fini(struct tl_runs *runs);

/*
 * Make the blocks of a walk of TL_WALK_SPANS PATH items, `now` being what holds in front of the
 * first item. They are valid until the next call. TL_NOMEM, TL_BAD.
 */
TL_MUST_USE int tl_runs_split(struct tl_runs *runs, struct tl_walk *walk,
                              const struct tl_flow_now *now);

#endif
