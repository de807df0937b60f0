/* SPDX-License-Identifier: MIT */
/*
 * Counts a stream's flow items into the shard that is being built: how many instructions ran in
 * each function, page, mode and bucket of the timeline, of which kinds, and how deep calls were.
 * All that is no instruction goes into the shard's item log.
 *
 *     tl_indexer_init(&ix, protocol, image, &now, position);
 *     ix.shard = …;
 *     for each batch of items:
 *         struct tl_stf_flow_at at = {0};
 *         while (tl_indexer_items(&ix, items, n, &room, &at) > 0)
 *             // look whether the chunk, or the shard, ends here, and make `room` anew
 *
 * An indexer belongs to one stream and goes on from shard to shard. What it knows of a block it
 * keeps beside it, in a table by the block's number (flow/block.h). Where shards are built and
 * where an index is made anew from a shard (recount.h) it is the same. Not thread-safe.
 */
#ifndef TL_STORE_INDEXER_H
#define TL_STORE_INDEXER_H

#include "flow/callstack.h"
#include "stf/flow_writer.h"
#include "store/insn_stats.h"
#include "store/shard_builder.h"

#define TL_INDEXER_BLOCKS 4096u /* known at the same time; a power of two */

/* What is known of a block, and counted of it. */
struct tl_indexer_block {
    uint32_t number; /* the block's */
    uint32_t ran;    /* how often it ran, and << 16 how often it was left by a branch that was
                        taken; 0 between calls */
    uint32_t chunk;  /* tl_shard_builder's stamp of the chunk that has the code */
    uint32_t names;  /* … for which `place` and `run` are valid */
    uint32_t run;    /* tl_code_counter_block() */
    uint16_t place;  /* tl_shard_builder_place() of its function and page */
    uint8_t mix;     /* tl_mix_of() */
};

struct tl_indexer {
    enum tl_protocol protocol;
    const struct tl_image *image;     /* for functions of addresses outside blocks; may be NULL */
    struct tl_shard_builder *shard;   /* the owner's: where things are counted */
    struct tl_insn_stats *insn_stats; /* the owner's: makes the statistics of streams whose blocks
                                         do not know their instructions; NULL: they do */
    struct tl_flow_now now;           /* what holds behind all that was counted */
    struct tl_callstack calls;        /* the same; it has no sink */
    struct tl_indexer_block blocks[TL_INDEXER_BLOCKS]; /* by number % TL_INDEXER_BLOCKS */
};

/* Begin a stream, at `position` of it, `now` being what holds there (copied). `image` is borrowed.
 * The shard is the owner's to set. */
void tl_indexer_init(struct tl_indexer *ix, enum tl_protocol protocol, const struct tl_image *image,
                     const struct tl_flow_now *now, uint64_t position);

/* How much goes into the open chunk before its owner has to look whether it ends. */
struct tl_indexer_room {
    uint64_t cut; /* position at which blocks are cut in two */
    uint64_t end; /* position at which no block begins; they may reach beyond */
    size_t log;   /* bytes of items: tl_shard_builder_logged() */
};

/* Why the owner has to look: behind an instruction of a block, or behind another item. */
enum { TL_INDEXED_INSNS = 1, TL_INDEXED_ITEM = 2 };

/*
 * Count items[0..n), from `*at` on, and move `*at` behind what was counted. TL_OK: all of them
 * were. TL_INDEXED_INSNS, TL_INDEXED_ITEM: the room may be used up; an item that is a position by
 * itself always ends so. TL_NOMEM.
 */
TL_MUST_USE int tl_indexer_items(struct tl_indexer *ix, const struct tl_item *items, size_t n,
                                 const struct tl_indexer_room *room, struct tl_stf_flow_at *at);

#endif
