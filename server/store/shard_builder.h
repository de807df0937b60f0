/* SPDX-License-Identifier: MIT */
/*
 * A shard while it is built: what is counted goes into its index, items into the log of its open
 * chunk, and the STF writer's records become its frames.
 *
 *     shard = tl_shard_builder_new(number, position, &now);
 *     tl_shard_builder_begin(shard, &calls);
 *     as the flow goes on (indexer.h):
 *         tl_shard_builder_insns() and _blocks() for instructions, _item() for all else
 *     where a chunk ends:
 *         tl_shard_builder_next_chunk(shard, …); tl_shard_builder_begin(shard, &calls);
 *     where the writer has ended a chunk of the .zstf:
 *         tl_shard_builder_frame(shard, …);
 *     at the end:
 *         tl_shard_builder_complete(shard, packer, &view, &log); tl_shard_builder_free(shard);
 *
 * An index chunk is a run of positions with one item log; it never crosses a frame, which is a
 * chunk of the .zstf. A position is an instruction, or an item that counts as one (shard.h); a
 * marker is an instruction with known encoding, which the STF has too.
 *
 * A replayed shard is in the store already, and its items come again, since decoding began in front
 * of it: it is followed to its end, but nothing of it is packed or kept. If it is remade its
 * chunks' logs are, by whoever wants them. Of a bare one the index alone is wanted. Not
 * thread-safe: the owner, build.h, holds a lock around every call.
 */
#ifndef TL_STORE_SHARD_BUILDER_H
#define TL_STORE_SHARD_BUILDER_H

#include "base/state.h"
#include "flow/callstack.h"
#include "store/call_counter.h"
#include "store/code_counter.h"
#include "store/codeset.h"
#include "store/itemlog.h"
#include "store/open_bucket.h"
#include "store/shard_stats.h"
#include "store/view.h"

#define TL_SHARD_OFFSETS 10 /* a raw byte offset is noted every 2^10 positions without items */

struct tl_shard_builder {
    struct tl_view *view;         /* its index so far, closed chunks and frames */
    struct tl_chunk open;         /* the open chunk; its code and items are filled in at its end */
    struct tl_itemlog log;        /* of the open chunk */
    struct tl_code_set code;      /* what the open chunk has executed */
    struct tl_open_bucket bucket; /* instructions that the index's buckets do not have yet */
    struct tl_stats_counter counter;
    struct tl_code_counter coder; /* its owner has them count, or not */
    struct tl_call_counter caller;
    /* What is remembered of blocks is valid for one stamp; process-unique, wraps at 2^32. Its code:
     * another one where a chunk begins. Its place and run: where these have new numbers, since the
     * bucket gave its places back or another program runs. */
    uint32_t stamp_chunk, stamp_names;
    bool replayed;      /* see above … */
    bool remade;        /* … then it is replayed, too */
    bool bare;          /* see above */
    bool partial;       /* remade: what the open chunk's log has is not known, but how long it is */
    bool log_wanted;    /* remade: of the open chunk */
    bool any_closed;    /* a chunk has ended */
    bool by_insn;       /* its statistics are counted elsewhere (insn_stats.h), not by `counter` */
    bool any;           /* it has an item or an instruction */
    size_t log_begin;   /* bytes of the log in front of the first item: how the chunk begins */
    uint64_t log_bytes; /* of items in all closed chunks, plain */
    uint64_t offset_noted;  /* position >> TL_SHARD_OFFSETS of the last note of an offset */
    uint64_t last_position; /* of the last marker, if there is one */
};

/* Begin shard `number` at a position of the stream, `now` being what holds there (copied). NULL: no
 * memory. */
struct tl_shard_builder *tl_shard_builder_new(uint64_t number, uint64_t position,
                                              const struct tl_flow_now *now);
/* Log how the open chunk begins, and with which call stack: to be called once for each chunk,
 * before anything else of it. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_begin(struct tl_shard_builder *shard,
                                       const struct tl_callstack *calls);
void tl_shard_builder_free(struct tl_shard_builder *shard); /* NULL is fine */
/* Is there neither an item nor an instruction? */
bool tl_shard_builder_is_empty(const struct tl_shard_builder *shard);

/* The stream's position that the next instruction or item has. */
static inline uint64_t tl_shard_builder_position(const struct tl_shard_builder *shard)
{
    return shard->view->index.row.first + shard->view->index.row.n;
}

/* Bytes of items in the open chunk's log: the same of a replayed shard. */
static inline size_t tl_shard_builder_logged(const struct tl_shard_builder *shard)
{
    return shard->log.bytes.n - shard->log_begin;
}

/*
 * All of it, into bytes or, of a new builder, from them; frames and logs are packed then, for which
 * `packer` is used (only where it is saved). Errors are in `state`.
 */
void tl_shard_builder_state(struct tl_shard_builder *shard, struct tl_packer *packer,
                            struct tl_state *state);
/* The same without what has been counted and logged: enough to remake its further chunks, and the
 * shards behind it. */
