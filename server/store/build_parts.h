/* SPDX-License-Identifier: MIT */
/* A builder's inside, for the files that it consists of. */
#ifndef TL_STORE_BUILD_PARTS_H
#define TL_STORE_BUILD_PARTS_H

#include "stf/flow_writer.h"
#include "store/build.h"
#include "store/indexer.h"

enum cut {
    CUT_NONE,
    CUT_FRAME, /* of a chunk of the .zstf */
    CUT_SHARD, /* of a shard, behind an instruction */
    CUT_HERE   /* of a shard, behind any item: the writer need not know what follows */
};

struct tl_build {
    struct tl_build_options options;
    struct tl_stf_flow *flow;
    struct tl_indexer index;          /* in the shard that the log is in */
    struct tl_shard_builder *closing; /* with CUT_SHARD: the shard that waits for the writer */
    enum cut cut;
    uint64_t stop;                 /* marker at which the cut is */
    uint64_t frame_marker;         /* markers of the shard in front of the open frame */
    uint32_t frame;                /* its number */
    struct tl_build_totals totals; /* of all shards in front of these two: counts and anchors */
    uint64_t want_shard;           /* options.part: parts from here on are wanted */
    uint32_t want_frame;
    bool wet;                         /* options.part: the open frame is made */
    struct tl_packer *packer;         /* made when it is needed */
    struct tl_insn_stats *insn_stats; /* of a stream whose blocks do not know what they consist of;
                                 NULL: they do */
};

/* Are records made of what comes, or is it only followed? For where a frame begins. */
void tl_build_choose(struct tl_build *b);

/* Have a packer. */
TL_MUST_USE int tl_build_packer(struct tl_build *b);

#endif
