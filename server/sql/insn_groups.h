/* SPDX-License-Identifier: MIT */
/*
 * Instructions that are alike in all but position and time, counted: what a question is answered
 * from that groups them by other columns. Used by the thread that asks.
 */
#ifndef TL_SQL_INSN_GROUPS_H
#define TL_SQL_INSN_GROUPS_H

#include "base/numbers.h"
#include "sql/flow.h"

/* Columns of the table of instructions. */
enum {
    TL_COLUMN_INSN_TRACE,
    TL_COLUMN_INSN_STREAM,
    TL_COLUMN_INSN_POSITION,
    TL_COLUMN_INSN_TIME,
    TL_COLUMN_INSN_PC,
    TL_COLUMN_INSN_SIZE,
    TL_COLUMN_INSN_OPCODE,
    TL_COLUMN_INSN_FUNCTION,
    TL_COLUMN_INSN_TAKEN,
    TL_COLUMN_INSN_TEXT
};

struct tl_insn_group {
    uint64_t pc, count;
    const char *stream, *function; /* function: "" if no symbol covers it */
    uint32_t opcode;
    uint8_t size; /* 0: its code is not known, nor any of the following */
    uint8_t isa;
    bool taken;
    uint8_t code[TL_STF_INSN_MAX];
    uint32_t order;     /* the groups' */
    uint32_t block, at; /* its block, and its place in that */
};

/* Blocks that were executed, each once. */
struct tl_insn_block {
    uint64_t pc, count;
    uint32_t function;
    uint32_t stream; /* number of the stream in its trace */
    size_t coded, n_coded;
    size_t first, n; /* its instructions among the groups */
    uint32_t next;   /* another one of the same hash, + 1; 0: none */
    uint8_t isa;
    uint64_t *positions; /* of its executions, if they are kept: `count` */
    size_t cap;
};

/* All zero: empty. */
struct tl_insn_groups {
    struct tl_insn_group *p;
    size_t n, cap;
    struct tl_gen **gens; /* whose names they are */
    size_t n_gens, cap_gens;
    bool names_last; /* to the end of the question */
    size_t bytes;    /* of memory, about, as counted by the question */
    /* While they are counted: */
    struct tl_insn_block *blocks;
    size_t n_blocks, cap_blocks;
    struct tl_numbers hashes;
    uint32_t *heads; /* by number of the hash: block + 1 */
    size_t cap_heads;
    struct tl_buf coded;
    bool keeps;  /* positions */
    size_t kept; /* room for so many */
};

/* Count all instructions of a walk from its first on, of `function` if that is not NULL, and put
 * them into the order of the columns `order` (tl_group_column()); with TL_GROUP_POSITIONS, each
 * with its position. The names are those of `f`.
 * TL_LIMIT: there are too many kinds; errors of a walk. */
TL_MUST_USE int tl_insn_groups_count(struct tl_insn_groups *groups, struct tl_cursor *c,
                                     struct tl_flow_rows *f, uint32_t order);
/* The position of the i-th instruction of a group, 0 <= i < count, in order; if they are kept. */
static inline uint64_t tl_insn_group_position(const struct tl_insn_groups *groups,
                                              const struct tl_insn_group *group, uint64_t i)
{
    return groups->blocks[group->block].positions[i] + group->at;
}
void tl_insn_groups_fini(struct tl_insn_groups *groups);

#endif
