/* SPDX-License-Identifier: MIT */
/* Shared by the files of the flow writer. Private to the library. */
#ifndef TL_STF_FLOW_PARTS_H
#define TL_STF_FLOW_PARTS_H

#include "stf/flow/flow_repeat.h"
#include "stf/flow/flow_writer.h"
#include "stf/flow_map.h"
#include "stf/known.h"

/* Records that precede an instruction's own. */
struct tl_stf_front {
    struct tl_buf lead;
    struct tl_buf pre;
    bool force; /* FORCE_PC: the instruction does not follow from the previous one */
    bool any;   /* any of the above is present, or the mode is due */
};

/* The instruction that is held back, with what is known of it. */
struct tl_stf_held {
    bool valid;         /* there is one */
    bool taken;         /* the flow does not continue at `next` */
    bool branches;      /* it may be a branch: only these have an INST_PC_TARGET */
    bool has_target;    /* of a direct branch, or from an exception's return address */
    bool awaits_target; /* the EVENT_PC_TARGET at post_target still needs its value */
    bool event;         /* `post` contains an EVENT */
    bool odd_size;      /* not 2 or 4 bytes long: readers cannot compute the next address */
    uint8_t close_n;
    uint8_t close[TL_STF_CLOSE_MAX];
    uint64_t pc;
    uint64_t next; /* the address after it */
    uint64_t target;
    size_t post_target; /* position of an EVENT_PC_TARGET in `post` */
    size_t post_flags;  /* position of the flags field of that EVENT */
    struct tl_buf post;
    struct tl_buf accesses; /* INST_MEM_ACCESS, INST_MEM_CONTENT */
    bool bare;              /* the last access has no content yet */
    struct tl_stf_front front;
};

/* Cached comment for gaps of one kind without a count. */
struct tl_stf_gap_line {
    uint8_t n;  /* bytes; 0: empty */
    uint8_t of; /* enum tl_gap */
    uint8_t line[32];
};

struct tl_stf_flow {
    struct tl_stf_flow_options options;
    struct tl_stf_flow_state state;
    struct tl_stf_flow_state
        reported;         /* mode and context according to the records written so far */
    enum tl_isa read_isa; /* instruction set that a reader assumes for the next instruction */
    bool header;          /* the header has been written */
    bool open;            /* only addresses have been written, in a group that is not closed yet */
    bool trails;          /* tl_stf_flow_finish() has written records after the last group */
    bool later;           /* not the first shard of the stream */
    bool whole;          /* blocks carry whole groups, which also contain what other items report */
    bool dry;            /* blocks are counted, but no records are written */
    bool mode_due;       /* the next instruction's group has to give the mode */
    uint64_t mode_flags; /* with these flags, if it is due */
    uint8_t points;      /* enum tl_stf_points, as far as readers know */
    struct tl_buf out;
    struct tl_buf scratch;
    struct tl_stf_held held;
    struct tl_stf_front front; /* for the next instruction */
    uint64_t markers;
    uint64_t track; /* next address from a reader's point of view */
    uint64_t chunk_pc;
    struct tl_stf_repeats *repeats; /* in `out`; NULL: none are wanted */
    struct tl_stf_gap_line gap;
    struct tl_stf_known *known; /* what the whole groups reported so far; NULL: nothing */
};

/* Is the item a branch with only the target known? */
static inline bool tl_stf_flow_is_point(const struct tl_item *item)
{
    return item->kind == TL_ITEM_GAP
               ? item->flags & TL_ITEM_HAS_PC
               : item->kind == TL_ITEM_BRANCH &&
                     !(item->flags & (TL_ITEM_HAS_PC | TL_ITEM_CALL | TL_ITEM_RETURN));
}

/* Write the header of the shard, once the first address is known. */
int tl_stf_flow_put_header(struct tl_stf_flow *flow, uint64_t pc);
int tl_stf_flow_put_mode(struct tl_buf *out, uint64_t mode, uint64_t flags);
int tl_stf_flow_put_comment(struct tl_buf *out, struct tl_bytes text);
int tl_stf_flow_put_address(struct tl_buf *out, uint8_t type, uint64_t address);
/* Write a COMMENT after which descriptors of the group may start again with lower values, as
 * stf_lib's writer permits. Its text, "B", says nothing about the following branch. */
int tl_stf_flow_put_parting(struct tl_buf *out);
/*
 * Append a complete group: `front` (emptied), a target if `target` is not NULL, `post`, `close`.
 * `close` must not contain an INST_PC_TARGET.
 */
