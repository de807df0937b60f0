/* SPDX-License-Identifier: MIT */
/*
 * Tiles of a timeline, and the functions that they refer to. Threads and errors as in lake.h.
 */
#ifndef TL_LAKE_TILES_H
#define TL_LAKE_TILES_H

#include "base/err.h"
#include "lake_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_gen;
struct tl_lake;

/* The functions of a trace; tiles refer to them by index + 1. */
struct tl_functions {
    struct tl_function {
        const char *name;
        uint64_t pc;
    } * p;
    size_t n;
    struct tl_gen *gen; /* owns the names */
};
/* Free with tl_functions_fini(), also after an error. */
TL_MUST_USE int tl_lake_functions(struct tl_lake *lake, const char *trace, struct tl_functions *out,
                                  struct tl_fail *fail);
void tl_functions_fini(struct tl_functions *functions);

#define TL_TILE_BUCKETS 512

/* Trace is missing before a position, between two times (both 0: not known). */
struct tl_tile_break {
    uint64_t position, from, to;
    uint8_t flags; /* as in a bucket; TL_FLAG_OFF or SWITCHED_OUT alone: nothing was lost */
};

#define TL_TILE_BREAKS 64 /* maximum number; the first ones are kept */

/* A stream's buckets, one array per property; `tracelake.v1.Lane` describes them. */
struct tl_tile_lane {
    uint32_t lane; /* index of the stream */
    uint64_t insns[TL_TILE_BUCKETS], page[TL_TILE_BUCKETS];
    uint32_t function[TL_TILE_BUCKETS], function2[TL_TILE_BUCKETS], event_mask[TL_TILE_BUCKETS],
        event_count[TL_TILE_BUCKETS];
    uint8_t coverage[TL_TILE_BUCKETS], share[TL_TILE_BUCKETS], share2[TL_TILE_BUCKETS],
        distinct[TL_TILE_BUCKETS], privilege[4 * TL_TILE_BUCKETS], branches[TL_TILE_BUCKETS],
        flags[TL_TILE_BUCKETS], depth_min[TL_TILE_BUCKETS], depth_max[TL_TILE_BUCKETS],
        lost[TL_TILE_BUCKETS], switched_out[TL_TILE_BUCKETS];
    struct tl_tile_break breaks[TL_TILE_BREAKS];
    size_t n_breaks;
    bool behind; /* what is in the tile from here on, on its axis, is still being indexed */
    uint64_t behind_from;
};

#define TL_TILE_LANES 64 /* maximum lanes per tile */

struct tl_tile {
    enum tl_range_unit axis;
    unsigned level;
    uint64_t index;
    uint64_t bucket, first; /* bucket width and begin of the first bucket, on the axis */
    uint64_t generation;
    bool sealed;       /* will not change within this generation */
    uint64_t revision; /* for the ETag of an unsealed tile */
    struct tl_tile_lane *lanes[TL_TILE_LANES];
    size_t n_lanes;
};

/*
 * A tile: 512 buckets of lanes [lane_from, lane_to] at a level. A bucket is 2^base * 4^level units
 * wide, with base from the trace's JSON. Free with tl_tile_fini(), also after an error.
 * TL_NOTFOUND: no such trace, or gen is not its generation; TL_USAGE: no such tile, or more than
 * TL_TILE_LANES.
 */
TL_MUST_USE int tl_lake_tile(struct tl_lake *lake, const char *trace, enum tl_range_unit axis,
                             unsigned level, uint64_t index, unsigned lane_from, unsigned lane_to,
                             uint64_t gen, struct tl_tile *out, struct tl_fail *fail);
void tl_tile_fini(struct tl_tile *tile);

#endif
