/* SPDX-License-Identifier: MIT */
/*
 * Converts flow items to an STF stream that can be cut into .zstf chunks and shards. No I/O, not
 * thread-safe. docs/stf.md describes the mapping of each item, in both directions.
 *
 * The records of the last instruction are held back until it is known where the flow continues
 * (INST_PC_TARGET and EVENT precede the instruction's closing record); all others are final
 * immediately. Blocks are copied: block->coded holds the output of tl_stf_close_insn() for each
 * instruction (tl_decode_set_code()); for blocks without it, it is computed each time. Blocks with
 * `whole` include all records of their groups (stf/flow/flow_groups.h), which also contain what
 * other items report: those items then only affect the next header.
 *
 * Use:
 *
 *     tl_stf_flow_new(&w, &options, NULL);
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
#include "stf/flow/flow_piece.h"

struct tl_stf_known; /* stf/known.h */

struct tl_stf_flow_options {
    enum tl_isa isa; /* instruction set for the header, if neither a block nor a mode precedes it */
    /* Write what STF has no record for (time, cycles, gaps, hardware events, software trace, calls
     * and returns of branch items, notes) as COMMENT records. */
    bool comments;
    bool repeats; /* find repeats, see tl_stf_flow_piece() */
    /* Whole groups: repeat in each further shard the registers and address translation that the
     * trace has reported so far. */
    bool known;
    /* Whole groups: number of the first instruction written within its original trace; instruction
     * numbers in page walks are adjusted by it. */
    uint64_t first;
    /* COMMENT records for the header; borrowed for the object's life. If none are given, one is
     * generated. */
    const char *const *header_comments;
    size_t n_header_comments;
    const char *generator; /* TRACE_INFO's text, NULL: "tracelake" and its version */
};

/* State of the stream: enough to begin a shard, or to store in an index. */
struct tl_stf_flow_state {
    uint64_t pc;      /* of the next instruction, if already known */
    uint64_t mode;    /* tl_mode word */
    uint64_t context; /* context id */
    uint64_t vmid;
    uint8_t isa; /* enum tl_isa */
    bool has_pc, has_mode, has_context, has_vmid;
};

/* Position within a batch of items. All zero: at its beginning. */
struct tl_stf_flow_at {
    size_t item;   /* index of the first item not used completely */
    uint32_t insn; /* instructions already used of that item (a BLOCK or PATH) */
};

struct tl_stf_flow;

/* Create a writer. `initial` (may be NULL) is the state to continue from, e.g. after a restart of
 * the server. */
TL_MUST_USE int tl_stf_flow_new(struct tl_stf_flow **out, const struct tl_stf_flow_options *options,
                                const struct tl_stf_flow_state *initial);
void tl_stf_flow_free(struct tl_stf_flow *flow);

/* Whole groups: set what their trace reported before them; the first group will repeat it. Takes
 * ownership of `known`. */
void tl_stf_flow_know(struct tl_stf_flow *flow, struct tl_stf_known *known);

/*
 * Write items[at->item…], up to the `stop`-th marker of this shard (UINT64_MAX: no limit).
 *
 * Returns TL_OK: all items are used; TL_AGAIN: exactly `stop` markers are written and nothing is
 * held back; `at` is the position to continue from; TL_NOMEM. The STF header is written when the
 * first address is known.
 */
TL_MUST_USE int tl_stf_flow_items(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                                  uint64_t stop, struct tl_stf_flow_at *at);

/* Final records not taken yet; always complete records. Borrowed. */
struct tl_bytes tl_stf_flow_bytes(const struct tl_stf_flow *flow);
/* The same with their repeats, whose bytes may be left out; borrowed. */
struct tl_stf_piece tl_stf_flow_piece(const struct tl_stf_flow *flow);
/*
 * Exchange bytes and repeats for those of `piece`, which must be empty but may have capacity; the
 * next record begins a new chunk.
 */
void tl_stf_flow_swap(struct tl_stf_flow *flow, struct tl_stf_piece *piece);
/* Move the bytes to `*other`, which is empty and large enough for them, and go on there; `*other`
 * receives the buffer that they were in, empty. */
void tl_stf_flow_move(struct tl_stf_flow *flow, struct tl_buf *other);
/* Drop the bytes and repeats; the next record begins a new chunk. */
void tl_stf_flow_take(struct tl_stf_flow *flow);
/* Address of the first instruction in tl_stf_flow_bytes(), for a .zstf index's start PC. 0 for a
 * shard's first chunk. */
uint64_t tl_stf_flow_chunk_pc(const struct tl_stf_flow *flow);

/*
 * Enable or disable dry mode, at the beginning of a chunk: records are not written, but state and
 * marker count are maintained. tl_stf_flow_bytes() is then undefined, including its size. Saves
 * most of the writer's cost, except for whole groups. Not saved by tl_stf_flow_resume().
 */
void tl_stf_flow_dry(struct tl_stf_flow *flow, bool dry);

/* Have records been written after the last marker? */
bool tl_stf_flow_is_open(const struct tl_stf_flow *flow);

/* Number of markers written in this shard, not counting one that is held back. */
uint64_t tl_stf_flow_markers(const struct tl_stf_flow *flow);

/* Get the stream's state after the last marker written. */
void tl_stf_flow_state(const struct tl_stf_flow *flow, struct tl_stf_flow_state *out);

/* Save everything, including the records not taken yet, or restore it into a new writer with the
 * same options. */
void tl_stf_flow_resume(struct tl_stf_flow *flow, struct tl_state *state);

/* Save the same without the records not taken yet: a writer restored from it can only continue
 * where the next shard begins. Saving only. */
void tl_stf_flow_mark(struct tl_stf_flow *flow, struct tl_state *state);

/*
 * Begin a new shard: the next item writes a header again, with the current state. The bytes must
 * have been taken. A held-back instruction would move into the new shard, so call this after
 * TL_AGAIN or after tl_stf_flow_finish().
 */
void tl_stf_flow_restart(struct tl_stf_flow *flow);

/*
 * End of the stream or shard: write what is held back. Writes the header even if there were no
 * items. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_stf_flow_finish(struct tl_stf_flow *flow);

#endif