int tl_stf_flow_put_group(struct tl_stf_flow *flow, struct tl_stf_front *front, uint64_t pc,
                          const uint64_t *target, struct tl_bytes post, struct tl_bytes close);
/*
 * Write the held-back instruction, once it is known that the flow continues at `*next` (NULL:
 * unknown).
 */
int tl_stf_flow_release(struct tl_stf_flow *flow, const uint64_t *next);

/* A note of an access of the held-back instruction, or of its content; others are left alone. */
int tl_stf_flow_note_access(struct tl_stf_held *held, const char *text);
/* Put the accesses of the held-back instruction in front of its events. */
int tl_stf_flow_place_accesses(struct tl_stf_held *held);

/*
 * Of code that is not known there is no instruction to attach records to, and the next one that is
 * known has no part in it. What happened there is told by FORCE_PC and COMMENT records.
 */
/* Write an instruction with unknown encoding, or a branch of one. */
int tl_stf_flow_add_point(struct tl_stf_flow *flow, const struct tl_item *item);
/* Write an exception as a comment. */
int tl_stf_flow_tell_exception(struct tl_stf_flow *flow, const struct tl_item *item);
/* If the mode is due and no record tells it, append a comment to `out`. */
int tl_stf_flow_tell_mode(struct tl_stf_flow *flow, struct tl_buf *out);
/* Size of the longest "J n" comment. */
#define TL_STF_POINTS_BYTES (TL_STF_COMMENT_HEAD + 3)
/* Write "J n" to `p`, and return the end. */
uint8_t *tl_stf_flow_put_points(uint8_t *p, enum tl_stf_points points);

/* Write instructions [*done, item->n) of a BLOCK item; TL_AGAIN at the `stop`-th marker. */
int tl_stf_flow_block(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                      uint32_t *done);
/* The same for a block with whole groups. */
int tl_stf_flow_groups(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                       uint32_t *done);
/* Update `flow->gap` for gaps of this kind without a count. Returns TL_NOMEM. */
int tl_stf_flow_gap_line(struct tl_stf_flow *flow, enum tl_gap gap);
/* Hold back an instruction of `block` that is `code` bytes from pc; it has `n` bytes of records at
 * `stf`. */
void tl_stf_flow_hold(struct tl_stf_flow *flow, const struct tl_block *block, bool whole,
                      bool taken, const uint8_t *stf, uint32_t n, uint32_t code, uint32_t size);

/* Can a held-back instruction be written without considering anything but the next address? */
static inline bool tl_stf_held_is_plain(const struct tl_stf_held *held, enum tl_isa isa)
{
    return !held->awaits_target && !held->event && held->post.n == 0 && !held->front.any &&
           (!held->taken || held->branches) && (!held->odd_size || tl_isa_is_x86(isa));
}

/* The instruction set of blocks that can be copied; UINT8_MAX: none. */
static inline uint8_t tl_stf_flow_copied_isa(const struct tl_stf_flow *flow)
{
    return flow->read_isa == flow->state.isa ? flow->state.isa : UINT8_MAX;
}

/* Are repeats of steps noted? */
static inline bool tl_stf_flow_notes(const struct tl_stf_flow *flow)
{
    return flow->repeats && !flow->dry && tl_stf_repeats_wanted(flow->repeats);
}

/* Record that marker `stop` was reached, with the next instruction at `pc`. */
int tl_stf_flow_stopped(struct tl_stf_flow *flow, uint64_t pc);
/*
 * Fast path: write as many of items[0..n) as possible, as long as they are whole blocks without
 * special cases, gaps and mere addresses between them, or items without records. Returns the number
 * of items used completely; `*done` instructions of the next one, a PATH, are used too.
 */
size_t tl_stf_flow_run(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                       uint64_t stop, uint32_t *done);

/*
 * Dry run: skip items of items[0..n), the first of which is a PATH, without writing records.
 * Returns how many; 0: they must be processed block by block, nothing was changed. `*result` < 0:
 * error.
 */
size_t tl_stf_flow_pass(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                        uint64_t stop, int *result);

/*
 * Write instructions [*done, …) of items[0], a PATH, and then continue as tl_stf_flow_run().
 * Returns the number of items used completely, with `*done` for the next one; or as
 * tl_stf_flow_block().
 */
int64_t tl_stf_flow_path(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                         uint64_t stop, uint32_t *done);

#endif
