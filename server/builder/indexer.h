/* SPDX-License-Identifier: MIT */
/*
 * Counts a stream's flow items into the shard being built: instructions by function, page, mode,
 * timeline bucket and kind, and the depth of calls. Items that are not instructions go into the
 * shard's item log.
 *
 *     tl_indexer_init(&ix, protocol, image, &now, position);
 *     ix.shard = …;
 *     for each batch of items:
 *         struct tl_stf_flow_at at = {0};
 *         while (tl_indexer_items(&ix, items, n, &limits, &at) > 0)
 *             // check whether the chunk, or the shard, ends here, and compute `limits` again
 *
 * An indexer belongs to one stream and continues from shard to shard. Its data on blocks is kept in
 * a table indexed by block number (flow/block.h). The same code builds shards and rebuilds an index
 * from a shard (recount.h). Not thread-safe.
 */
#ifndef TL_BUILDER_INDEXER_H
#define TL_BUILDER_INDEXER_H

#include "builder/insn_stats.h"
#include "builder/shard_builder.h"
#include "flow/callstack.h"
#include "stf/flow/flow_writer.h"

#define TL_INDEXER_BLOCKS 4096u /* blocks in the table; a power of two */

/* Data and counts of a block. */
struct tl_indexer_block {
    uint32_t number; /* the block's number */
    uint32_t ran;    /* executions, and taken exits << 16; 0 between calls */
    uint32_t chunk;  /* tl_shard_builder's stamp of the chunk that contains the code */
    uint32_t names;  /* stamp for which `place` and `run` are valid */
    uint32_t run;    /* tl_code_counter_block() */
    uint16_t place;  /* tl_shard_builder_place() of its function and page */
    uint8_t mix;     /* tl_mix_of() */
};

struct tl_indexer {
    enum tl_protocol protocol;
    const struct tl_image *image;     /* for functions of addresses outside blocks; may be NULL */
    struct tl_shard_builder *shard;   /* the owner's: destination of the counts */
    struct tl_insn_stats *insn_stats; /* the owner's: statistics of streams whose blocks do not know
                                         their instructions; NULL: they do */
    struct tl_flow_now now;           /* state after everything counted */
    struct tl_callstack calls;        /* call stack at that point; it has no sink */
    struct tl_indexer_block blocks[TL_INDEXER_BLOCKS]; /* by number % TL_INDEXER_BLOCKS */
};

/* Begin a stream at `position`, with the state `now` there (copied). `image` is borrowed. The owner
 * sets the shard. */
void tl_indexer_init(struct tl_indexer *ix, enum tl_protocol protocol, const struct tl_image *image,
                     const struct tl_flow_now *now, uint64_t position);

/* Limits for the open chunk, at which the owner must check whether it ends. */
struct tl_indexer_limits {
    uint64_t cut; /* position at which blocks are split */
    uint64_t end; /* position at which no further block begins; blocks may extend beyond */
    size_t log;   /* bytes of items: tl_shard_builder_logged() */
};

/* Why the owner must check: after an instruction of a block, or after another item. */
enum { TL_INDEXED_INSNS = 1, TL_INDEXED_ITEM = 2 };

/*
 * Count items[0..n), beginning at `*at`, and advance `*at`. TL_OK: all were counted.
 * TL_INDEXED_INSNS, TL_INDEXED_ITEM: a limit may have been reached; always returned after an item
 * that is a position by itself. TL_NOMEM, TL_CANCELLED: the shard is of no use then.
 */
TL_MUST_USE int tl_indexer_items(struct tl_indexer *ix, const struct tl_item *items, size_t n,
                                 const struct tl_indexer_limits *limits, struct tl_stf_flow_at *at);

#endif
