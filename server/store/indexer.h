/* SPDX-License-Identifier: MIT */
/*
 * Counts a stream's items into the shard that is being built: how many instructions ran in each
 * function, page, mode and bucket of the timeline, of which kinds, and with which calls; and keeps
 * all items that are no instructions in its item log.
 *
 * An indexer belongs to one stream and goes on from shard to shard. What it knows of a block (the
 * place where its instructions are counted, and their kinds) it keeps beside the block, by the
 * block's number. Used while shards are built and when an index is made anew, with the same result.
 * Not thread-safe.
 */
#ifndef TL_STORE_INDEXER_H
#define TL_STORE_INDEXER_H

#include "flow/callstack.h"
#include "stf/flow_writer.h"
#include "store/census.h"
#include "store/part.h"

#define TL_INDEXER_BLOCKS 4096u /* known at the same time; a power of two */

/* What is known of a block, and counted of it. */
struct tl_indexer_block {
    uint32_t number; /* the block's */
    uint32_t times;  /* it ran; only while items are counted */
    uint32_t stamp;  /* tl_part.stamp of the part that has its code, and whose place this is: … */
    uint16_t place;  /* … in the part's run */
    uint8_t mix;     /* tl_mix_of() */
};

struct tl_indexer {
    enum tl_protocol protocol;
    const struct tl_image *image; /* for functions of addresses outside blocks; may be NULL */
    struct tl_part *part;         /* the owner's: what is counted goes there */
    struct tl_census *census;     /* the owner's: counts instead; NULL: blocks know their kinds */
    struct tl_flow_now now;       /* behind all that was counted */
    struct tl_callstack calls;
    struct tl_indexer_block blocks[TL_INDEXER_BLOCKS]; /* each at its number's place */
};

/* Begin a stream, or at `now` in it. `image` is borrowed. `part` and `census` are NULL. */
void tl_indexer_init(struct tl_indexer *ix, enum tl_protocol protocol, const struct tl_image *image,
                     const struct tl_flow_now *now, uint64_t position);

/* How much goes into the open chunk before somebody has to look whether it ends. */
struct tl_indexer_room {
    uint64_t cut; /* position: blocks are cut there */
    uint64_t end; /* position that blocks may reach, but do not begin at */
    size_t log;   /* bytes of items: tl_part_logged() */
};

/* Somebody has to look. */
enum { TL_INDEXED_INSNS = 1, TL_INDEXED_ITEM = 2 };

/*
 * Count items[0..n), from `*at` on, which is moved on. TL_OK: all of them; TL_INDEXED_INSNS,
 * TL_INDEXED_ITEM: up to here there may be room, and the last thing was an instruction of a block,
 * or another item (all that is a position by itself ends so). TL_NOMEM.
 */
TL_MUST_USE int tl_indexer_items(struct tl_indexer *ix, const struct tl_item *items, size_t n,
                                 const struct tl_indexer_room *room, struct tl_stf_flow_at *at);

#endif
