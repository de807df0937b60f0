/* SPDX-License-Identifier: MIT */
/* What the files of the flow writer share. Private to the library. */
#ifndef TL_STF_FLOW_PARTS_H
#define TL_STF_FLOW_PARTS_H

#include "stf/flow_copy.h"
#include "stf/flow_writer.h"
#include "stf/known.h"

/* Records that stand in front of an instruction's own. */
struct tl_stf_front {
    struct tl_buf lead;
    struct tl_buf pre;
    bool force;  /* FORCE_PC: the instruction does not follow from the one before */
    bool target; /* an INST_PC_TARGET of a branch item stands in this group */
    bool any;    /* one of the above */
};

struct tl_stf_held {
    bool is;
    bool taken;
    bool has_target; /* of a direct branch, or told by an exception's return address */
    bool open;       /* the EVENT_PC_TARGET at post_target is to be filled in */
    bool event;      /* post has an EVENT */
    bool odd;        /* neither 2 nor 4 bytes: readers cannot compute the next address */
    uint8_t close_n;
    uint8_t close[TL_STF_CLOSE_MAX];
    uint64_t pc;
    uint64_t next; /* the address behind it */
    uint64_t target;
    size_t post_target;
    size_t post_flags; /* of that EVENT: its field with the flags */
    struct tl_buf post;
    struct tl_stf_front front;
};

/* The comment of gaps like the last one that had no count. */
struct tl_stf_gap_line {
    uint8_t n;  /* bytes; 0: there was none */
    uint8_t of; /* enum tl_gap */
    uint8_t line[32];
};

struct tl_stf_flow {
    struct tl_stf_flow_options options;
    struct tl_stf_flow_state state;
    struct tl_stf_flow_state told; /* mode and context as far as the records that are out say */
    enum tl_isa read_isa;          /* what a reader takes the instructions for */
    bool header;                   /* is written */
    bool open;                     /* addresses alone are out, in a group that nothing closes yet */
    bool trails;                   /* tl_stf_flow_finish() has put records behind all groups */
    bool later;                    /* not the stream's first shard */
    bool whole;                    /* whole groups come: they say what other items say, too */
    bool dry;                      /* blocks are counted, their records are not made */
    struct tl_buf out;
    struct tl_buf scratch;
    struct tl_stf_held held;
    struct tl_stf_front front; /* of the next instruction */
    uint64_t markers;
    uint64_t track; /* the next address as a reader follows it */
    uint64_t chunk_pc;
    struct tl_stf_mark *marks; /* of `out`, if options.marks */
    size_t n_marks, cap_marks;
    tl_stf_copy_path *copy;
    struct tl_stf_gap_line gap;
    struct tl_stf_known *known; /* of the whole groups so far; NULL: nothing */
};

/* A branch of which nothing but the target is known. */
static inline bool tl_stf_flow_is_point(const struct tl_item *item)
{
    return item->kind == TL_ITEM_GAP
               ? item->flags & TL_ITEM_HAS_PC
               : item->kind == TL_ITEM_BRANCH &&
                     !(item->flags & (TL_ITEM_HAS_PC | TL_ITEM_CALL | TL_ITEM_RETURN));
}

/* Begin the shard, now that the first address is known. */
int tl_stf_flow_put_header(struct tl_stf_flow *flow, uint64_t pc);
int tl_stf_flow_put_mode(struct tl_buf *out, uint64_t mode, uint64_t flags);
/* A COMMENT behind which descriptors of the group may begin anew: stf_lib's writer takes a lower
 * one behind it. "B" says nothing of the branch to come. */
int tl_stf_flow_put_parting(struct tl_buf *out);
/*
 * Append a whole group: `front` (emptied), a target if `target` is not NULL, `post`, `close`.
 * `close` has no INST_PC_TARGET of its own; `next` is where readers go on behind it.
 */
int tl_stf_flow_put_group(struct tl_stf_flow *flow, struct tl_stf_front *front, uint64_t pc,
                          const uint64_t *target, uint64_t next, struct tl_bytes post,
                          struct tl_bytes close);
/*
 * The held instruction comes out, now that the flow is known to go on at `*next` (NULL: it is
 * not known).
 */
int tl_stf_flow_release(struct tl_stf_flow *flow, const uint64_t *next);

/* Instructions [*done, item->n) of a BLOCK item; TL_AGAIN at the `stop`-th marker. */
int tl_stf_flow_block(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                      uint32_t *done);
/* The same where the block has whole groups. */
int tl_stf_flow_groups(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                       uint32_t *done);
/* Make `flow->gap` that of gaps of this kind without a count. TL_NOMEM. */
int tl_stf_flow_gap_line(struct tl_stf_flow *flow, enum tl_gap gap);
/* At marker `stop`, with the next instruction at `pc`. */
int tl_stf_flow_stopped(struct tl_stf_flow *flow, uint64_t pc);
/*
 * As many of items[0..n) as are whole blocks that need no look at single instructions, gaps and
 * mere addresses between them, or leave no records. Returns how many items are used up; `*done`
 * instructions of the next one, a PATH, are.
 */
size_t tl_stf_flow_run(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                       uint64_t stop, uint32_t *done);

/* Pass some of items[0..n), the first of which is a PATH, without their records: how many. 0: it
 * has to be looked at block by block; nothing was done. `*result` < 0: it failed. */
size_t tl_stf_flow_pass(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                        uint64_t stop, int *result);

/*
 * Instructions [*done, …) of items[0], a PATH, and what tl_stf_flow_run() would do behind them.
 * Returns how many items are used up, with `*done` of the next one; or as tl_stf_flow_block().
 */
int64_t tl_stf_flow_path(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                         uint64_t stop, uint32_t *done);

#endif
