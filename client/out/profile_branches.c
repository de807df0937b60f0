/* SPDX-License-Identifier: MIT */
/*
 * Prints taken branches as samples of a branch record buffer. Consecutive samples share a branch,
 * because a reader counts only the runs between two branches of the same sample.
 */
#include "out/profile_branches.h"

#include <inttypes.h>

void tl_branch_stack_init(struct tl_branch_stack *s, const struct tl_profile_binary *binary,
                          FILE *file)
{
    *s = (struct tl_branch_stack){.binary = binary, .file = file};
}

static bool is_within(const struct tl_profile_binary *binary, uint64_t pc)
{
    return pc >= binary->bias && pc < binary->end;
}

/* Print a sample: its address, and the branches, latest first. Whether a branch was predicted, in a
 * transaction or an abort, and its cycles, are not known from a trace. */
static void print_sample(const struct tl_branch_stack *s)
{
    const uint64_t bias = s->binary->bias;
    fprintf(s->file, "%16" PRIx64, s->v[s->n - 1].to - bias);
    for (size_t i = s->n; i-- > 0;)
        fprintf(s->file, " 0x%" PRIx64 "/0x%" PRIx64 "/-/-/-/0", s->v[i].from - bias,
                s->v[i].to - bias);
    putc('\n', s->file);
}

void tl_branch_stack_break(struct tl_branch_stack *s)
{
    if (s->n > (s->printed ? 1u : 0))
        print_sample(s);
    s->n = 0;
    s->printed = s->follows = false;
}

static void add_branch(struct tl_branch_stack *s, uint64_t from, uint64_t to)
{
    if (s->n == TL_BRANCH_STACK) {
        print_sample(s);
        /* The run between it and the next branch is represented by a sample that has both. */
        s->v[0] = s->v[s->n - 1];
        s->n = 1;
        s->printed = true;
    }
    s->v[s->n++] = (struct tl_branch){from, to};
}

void tl_branch_stack_insn(struct tl_branch_stack *s, uint64_t pc, unsigned size)
{
    const bool within = is_within(s->binary, pc);
    if (s->follows && pc != s->next && within)
        add_branch(s, s->last, pc);
    if (!within || size == 0)
        tl_branch_stack_break(s);
    s->follows = within && size > 0;
    s->last = pc;
    s->next = pc + size;
}
