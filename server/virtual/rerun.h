/* SPDX-License-Identifier: MIT */
/*
 * Raw bytes of a trace decoded again from a mark, for one of its streams: its items go through a
 * builder, whose options say what is made of them. Each is used by one thread.
 */
#ifndef TL_VIRTUAL_RERUN_H
#define TL_VIRTUAL_RERUN_H

#include "builder/build.h"
#include "shard/missing.h"

struct tl_gen;
struct tl_lane;

struct tl_rerun {
    struct tl_lane *lane;
    struct tl_program *program; /* the decoder's */
    struct tl_decode *decode;
    struct tl_build *build; /* NULL: its stream has not appeared yet */
    struct tl_build_options how;
    struct tl_spool_reader *reader;
    struct tl_buf bytes; /* read; those from `used` on are not decoded yet */
    size_t used;
    size_t stream;
    uint64_t shard; /* it began before this shard and frame, from which on parts are wanted */
    uint32_t frame;
    uint64_t at;               /* raw bytes decoded */
    bool damaged;              /* raw bytes that are needed next are damaged: it cannot continue */
    struct tl_missing missing; /* if damaged */
    bool finished;
    bool others;   /* a mark is from another server version */
    bool no_image; /* the program's images cannot be read, which `fail` says */
};

/* What is wanted first, and a raw offset that is not behind it. */
struct tl_rerun_place {
    uint64_t shard;
    uint32_t frame;
    uint64_t offset;
};

/*
 * Begin at the last mark from which the place can be reached, or at the first byte. Of `how` these
 * are filled in: the stream's properties, the shards' size, image and packing. In zeroed memory;
 * call tl_rerun_fini() in any case. TL_BAD, TL_IO, TL_NOTFOUND, TL_NOMEM, TL_CANCELLED.
 */
TL_MUST_USE int tl_rerun_begin(struct tl_rerun *run, struct tl_lane *lane,
                               const struct tl_build_options *how,
                               const struct tl_rerun_place *place, struct tl_fail *fail);
void tl_rerun_fini(struct tl_rerun *run);
/* Has logging of that shard and frame not begun yet? */
bool tl_rerun_is_before(const struct tl_rerun *run, uint64_t shard, uint32_t frame);
/*
 * The end of the raw bytes that it may decode. More than the generation's own decoder has processed
 * if the shard is `open`, or the generation is being made, also for a complete shard: one that an
 * earlier run stored after its last checkpoint.
 */
uint64_t tl_rerun_end(struct tl_gen *gen, bool open);
/* Decode at most `most` bytes of those before `end`. TL_BAD: they are damaged (`damaged`); what the
 * builder's callbacks returned, TL_IO, TL_NOMEM, TL_CANCELLED. */
TL_MUST_USE int tl_rerun_step(struct tl_rerun *run, uint64_t end, size_t most,
                              struct tl_fail *fail);
/* The last shard of a stream ends with the capture. */
TL_MUST_USE int tl_rerun_finish(struct tl_rerun *run);

#endif
