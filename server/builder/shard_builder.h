/* SPDX-License-Identifier: MIT */
/*
 * A shard under construction: counts go into its index, items into the log of its open chunk, and
 * the STF writer's records become its frames.
 *
 *     shard = tl_shard_builder_new(number, position, &now);
 *     tl_shard_builder_begin(shard, &calls);
 *     as the flow continues (indexer.h):
 *         tl_shard_builder_insns() and _blocks() for instructions, _item() for everything else
 *     when a chunk ends:
 *         tl_shard_builder_next_chunk(shard, …); tl_shard_builder_begin(shard, &calls);
 *     when the writer has ended a chunk of the .zstf:
 *         tl_shard_builder_frame(shard, …);
 *     at the end:
 *         tl_shard_builder_complete(shard, packer, &view, &log); tl_shard_builder_free(shard);
 *
 * An index chunk is a range of positions with one item log; it never crosses a frame, which is a
 * chunk of the .zstf. A position is an instruction, or an item that counts as one (shard.h); a
 * marker is an instruction with known encoding, which the STF contains too.
 *
 * A replayed shard is already in the store, but decoding began before its end, so its items come
 * again: it is followed to its end without packing or keeping anything. A remade shard is replayed
 * to regenerate the logs of its chunks for the caller. Of a bare shard only the index is built; of
 * an outlined one, which is bare and followed like a replayed one, only the part of the index that
 * says where it is and how to make it: the row, chunks without their code, and frames. Nothing is
 * counted: it has neither buckets nor statistics. Not thread-safe: the owner, build.h, holds a lock
 * around every call.
 */
#ifndef TL_BUILDER_SHARD_BUILDER_H
#define TL_BUILDER_SHARD_BUILDER_H

#include "base/state.h"
#include "builder/call_counter.h"
#include "builder/code_counter.h"
#include "builder/open_bucket.h"
#include "builder/time_buckets.h"
#include "flow/callstack.h"
#include "shard/codeset.h"
#include "shard/itemlog.h"
#include "shard/shard_stats.h"
#include "shard/view.h"

#define TL_SHARD_OFFSETS 10 /* a raw byte offset is logged every 2^10 positions without items */

struct tl_shard_builder {
    struct tl_view *view;         /* index so far, closed chunks and frames */
    struct tl_chunk open;         /* the open chunk; its code and items are filled in at its end */
    struct tl_itemlog log;        /* of the open chunk */
    struct tl_code_set code;      /* executed code of the open chunk */
    struct tl_open_bucket bucket; /* instructions not yet in the index's buckets */
    struct tl_stats_counter counter;
    struct tl_code_counter coder; /* the owner enables counting */
    struct tl_call_counter caller;
    struct tl_time_buckets *ran; /* the owner's, of the stream; NULL: items are not counted there */
    /* Stamps that validate remembered data of blocks; process-unique, wrap at 2^32. For the code in
     * the chunk: new when a chunk begins. For place and run: new when these are renumbered, because
     * the bucket released its places or another program runs. */
    uint32_t stamp_chunk, stamp_names;
    bool replayed; /* see above */
    bool remade;   /* see above; implies `replayed` */
    bool bare;     /* see above */
    bool outlined; /* see above; implies `replayed` and `bare` */
    bool partial; /* remade: the contents of the open chunk's log are unknown, but not its length */
    bool log_wanted;  /* remade: for the open chunk */
    bool any_closed;  /* a chunk has ended */
    bool by_insn;     /* its statistics are counted by insn_stats.h, not by `counter` */
    bool any;         /* it has an item or an instruction */
    size_t log_begin; /* bytes of the log before the first item, which describe the chunk's begin */
    uint64_t log_bytes;     /* items in all closed chunks, plain */
    uint64_t offset_noted;  /* position >> TL_SHARD_OFFSETS of the last logged offset */
    uint64_t last_position; /* of the last marker, if any */
};

/* Begin shard `number` at a position of the stream, with the state `now` there (copied). NULL: out
 * of memory. */
struct tl_shard_builder *tl_shard_builder_new(uint64_t number, uint64_t position,
                                              const struct tl_flow_now *now);
/* Log the state and call stack at the begin of the open chunk: call once per chunk, before anything
 * else. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_begin(struct tl_shard_builder *shard,
                                       const struct tl_callstack *calls);
void tl_shard_builder_free(struct tl_shard_builder *shard); /* accepts NULL */
/* Does it have neither items nor instructions? */
bool tl_shard_builder_is_empty(const struct tl_shard_builder *shard);

/* Stream position of the next instruction or item. */
static inline uint64_t tl_shard_builder_position(const struct tl_shard_builder *shard)
{
    return shard->view->index.row.first + shard->view->index.row.n;
}

/* Bytes of items in the open chunk's log; the same for a replayed shard. */
static inline size_t tl_shard_builder_logged(const struct tl_shard_builder *shard)
{
    return shard->log.bytes.n - shard->log_begin;
}

/*
 * Save the complete state, or load it into a new builder. Saving packs frames and logs, using
 * `packer` (not used when loading). Errors are in `state`.
 */
void tl_shard_builder_state(struct tl_shard_builder *shard, struct tl_packer *packer,
                            struct tl_state *state);
/* The same without counts and logs: enough to remake its further chunks, and later shards. */
void tl_shard_builder_mark(struct tl_shard_builder *shard, struct tl_state *state);
/* Turn a loaded shard that is already in the store into a replayed one, keeping only what
 * determines where it ends. */
