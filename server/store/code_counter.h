/* SPDX-License-Identifier: MIT */
/*
 * Counts the runs and branches (codecount.h) of a shard while it is built, for indexer.h. Of a
 * block that ran whole it is only counted how often, and how often its branch was taken: where a
 * direct branch leads the code says. What the shard cannot say by itself, or what there is no
 * memory for, is not counted at all: then whoever asks walks through it. Not thread-safe.
 */
#ifndef TL_STORE_CODE_COUNTER_H
#define TL_STORE_CODE_COUNTER_H

#include "flow/block.h"
#include "store/codecount.h"

#define TL_CODE_COUNTER_RUNS 65536u /* different ones, at most */

/* Of each run: how often it was, and of the direct branch that it ends with. */
struct tl_code_turn {
    uint64_t times, taken;
    uint64_t target, next; /* where it leads, and where it goes straight on; the same: there is none
                              of interest */
};

/* Branches of which the same ones come again soon. */
struct tl_code_edge {
    uint64_t from, to, n; /* n 0: free */
    uint32_t program;
};
#define TL_CODE_EDGES_KEPT 1024u

struct tl_code_counter {
    bool counting; /* set by the owner at first; false for ever where it gave up */
    struct tl_codecount counts;
    uint32_t program;           /* that runs, … */
    uint64_t since;             /* … from so many instructions of the shard on, … */
    uint64_t until;             /* … and from which time on it is another one */
    struct tl_code_turn *turns; /* by the run's number */
    size_t cap_turns;
    struct tl_code_edge edges[TL_CODE_EDGES_KEPT];
    bool interrupted; /* in front of its first instruction */
    /* A run that has not ended: its first and last instruction, and where it goes straight on. */
    bool open;
    uint64_t first, last, next;
    /* How the last instruction was left, nothing behind it being known yet. */
    enum tl_code_left { TL_CODE_LEFT_STRAIGHT, TL_CODE_LEFT_DIRECT, TL_CODE_LEFT_OTHER } left;
    uint32_t left_run;             /* DIRECT */
    uint64_t left_last, left_next; /* OTHER */
    uint32_t left_program;
};

/* Free what it has; it counts nothing any more. So it ends, or gives up. */
void tl_code_counter_fini(struct tl_code_counter *c);

/*
 * What `now` tells of who runs holds, behind so many instructions of the shard. To be called at its
 * begin, and where identifiers change or time passes `until`. Is it another program? Blocks have
 * other numbers then.
 */
bool tl_code_counter_program(struct tl_code_counter *c, const struct tl_image *image,
                             const struct tl_flow_now *now, uint64_t insns);

/* Does its last instruction lead where it says, if it was taken? */
static inline bool tl_code_is_direct(const struct tl_block *block)
{
    return block->last_kind == TL_INSN_BRANCH && !block->whole;
}

/* The block's number here; 0 where it gave up. */
uint32_t tl_code_counter_block(struct tl_code_counter *c, const struct tl_block *block);
/* The block of this number ran whole so often, and its branch was taken so often. */
static inline void tl_code_counter_ran(struct tl_code_counter *c, uint32_t run, uint32_t times,
                                       uint32_t taken)
{
    c->turns[run].times += times;
    c->turns[run].taken += taken;
}
/* From the last instruction of `from`, which was taken, to `pc`. */
void tl_code_counter_edge(struct tl_code_counter *c, const struct tl_block *from, uint64_t pc);
/* Execution goes on at `pc`. */
void tl_code_counter_arrive(struct tl_code_counter *c, uint64_t pc);
/* The block, whose number is `run`, was the last one that ran. */
void tl_code_counter_left(struct tl_code_counter *c, const struct tl_block *block, uint32_t run,
                          bool taken);
/* Bytes [from, to) of a block ran, of which `last` is the last instruction; with its end, `ends`.
 */
void tl_code_counter_part(struct tl_code_counter *c, const struct tl_block *block, uint32_t from,
                          uint32_t to, uint32_t last, bool ends, bool taken);
/* Nothing is known of where it goes on. */
void tl_code_counter_stop(struct tl_code_counter *c);
/* The shard ends, and the flow goes on at `next`, 0: that is not known. `insns`: what it executed.
 */
void tl_code_counter_end(struct tl_code_counter *c, uint64_t insns, uint64_t next);

#endif
