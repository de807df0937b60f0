/* SPDX-License-Identifier: MIT */
/*
 * Taken branches in execution order, in the format of `perf script -F ip,brstack`, which
 * llvm-profgen --perfscript reads. A line has up to 32 branches, the latest first, like the branch
 * records (LBR) that perf samples. Each line but the first begins with the last branch of the line
 * before, which is therefore printed twice, so that no run between two branches is missing. Not
 * thread-safe.
 */
#ifndef TL_OUT_PROFILE_BRANCHES_H
#define TL_OUT_PROFILE_BRANCHES_H

#include "out/profile_out.h"

#define TL_BRANCH_STACK 32

struct tl_branch_stack {
    const struct tl_profile_binary *binary;
    FILE *file;
    struct tl_branch {
        uint64_t from, to;
    } v[TL_BRANCH_STACK]; /* latest last */
    size_t n;
    bool printed;        /* v[0] is also in the previous line */
    bool follows;        /* an instruction was executed, without a break since */
    uint64_t last, next; /* its address, and the address after it */
};

/* Both are borrowed; write errors stay in the FILE. */
void tl_branch_stack_init(struct tl_branch_stack *s, const struct tl_profile_binary *binary,
                          FILE *file);
/* Process the next instruction; `size` in bytes, 0: not known. */
void tl_branch_stack_insn(struct tl_branch_stack *s, uint64_t pc, unsigned size);
/* The flow is interrupted or ends: print the remaining branches. */
void tl_branch_stack_break(struct tl_branch_stack *s);

#endif
