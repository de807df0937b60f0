/* SPDX-License-Identifier: MIT */
/*
 * Which instructions a trace says nothing about, as the standard has it: jumps whose target is in
 * the program, in the instruction in front, or on the stack of return addresses. Encoder and
 * decoder must agree on this set, as each further one shifts all outcomes behind it.
 */
#include "riscv/etrace_walk_parts.h"
#include "riscv/table_jump.h"

static uint32_t encoding_at(const struct tl_block *b, uint32_t at)
{
    struct tl_insn insn;
    tl_block_insn(b, at, &insn);
    return insn.encoding;
}

/* Get the constant that the jump at the block's end goes to; false: it is not one to a constant. */
static bool is_absolute(const struct tl_block *b, uint64_t *to)
{
    if (!tl_etrace_is_absolute(b))
        return false;
    *to = (uint64_t)((int64_t)(int32_t)tl_le32(b->code + b->size - 4) >> 20) & ~UINT64_C(1);
    return true;
}

/* Does the instruction at `pc` in block `in` (NULL: no) determine where the jump that ends `b`
 * goes? */
static bool determines(const struct tl_etrace_walk *w, uint64_t pc, const struct tl_block *in,
                       const struct tl_block *b, uint64_t *to)
{
    const unsigned xlen = w->walker.isa == TL_ISA_RV32 ? 32 : 64;
    return in && tl_riscv_sequential_jump(xlen, pc, encoding_at(in, (uint32_t)(pc - in->pc)),
                                          encoding_at(b, b->size - b->last_size), to);
}

/* Does the instruction in front of the jump at the block's end determine its target? */
static bool is_sequential(struct tl_etrace_walk *w, struct tl_block *b, uint64_t *to)
{
    if (!(w->options & TL_ETRACE_SEQUENTIAL))
        return false;
    if (b->n > 1)
        return determines(w, b->pc + tl_block_bytes(b, b->n - 2), b, b, to);
    return w->has_before && determines(w, w->before, tl_etrace_block_at(w, w->before), b, to);
}

bool tl_etrace_is_unclear(struct tl_etrace_walk *w, const struct tl_block *b)
{
    uint64_t to;
    if (!tl_etrace_at_end(w, b) || b->last_kind != TL_INSN_INDIRECT)
        return false;
    if (tl_riscv_lacks_table(b))
        return true;
    if (!(w->options & TL_ETRACE_SEQUENTIAL) || !w->before_lost || w->has_before || b->n > 1)
        return false;
    /* The instruction in front has one of two lengths. */
    const struct tl_block *const four = tl_etrace_block_at(w, b->pc - 4);
    const struct tl_block *const two = tl_etrace_block_at(w, b->pc - 2);
    return !four || !two || determines(w, b->pc - 4, four, b, &to) ||
           determines(w, b->pc - 2, two, b, &to);
}

enum way tl_etrace_way_of(struct tl_etrace_walk *w, struct tl_block *b, uint64_t *to)
{
    *to = tl_etrace_after(w, b);
    if (!tl_etrace_at_end(w, b))
        return WAY_STRAIGHT;
    switch (b->last_kind) {
    case TL_INSN_BRANCH:
        *to = b->conditional ? *to : b->target;
        return b->conditional ? WAY_BRANCH : WAY_DIRECT;
    case TL_INSN_INDIRECT:
        if (is_absolute(b, to) || is_sequential(w, b, to)) {
            *to = tl_etrace_wrap(w, *to);
            return WAY_DIRECT;
        }
        return b->is_return && !b->link ? WAY_RETURN : WAY_JUMP;
    case TL_INSN_RETURN_EX:
        return WAY_JUMP;
    default:
        return WAY_STRAIGHT;
    }
}

bool tl_etrace_walk_at_branch(struct tl_etrace_walk *w)
{
    const struct tl_block *const b = tl_etrace_here(w);
    return b && tl_etrace_at_end(w, b) && b->last_kind == TL_INSN_BRANCH && b->conditional;
}

bool tl_etrace_walk_at_jump(struct tl_etrace_walk *w)
{
    struct tl_block *const b = tl_etrace_here(w);
    uint64_t to;
    return b && tl_etrace_way_of(w, b, &to) >= WAY_RETURN;
}

bool tl_etrace_walk_at_trap(struct tl_etrace_walk *w)
{
    const struct tl_block *const b = tl_etrace_here(w);
    return b && tl_etrace_at_end(w, b) && b->last_kind == TL_INSN_TRAP;
}
