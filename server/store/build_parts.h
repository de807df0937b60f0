/* SPDX-License-Identifier: MIT */
/* A builder's inside, for the files that it consists of. */
#ifndef TL_STORE_BUILD_PARTS_H
#define TL_STORE_BUILD_PARTS_H

#include "flow/callstack.h"
#include "stf/flow_writer.h"
#include "store/build.h"
#include "store/census.h"
#include "store/part.h"

enum cut {
    CUT_NONE,
    CUT_FRAME, /* of a chunk of the .zstf */
    CUT_SHARD, /* of a shard, behind an instruction */
    CUT_HERE   /* of a shard, behind any item: the writer need not know what follows */
};

struct tl_build {
    struct tl_build_options options;
    struct tl_stf_flow *flow;
    struct tl_part *part;    /* what the log is in */
    struct tl_part *closing; /* with CUT_SHARD: the shard that waits for the writer */
    enum cut cut;
    uint64_t stop;         /* marker at which the cut is */
    uint64_t frame_marker; /* markers of the shard in front of the open frame */
    uint32_t frame;        /* its number */
    uint64_t position;     /* in the stream */
    struct tl_flow_now now;
    struct tl_callstack calls;
    struct tl_build_totals totals;
    uint32_t keeps;           /* tl_count_keeps() */
    struct tl_packer *packer; /* made when it is needed */
    struct tl_census *census; /* of a stream whose blocks do not know what they consist of; NULL:
                                 they do */
};

/* Begin shard `number`: a ghost, of which nothing is kept, if it is in the store already. */
TL_MUST_USE int tl_build_part(struct tl_build *b, uint64_t number);
/* Have a packer. */
TL_MUST_USE int tl_build_packer(struct tl_build *b);

#endif
