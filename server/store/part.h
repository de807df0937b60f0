/* SPDX-License-Identifier: MIT */
/* The shard that is being built: its index, its closed chunks and the open one. For build.c. */
#ifndef TL_STORE_PART_H
#define TL_STORE_PART_H

#include "base/state.h"
#include "flow/callstack.h"
#include "store/codeset.h"
#include "store/itemlog.h"
#include "store/part_run.h"
#include "store/tally.h"
#include "store/view.h"

#define TL_PART_OFFSETS 10 /* a raw byte offset is noted every 2^10 positions without items */

struct tl_part {
    struct tl_view *view; /* closed chunks and frames */
    struct tl_chunk open; /* code and items not filled in before it is closed */
    struct tl_itemlog log;
    struct tl_code_set code; /* what the open chunk has executed */
    uint32_t stamp;          /* of what is known beside blocks: whose code the open chunk has, and
                                whose places the run */
    bool ghost;              /* nothing is packed or kept: the shard is in the store already */
    bool any;                /* there is an item or an instruction */
    size_t log_begin;        /* bytes of the log that say how the chunk begins */
    uint64_t log_bytes;      /* of all closed chunks, plain, without these */
    uint64_t offset_noted;   /* position >> TL_PART_OFFSETS of the last note of an offset */
    uint64_t last_position;  /* of the last marker, if row.markers > 0 */
    struct tl_part_run run;  /* not yet in its bucket */
    struct tl_tallying tallying;
    bool counted; /* by a census, whose tally the index has: `tallying` does not matter */
};

/* Begin a shard. NULL: no memory. */
struct tl_part *tl_part_new(uint64_t number, uint64_t position, const struct tl_flow_now *now);
/* Log how the open chunk begins, and with which call stack; before anything else of it. */
TL_MUST_USE int tl_part_begin(struct tl_part *part, const struct tl_callstack *calls);
void tl_part_free(struct tl_part *part); /* NULL is fine */
bool tl_part_is_empty(const struct tl_part *part);

/* Of the next instruction or item. */
static inline uint64_t tl_part_position(const struct tl_part *part)
{
    return part->view->index.row.first + part->view->index.row.n;
}

/* Bytes of items in the open chunk's log: the same of a ghost. */
static inline size_t tl_part_logged(const struct tl_part *part)
{
    return part->log.bytes.n - part->log_begin;
}

/* All of it, into bytes or, of a new part, from them. `packer` is for saving. */
void tl_part_state(struct tl_part *part, struct tl_packer *packer, struct tl_state *state);
/* The shard is in the store already: keep no more of it than decides where it ends. */
void tl_part_make_ghost(struct tl_part *part);

/* Give the run to its bucket, where that ends or the chunk does. */
TL_MUST_USE int tl_part_settle(struct tl_part *part);
/* The place where instructions of a function and page are counted. Where there is no number left
 * for it all are given back (`stamp` is a new one then). TL_NOMEM. */
TL_MUST_USE int tl_part_place(struct tl_part *part, const struct tl_flow_now *now,
                              uint32_t function, uint64_t page);
/* Count `n` instructions as read from `pc` on, `size` bytes; `called`: they begin where their
 * function does. */
TL_MUST_USE int tl_part_insns(struct tl_part *part, const struct tl_flow_now *now, uint64_t n,
                              uint64_t pc, uint64_t size, uint32_t function, bool called);
/* These were, or are to be, counted: instructions of blocks, and items that are positions. */
void tl_part_blocks(struct tl_part *part, uint64_t n);
void tl_part_points(struct tl_part *part, uint64_t n);
/* Keep an item that stands here. `now` is what holds behind it. */
TL_MUST_USE int tl_part_item(struct tl_part *part, const struct tl_flow_now *now,
                             const struct tl_item *item);
/* Keep a CYCLES that stands at `position`, behind instructions of its bucket. */
TL_MUST_USE int tl_part_cycles(struct tl_part *part, uint64_t position, const struct tl_item *item);
/* The same of items[0..*n), BRANCH and GAP by turns that make holes, as far as that goes on and the
 * log has not `most` bytes: sets `*n`. */
TL_MUST_USE int tl_part_holes(struct tl_part *part, const struct tl_item *items, size_t *n,
                              size_t most);
/* Note that the instructions that follow are of this instruction set. */
TL_MUST_USE int tl_part_isa(struct tl_part *part, enum tl_isa isa);
/* Instructions of the packet at raw byte `offset` follow: noted now and then. */
TL_MUST_USE int tl_part_offset(struct tl_part *part, uint64_t offset);
/* Of the last instructions counted: did the last one change the flow? */
void tl_part_left(struct tl_part *part, bool taken);

/* All is counted: into the index with it. */
void tl_part_tell(struct tl_part *part);
/*
 * End the open chunk and begin the next, whose markers lie in frame `stf`. `*log` is the ended
 * chunk's item log, borrowed, NULL: there is none. It is packed, or if `packer` is NULL plain, for
 * whoever packs it.
 */
TL_MUST_USE int tl_part_next_chunk(struct tl_part *part, uint32_t stf,
                                   const struct tl_flow_now *now, struct tl_packer *packer,
                                   struct tl_blob **log);
/* Add a frame of `plain` bytes of STF records (the blob is taken; of a ghost there is none), with
 * `marker` markers in front of it. */
TL_MUST_USE int tl_part_frame(struct tl_part *part, struct tl_blob *stf, size_t plain,
                              uint64_t marker, uint64_t pc);
/* End the last chunk and give the view away: it is complete. The part is then only freed. `packer`
 * and `*log` as above. */
TL_MUST_USE int tl_part_complete(struct tl_part *part, struct tl_packer *packer,
                                 struct tl_view **out, struct tl_blob **log);
/*
 * A copy as a view of its own. `stf`: the records of the open frame so far (n == 0: leave it
 * out), `positions`: how many of the shard's can be read.
 */
TL_MUST_USE int tl_part_snapshot(struct tl_part *part, struct tl_bytes stf, uint64_t marker,
                                 uint64_t pc, uint64_t positions, struct tl_view **out);

#endif