void tl_shard_builder_mark(struct tl_shard_builder *shard, struct tl_state *state);
/* What was loaded is in the store already: it becomes a replayed shard, of which only that is kept
 * which decides where it ends. */
void tl_shard_builder_replay(struct tl_shard_builder *shard);

/* ---- counting, for indexer.h ---------------------------------------------------------------- */

/* Add what is counted in the open bucket to the index's, where that ends or the chunk does.
 * TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_settle(struct tl_shard_builder *shard);
/* The number of the place where instructions of a function and page are counted. If none is left
 * all are given back first, and `stamp_names` changes. `now` tells the depth of calls. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_place(struct tl_shard_builder *shard,
                                       const struct tl_flow_now *now, uint32_t function,
                                       uint64_t page);
/* Places and runs that are remembered of blocks are not valid any more: `stamp_names` changes. */
void tl_shard_builder_forget(struct tl_shard_builder *shard);
/* Count `n` instructions at [pc, pc + size) in buckets, code and functions; `called`: they begin
 * where their function does. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_insns(struct tl_shard_builder *shard,
                                       const struct tl_flow_now *now, uint64_t n, uint64_t pc,
                                       uint64_t size, uint32_t function, bool called);
/* The shard's position moves on by `n` instructions of blocks, or items that are positions. */
void tl_shard_builder_blocks(struct tl_shard_builder *shard, uint64_t n);
void tl_shard_builder_points(struct tl_shard_builder *shard, uint64_t n);
/* The last instruction of a block was counted: did it change the flow? */
void tl_shard_builder_left(struct tl_shard_builder *shard, bool taken);

/* Log and count an item that is no block, and stands here; `now` is what holds behind it.
 * TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_item(struct tl_shard_builder *shard, const struct tl_flow_now *now,
                                      const struct tl_item *item);
/* The same of a CYCLES or TIME at `position`, which has instructions of its bucket in front of it.
 */
TL_MUST_USE int tl_shard_builder_measure(struct tl_shard_builder *shard, uint64_t position,
                                         const struct tl_flow_now *now, const struct tl_item *item);
/* The same of items[0..*n), as far as they tell of unmapped code only and the log has less than
 * `most` bytes. Sets `*n` to how many they are. */
TL_MUST_USE int tl_shard_builder_unmapped(struct tl_shard_builder *shard,
                                          const struct tl_item *items, size_t *n, size_t most);
/* Log that the instructions that follow are of another instruction set. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_isa(struct tl_shard_builder *shard, enum tl_isa isa);
/* At `position` instructions of the packet at raw byte `offset` follow: logged once in
 * 2^TL_SHARD_OFFSETS positions, unless an item told an offset shortly before. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_offset(struct tl_shard_builder *shard, uint64_t position,
                                        uint64_t offset);

/* ---- chunks, frames, the end ---------------------------------------------------------------- */

/* All is counted: put the statistics into the index, unless they are counted elsewhere. */
void tl_shard_builder_tell(struct tl_shard_builder *shard);
/*
 * End the open chunk and begin the next, whose markers lie in frame `stf`. `*log` is the ended
 * chunk's item log, borrowed, NULL: there is none. It is packed, or if `packer` is NULL plain, for
 * whoever packs it. Of a shard that is remade `*log` is the caller's, and `*ended` the chunk.
 */
TL_MUST_USE int tl_shard_builder_next_chunk(struct tl_shard_builder *shard, uint32_t stf,
                                            const struct tl_flow_now *now, struct tl_packer *packer,
                                            struct tl_blob **log, struct tl_chunk *ended);
/* Add a frame of `plain` bytes of STF records (the blob is taken; of a replayed or bare shard there
 * is none), with `marker` markers in front of it. */
TL_MUST_USE int tl_shard_builder_frame(struct tl_shard_builder *shard, struct tl_blob *stf,
                                       size_t plain, uint64_t marker, uint64_t pc);
/* End the last chunk and give the view away, of a shard that is remade none: it is complete. The
 * shard is then only freed. `packer`, `*log` and `*ended` as above; its kinds are
 * UINT32_MAX where none has ended. */
TL_MUST_USE int tl_shard_builder_complete(struct tl_shard_builder *shard, struct tl_packer *packer,
                                          struct tl_view **out, struct tl_blob **log,
                                          struct tl_chunk *ended);
/* The log of the open chunk so far, as a blob of its own, NULL: it is empty. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_log(const struct tl_shard_builder *shard, struct tl_blob **out);
/*
 * A copy as a view of its own. `stf`: the records of the open frame so far (n == 0: leave it
 * out; of a bare shard they are left out, but not the frame), `positions`: how many of the shard's
 * can be read.
 */
TL_MUST_USE int tl_shard_builder_snapshot(struct tl_shard_builder *shard, struct tl_bytes stf,
                                          uint64_t marker, uint64_t pc, uint64_t positions,
                                          struct tl_view **out);

#endif
