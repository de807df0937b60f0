/* SPDX-License-Identifier: MIT */
/* What ran when, in the buckets of a tile on the time axis. */
#ifndef TL_QUERY_TIME_TILE_H
#define TL_QUERY_TIME_TILE_H

#include "lake/timed_walk.h"
#include "lake_tiles.h"

struct tl_time_tile {
    unsigned level;
    uint64_t first;                                 /* where the first bucket begins, as shown */
    bool known;                                     /* false: too much would have to be walked */
    bool walked;                                    /* all of it was walked */
    bool shown;                                     /* durations are as shown, not in ticks */
    struct tl_time_bucket buckets[TL_TILE_BUCKETS]; /* by their numbers from the first one's on */
};

/*
 * Fill the buckets of a zeroed tile with its level and begin: from buckets of shards where these
 * are fine enough, from the catalog's summaries of many shards, and by walking. If it is walked
 * completely, at most `positions`, `each` is called for all items of the range, and some around it,
 * with `context`. Free with tl_time_tile_fini(), also after an error. Errors as tl_timed_walk().
 */
TL_MUST_USE int tl_time_tile_fill(struct tl_time_tile *tile, const struct tl_cut *cut,
                                  uint64_t positions, tl_cut_each *each, void *context,
                                  struct tl_fail *fail);
void tl_time_tile_fini(struct tl_time_tile *tile);

/* A duration of the tile as shown, in its bucket `i`. */
uint64_t tl_time_tile_shown(const struct tl_time_tile *tile, const struct tl_lane *lane, size_t i,
                            uint64_t duration);

#endif
