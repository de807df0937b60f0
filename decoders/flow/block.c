/* SPDX-License-Identifier: MIT */
/*
 * A block stores properties of its last instruction only, since no other can change the flow. The
 * few questions about instructions inside it are answered by decoding its code again, which keeps
 * blocks small: they are the data of the hottest loops.
 */
#include "flow/block.h"

static enum tl_leave leave_by(const struct tl_insn *last)
{
    switch (last->kind) {
    case TL_INSN_BRANCH:
        return last->link ? TL_LEAVE_CALL : TL_LEAVE_JUMP;
    case TL_INSN_INDIRECT:
        return last->link ? TL_LEAVE_CALL : last->is_return ? TL_LEAVE_RETURN : TL_LEAVE_INDIRECT;
    case TL_INSN_RETURN_EX:
        return TL_LEAVE_EXCEPTION_RETURN;
    default:
        return TL_LEAVE_STRAIGHT;
    }
}

void tl_block_set_last(struct tl_block *block, const struct tl_insn *last)
{
    block->last_kind = last->kind;
    block->conditional = last->conditional;
    block->link = last->link;
    block->is_return = last->is_return;
    block->always = last->kind == TL_INSN_BRANCH && !last->link && !last->conditional;
    block->leave = (uint8_t)leave_by(last);
    block->turn[1] |= block->leave > TL_LEAVE_JUMP ? TL_STEP_OUT : 0;
    block->target = last->target;
    block->target_isa = last->next_isa;
}

void tl_block_insn(const struct tl_block *block, uint32_t at, struct tl_insn *out)
{
    static const struct tl_isa_options options = {.wfx_branch = true};
    const struct tl_bytes rest = {block->code + at, block->size - at};
    *out = (struct tl_insn){0};
    tl_insn_decode(block->isa, &options, block->pc + at, rest, out);
    if (block->n != 1 || out->size == block->size)
        return;
    *out = (struct tl_insn){.size = (uint8_t)block->size, .kind = TL_INSN_PLAIN};
    for (uint32_t i = block->size < 4 ? block->size : 4; i-- > 0;)
        out->encoding = out->encoding << 8 | block->code[i];
}

/* Bytes of the instruction at byte `at`. */
static uint32_t size_at(const struct tl_block *block, uint32_t at)
{
    if (block->isa == TL_ISA_T32 && block->n > 1)
        return tl_t32_size(tl_le16(block->code + at));
    struct tl_insn insn;
    tl_block_insn(block, at, &insn);
    return insn.size;
}

uint32_t tl_block_bytes(const struct tl_block *block, uint32_t n)
{
    if (n >= block->n)
        return block->size;
    if (block->isa == TL_ISA_A64 || block->isa == TL_ISA_A32)
        return n * 4;
    uint32_t at = 0;
    while (n-- > 0)
        at += size_at(block, at);
    return at;
}

int64_t tl_block_count_to(const struct tl_block *block, uint64_t pc)
{
    const uint64_t bytes = pc - block->pc;
    if (bytes > block->size)
        return -1;
    if (block->isa == TL_ISA_A64 || block->isa == TL_ISA_A32)
        return bytes % 4 ? -1 : (int64_t)(bytes / 4);
    int64_t n = 0;
    uint32_t at = 0;
    for (; at < bytes; n++)
        at += size_at(block, at);
    return at == bytes ? n : -1;
}