void tl_shard_builder_replay(struct tl_shard_builder *shard);
/* Turn a loaded shard into an outlined one. */
void tl_shard_builder_outline(struct tl_shard_builder *shard);

/* ---- counting, for indexer.h ---------------------------------------------------------------- */

/* Add the open bucket's counts to the index, at the end of the bucket or chunk; a replayed shard
 * has none. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_settle(struct tl_shard_builder *shard);
/* The same for `view`: a copy of the shard's own or, if the bucket ends, the shard's own. */
TL_MUST_USE int tl_shard_builder_settle_into(struct tl_shard_builder *shard, struct tl_view *view,
                                             bool ends);
/* Number of the place at which instructions of a function and page are counted. If none is left,
 * all are released first, and `stamp_names` changes. `now` gives the call depth. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_place(struct tl_shard_builder *shard,
                                       const struct tl_flow_now *now, uint32_t function,
                                       uint64_t page);
/* Invalidate remembered places and runs of blocks: `stamp_names` changes. */
void tl_shard_builder_forget(struct tl_shard_builder *shard);
/* Count `n` instructions at [pc, pc + size) in buckets, code and functions; `called`: they begin at
 * the entry of their function. In a replayed shard nothing is counted. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_insns(struct tl_shard_builder *shard,
                                       const struct tl_flow_now *now, uint64_t n, uint64_t pc,
                                       uint64_t size, uint32_t function, bool called);
/* Advance the shard's position by `n` instructions of blocks, or items that are positions. */
void tl_shard_builder_blocks(struct tl_shard_builder *shard, uint64_t n);
void tl_shard_builder_points(struct tl_shard_builder *shard, uint64_t n);
/* Record whether the last instruction of a block, which was counted, changed the flow. */
void tl_shard_builder_left(struct tl_shard_builder *shard, bool taken);

/* Log and count an item at this position that is not a block; `now` is the state after it.
 * TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_item(struct tl_shard_builder *shard, const struct tl_flow_now *now,
                                      const struct tl_item *item);
/* The same for a CYCLES or TIME at `position`, which is preceded by instructions of its bucket. */
TL_MUST_USE int tl_shard_builder_measure(struct tl_shard_builder *shard, uint64_t position,
                                         const struct tl_flow_now *now, const struct tl_item *item);
/* The same for a GAP at `position`, which is preceded by instructions of its bucket. */
TL_MUST_USE int tl_shard_builder_gap(struct tl_shard_builder *shard, uint64_t position,
                                     const struct tl_item *item);
/* The same for items[0..*n), up to the first that is not unmapped code, and while the log has less
 * than `most` bytes. `*n` receives their number. */
TL_MUST_USE int tl_shard_builder_unmapped(struct tl_shard_builder *shard,
                                          const struct tl_item *items, size_t *n, size_t most);
/* Log a change of the instruction set for the instructions that follow. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_isa(struct tl_shard_builder *shard, enum tl_isa isa);
/* Record that instructions of the packet at raw byte `offset` begin at `position`: logged once per
 * 2^TL_SHARD_OFFSETS positions, unless an item gave an offset shortly before. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_offset(struct tl_shard_builder *shard, uint64_t position,
                                        uint64_t offset);

/* ---- chunks, frames, the end ---------------------------------------------------------------- */

/* End of counting: move the statistics into the index, unless they are counted elsewhere. */
void tl_shard_builder_report(struct tl_shard_builder *shard);
/*
 * End the open chunk and begin the next, whose markers are in frame `stf`. `*log` receives the
 * ended chunk's item log, borrowed, NULL: none. It is packed, or plain if `packer` is NULL, for the
 * caller to pack. For a remade shard the caller owns `*log`, and `*ended` receives the chunk.
 */
TL_MUST_USE int tl_shard_builder_next_chunk(struct tl_shard_builder *shard, uint32_t stf,
                                            const struct tl_flow_now *now, struct tl_packer *packer,
                                            struct tl_blob **log, struct tl_chunk *ended);
/* Add a frame of `plain` bytes of STF records, preceded by `marker` markers. Takes ownership of the
 * blob, which a replayed or bare shard does not have. */
TL_MUST_USE int tl_shard_builder_frame(struct tl_shard_builder *shard, struct tl_blob *stf,
                                       size_t plain, uint64_t marker, uint64_t pc);
/* End the last chunk and hand over the complete view (none for a remade shard). The only permitted
 * call afterwards is free. `packer`, `*log` and `*ended` as above; the kinds of `*ended` are
 * UINT32_MAX if no chunk has ended. */
TL_MUST_USE int tl_shard_builder_complete(struct tl_shard_builder *shard, struct tl_packer *packer,
                                          struct tl_view **out, struct tl_blob **log,
                                          struct tl_chunk *ended);
/* The log of the open chunk so far, as a new blob, NULL: it is empty. TL_NOMEM. */
TL_MUST_USE int tl_shard_builder_log(const struct tl_shard_builder *shard, struct tl_blob **out);
/*
 * Copy the shard into a new view. `stf`: the records of the open frame so far (n == 0: omit it; for
 * a bare shard the records are omitted, but not the frame), `positions`: how many of the shard's
 * positions can be read.
 */
TL_MUST_USE int tl_shard_builder_snapshot(struct tl_shard_builder *shard, struct tl_bytes stf,
                                          uint64_t marker, uint64_t pc, uint64_t positions,
                                          struct tl_view **out);

#endif
