/* SPDX-License-Identifier: MIT */
/* Internals of a shard builder, for the files that implement it. */
#ifndef TL_BUILDER_BUILD_PARTS_H
#define TL_BUILDER_BUILD_PARTS_H

#include "builder/build.h"
#include "builder/indexer.h"
#include "builder/time_buckets.h"
#include "stf/flow/flow_writer.h"

enum cut {
    CUT_NONE,
    CUT_FRAME, /* at a .zstf chunk */
    CUT_SHARD, /* at a shard, after an instruction */
    CUT_HERE   /* at a shard, after any item: the writer does not need to see what follows */
};

struct tl_build {
    struct tl_build_options options;
    struct tl_stf_flow *flow;
    struct tl_indexer index;          /* of the shard that the log belongs to */
    struct tl_call_times times;       /* of the calls counted there */
    struct tl_time_buckets *ran;      /* what ran when in that shard, from these times */
    struct tl_shard_builder *closing; /* with CUT_SHARD: the shard that waits for the writer */
    enum cut cut;
    uint64_t stop;                 /* marker at which to cut */
    uint64_t frame_marker;         /* markers of the shard before the open frame */
    uint32_t frame;                /* its number */
    struct tl_build_totals totals; /* counts and anchors of all shards before these two */
    uint64_t want_shard;           /* options.part: first requested part */
    uint32_t want_frame;
    bool wet;                 /* options.part: the open frame is being regenerated */
    bool marked;              /* it began at a mark: tl_build_mark() */
    bool late;                /* so late that the time at the shard's begin is not known */
    struct tl_packer *packer; /* created when needed */
    /* For streams whose blocks do not know their instructions; NULL: they do. */
    struct tl_insn_stats *insn_stats;
};

/* The shard of the log. */
static inline struct tl_shard_builder *tl_build_shard(const struct tl_build *b)
{
    return b->index.shard;
}

/* The shard of the writer. */
static inline struct tl_shard_builder *tl_build_written(const struct tl_build *b)
{
    return b->closing ? b->closing : tl_build_shard(b);
}

/* The writer's current frame; all earlier ones are full. */
static inline uint32_t tl_build_open_frame(const struct tl_build *b)
{
    return (uint32_t)(b->frame_marker / b->options.chunk_markers);
}

/* Add a shard's counts and anchors, in order. */
void tl_build_add_totals(struct tl_build_totals *totals, const struct tl_shard_row *row);
/* Ensure that there is a packer. */
TL_MUST_USE int tl_build_packer(struct tl_build *b);

#endif
