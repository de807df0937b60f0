/* SPDX-License-Identifier: MIT */
/*
 * Flow items to an STF stream, ready to be cut into .zstf chunks and shards. No I/O, not
 * thread-safe. What becomes of each item, and back: docs/stf.md.
 *
 * The records of the last instruction are held back until it is known where the flow goes on
 * (INST_PC_TARGET and EVENT stand in front of the instruction's closing record); all others are
 * final at once. Blocks are copied: block->coded holds what tl_stf_close_insn() makes of each
 * instruction (tl_decode_code()); of blocks without that it is made each time. Blocks with `whole`
 * come with all records of their groups (stf/flow_groups.h), which say what other items say, too:
 * those only count for the next header.
 *
 * Use:
 *
 *     tl_stf_flow_new(&w, &options);
 *     for each batch of items:
 *         struct tl_stf_flow_at at = {0};
 *         while (tl_stf_flow_items(w, items, n, chunk_end, &at) == TL_AGAIN) {
 *             // exactly `chunk_end` markers are in tl_stf_flow_bytes(w): compress that chunk
 *             // with tl_stf_flow_chunk_pc(w), tl_stf_flow_take(w), raise chunk_end;
 *             // at a shard's end also tl_stf_flow_restart(w)
 *         }
 *     tl_stf_flow_finish(w); the last chunk is in tl_stf_flow_bytes(w)
 */
#ifndef TL_STF_FLOW_WRITER_H
#define TL_STF_FLOW_WRITER_H

#include "base/state.h"
#include "flow/item.h"
#include "stf/close.h"
#include "stf/flow_mark.h"

struct tl_stf_known; /* stf/known.h */

struct tl_stf_flow_options {
    enum tl_isa isa; /* what the header tells if neither a block nor a mode does before it */
    /* Keep what STF has no record for (time, cycles, gaps, hardware events, software trace,
     * calls and returns of branch items, notes) as COMMENT records. */
    bool comments;
    bool marks; /* keep marks of the records, see tl_stf_flow_marks() */
    bool known; /* whole groups: tell in each further shard what the trace told so far of registers
                   and address translation */
    /* Whole groups: what is written begins at this instruction of their trace, from which the
     * numbers in page walks are to count. */
    uint64_t first;
    /* COMMENT records of the header; borrowed for the object's life. None: one is made. */
    const char *const *header_comments;
    size_t n_header_comments;
    const char *generator; /* TRACE_INFO's text, NULL: "tracelake" and its version */
};

/* Where the stream stands: enough to begin a shard, or to note in an index. */
struct tl_stf_flow_state {
    uint64_t pc;      /* of the next instruction, where it is known already */
    uint64_t mode;    /* tl_mode word */
    uint64_t context; /* context id */
    uint64_t vmid;
    uint8_t isa; /* enum tl_isa */
    bool has_pc, has_mode, has_context, has_vmid;
};

/* Where to go on within a batch of items. Zeroed: at its begin. */
struct tl_stf_flow_at {
    size_t item;   /* index of the first item that is not used up */
    uint32_t insn; /* instructions of that item (a BLOCK or PATH) that are */
};

struct tl_stf_flow;

/* `initial` (may be NULL) is where the stream stands, e.g. after a restart of the server. */
TL_MUST_USE int tl_stf_flow_new(struct tl_stf_flow **out, const struct tl_stf_flow_options *options,
                                const struct tl_stf_flow_state *initial);
void tl_stf_flow_free(struct tl_stf_flow *flow);

/* Whole groups: what their trace told in front of them, which the first group tells again. `known`
 * becomes the writer's. */
void tl_stf_flow_know(struct tl_stf_flow *flow, struct tl_stf_known *known);

/*
 * Add items[at->item…], up to the `stop`-th marker of this shard (UINT64_MAX: no limit).
 *
 * TL_OK: all items are used up. TL_AGAIN: exactly `stop` markers are out and nothing is held
 * back; `at` says where to go on. The STF header is written when the first address is known.
 * TL_NOMEM.
 */
TL_MUST_USE int tl_stf_flow_items(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                                  uint64_t stop, struct tl_stf_flow_at *at);

/* The final records that have not been taken: they begin and end at whole records. Borrowed. */
struct tl_bytes tl_stf_flow_bytes(const struct tl_stf_flow *flow);
/* The marks in those bytes, rising; borrowed, and dropped with them. */
const struct tl_stf_mark *tl_stf_flow_marks(const struct tl_stf_flow *flow, size_t *n);
/*
 * Exchange both for those of `piece`, which must be empty but may have memory; what comes next
 * begins a new chunk.
 */
void tl_stf_flow_swap(struct tl_stf_flow *flow, struct tl_stf_piece *piece);
/* Drop them; what comes next begins a new chunk. */
void tl_stf_flow_take(struct tl_stf_flow *flow);
/* Address of the first instruction of the records in tl_stf_flow_bytes(): a .zstf index's start
 * PC. 0 for a shard's first chunk. */
uint64_t tl_stf_flow_chunk_pc(const struct tl_stf_flow *flow);

/*
 * Called where a chunk begins: its records are not wanted, but where the flow stands and how many
 * markers are out. tl_stf_flow_bytes() then says nothing, not even how much it would be. Most of
 * what the writer costs is saved; of whole groups nothing. Not kept by tl_stf_flow_resume().
 */
void tl_stf_flow_dry(struct tl_stf_flow *flow, bool dry);

/* Are records out behind the last marker? */
bool tl_stf_flow_is_open(const struct tl_stf_flow *flow);

/* Markers of this shard: out, not counting one that is held back. */
uint64_t tl_stf_flow_markers(const struct tl_stf_flow *flow);

/* Where the stream stands behind the last marker that is out. */
void tl_stf_flow_state(const struct tl_stf_flow *flow, struct tl_stf_flow_state *out);

/* All of it, with the records that have not been taken, into bytes or, of a new object with the
 * same options, from them. */
void tl_stf_flow_resume(struct tl_stf_flow *flow, struct tl_state *state);

/* The same without the records that have not been taken: whoever loads it can only go on to where
 * the next shard begins. `state` saves. */
void tl_stf_flow_mark(struct tl_stf_flow *flow, struct tl_state *state);

/*
 * Begin a new shard: with the next item a header is written again, with the current state.
 * Bytes must have been taken. An instruction that is held back would move into the new shard:
 * call it after TL_AGAIN, or after tl_stf_flow_finish().
 */
void tl_stf_flow_restart(struct tl_stf_flow *flow);

/*
 * The end of the stream or of the shard: what is held back comes out. Writes the header even if
 * there was no item. TL_NOMEM.
 */
TL_MUST_USE int tl_stf_flow_finish(struct tl_stf_flow *flow);

#endif
