/* SPDX-License-Identifier: MIT */
/*
 * Counts the runs and branches (codecount.h) of a shard while it is built, for indexer.h. For a
 * block that was executed in full only the number of executions and of taken branches is counted:
 * the target of a direct branch is known from the code. What cannot be determined from the shard
 * alone, or does not fit in memory, is not counted at all; queries then walk through the shard. Not
 * thread-safe.
 */
#ifndef TL_BUILDER_CODE_COUNTER_H
#define TL_BUILDER_CODE_COUNTER_H

#include "flow/block.h"
#include "shard/codecount.h"

#define TL_CODE_COUNTER_RUNS 65536u /* maximum distinct runs */

/* Counts of a run and of the direct branch that ends it. */
struct tl_code_turn {
    uint64_t times, taken;
    uint64_t target,
        next; /* branch target and fall-through address; equal: no branch of interest */
};

/* Cache of recent branches, many of which repeat soon. */
struct tl_code_edge {
    uint64_t from, to, n; /* n 0: free */
    uint32_t program;
};
#define TL_CODE_EDGES_KEPT 1024u

struct tl_code_counter {
    bool counting; /* set initially by the owner; permanently false once counting was given up */
    struct tl_codecount counts;
    uint32_t program;           /* the current program */
    uint64_t since;             /* instruction count of the shard at which it began */
    uint64_t until;             /* time at which another program begins */
    struct tl_code_turn *turns; /* by run number */
    size_t cap_turns;
    struct tl_code_edge edges[TL_CODE_EDGES_KEPT];
    bool interrupted; /* before its first instruction */
    /* An unfinished run: its first and last instruction, and the fall-through address. */
    bool open;
    uint64_t first, last, next;
    /* How the last instruction was left, while its successor is not known yet. */
    enum tl_code_left { TL_CODE_LEFT_STRAIGHT, TL_CODE_LEFT_DIRECT, TL_CODE_LEFT_OTHER } left;
    uint32_t left_run;             /* for DIRECT */
    uint64_t left_last, left_next; /* for OTHER */
    uint32_t left_program;
};

/* Free the contents and stop counting: at the end, or when counting is given up. */
void tl_code_counter_fini(struct tl_code_counter *c);

/*
 * Set the current program from `now`, after `insns` instructions of the shard. Call at the shard's
 * begin, and when identifiers change or time reaches `until`. Returns true if the program changed;
 * blocks then have other numbers.
 */
bool tl_code_counter_program(struct tl_code_counter *c, const struct tl_image *image,
                             const struct tl_flow_now *now, uint64_t insns);

/* Is the target of its last instruction, if taken, known from the code? */
static inline bool tl_code_is_direct(const struct tl_block *block)
{
    return block->last_kind == TL_INSN_BRANCH && !block->whole;
}

/* The run number of a block; 0 if counting was given up. */
uint32_t tl_code_counter_block(struct tl_code_counter *c, const struct tl_block *block);
/* Count executions of the whole block with this number, and how often its branch was taken. */
static inline void tl_code_counter_ran(struct tl_code_counter *c, uint32_t run, uint32_t times,
                                       uint32_t taken)
{
    c->turns[run].times += times;
    c->turns[run].taken += taken;
}
/* Count a taken branch from the last instruction of `from` to `pc`. */
void tl_code_counter_edge(struct tl_code_counter *c, const struct tl_block *from, uint64_t pc);
/* Execution continues at `pc`. */
void tl_code_counter_arrive(struct tl_code_counter *c, uint64_t pc);
/* The block, with number `run`, was the last one executed. */
void tl_code_counter_left(struct tl_code_counter *c, const struct tl_block *block, uint32_t run,
                          bool taken);
/* Count the execution of bytes [from, to) of a block, with `last` the last instruction; `ends`: up
 * to the block's end. */
void tl_code_counter_part(struct tl_code_counter *c, const struct tl_block *block, uint32_t from,
                          uint32_t to, uint32_t last, bool ends, bool taken);
/* It is unknown where execution continues. */
void tl_code_counter_stop(struct tl_code_counter *c);
/* End of the shard; the flow continues at `next`, 0: unknown. `insns`: instructions executed in
 * it. */
void tl_code_counter_end(struct tl_code_counter *c, uint64_t insns, uint64_t next);

#endif
