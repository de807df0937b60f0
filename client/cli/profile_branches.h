/* SPDX-License-Identifier: MIT */
/*
 * Taken branches in the order in which they were taken, in the form of `perf script -F ip,brstack`,
 * which llvm-profgen --perfscript reads: a line has up to 32, the latest first, as the processors
 * have them whose last branches perf samples. Each line but the first begins where the one in front
 * of it ends: with its last branch, which is thus told twice, so that no run between two branches
 * is missing. Not thread-safe.
 */
#ifndef TL_CLI_PROFILE_BRANCHES_H
#define TL_CLI_PROFILE_BRANCHES_H

#include "cli/profile_out.h"

#define TL_BRANCH_STACK 32

struct tl_branch_stack {
    const struct tl_profile_binary *binary;
    FILE *file;
    struct tl_branch {
        uint64_t from, to;
    } v[TL_BRANCH_STACK]; /* the latest last */
    size_t n;
    bool printed;        /* v[0] is in the line in front, too */
    bool follows;        /* an instruction ran, and nothing came between: */
    uint64_t last, next; /* its address, and what is behind it */
};

/* Borrows both; errors are the file's. */
void tl_branch_stack_init(struct tl_branch_stack *s, const struct tl_profile_binary *binary,
                          FILE *file);
/* The next instruction; `size` in bytes, 0: not known. */
void tl_branch_stack_insn(struct tl_branch_stack *s, uint64_t pc, unsigned size);
/* The flow breaks, or ends: print what is left. */
void tl_branch_stack_break(struct tl_branch_stack *s);

#endif
