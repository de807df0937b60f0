/* SPDX-License-Identifier: MIT */
/*
 * STF records of a group to the instruction they describe. Apart from the walk, since readers of
 * single blocks need only this.
 */
#include "shard/walk.h"
#include "stf/flow_map.h"

/* Process the other records of a group. Returns the record's size, or < 0. */
static int other_record(const struct tl_stf_layout *layout, bool whole, struct tl_bytes rest,
                        struct tl_walk_step *insn, uint64_t *pc, bool *has_next)
{
    const int size = tl_stf_record_size(layout, rest);
    if (size < 0 || (size_t)size > rest.n)
        return TL_BAD;
    switch (rest.p[0]) {
    case TL_STF_FORCE_PC:
        *pc = tl_le64(rest.p + 1);
        break;
    case TL_STF_COMMENT: /* the next group has a FORCE_PC if it continues elsewhere */
        if (!whole && size == 5 + 1 && rest.p[5] == TL_STF_LEAVES)
            insn->taken = insn->leaves = true;
        break;
    case TL_STF_EVENT: /* neither an interrupt nor a change of mode */
        insn->faulted |= !(rest.p[layout->event64 ? 8 : 4] & 0xc0);
        break;
    case TL_STF_EVENT_PC_TARGET:
        insn->next = tl_le64(rest.p + 1);
        *has_next = true;
        break;
    case TL_STF_INST_MICROOP:
        for (uint8_t i = 0; i < rest.p[1] && i < 4 && insn->size < TL_STF_INSN_MAX; i++)
            insn->code[insn->size++] = rest.p[2 + i];
        break;
    default:
        break;
    }
    return size;
}

int tl_walk_step(const struct tl_stf_layout *layout, uint8_t isa, bool whole, struct tl_bytes in,
                 uint64_t pc, struct tl_walk_step *insn)
{
    struct tl_bytes rest = in;
    bool has_next = false;
    insn->size = 0;
    insn->taken = insn->leaves = insn->faulted = false;
    while (rest.n > 0) {
        const uint8_t type = rest.p[0];
        const bool wide = type == TL_STF_INST_32;
        if (wide || type == TL_STF_INST_16) {
            const uint32_t n = wide ? TL_STF_CLOSING_BYTES : TL_STF_CLOSING_16_BYTES;
            if (rest.n < n)
                return TL_BAD;
            insn->opcode = wide ? tl_le32(rest.p + 1) : tl_le16(rest.p + 1);
            const uint8_t closed = wide ? 4 : 2;
            if (insn->size == 0 || (whole && !tl_isa_is_x86((enum tl_isa)isa)))
                insn->size = closed;
            insn->pc = pc;
            if (!has_next)
                insn->next = pc + (whole ? closed : insn->size);
            insn->group = (struct tl_bytes){in.p, (size_t)(rest.p - in.p) + n};
            return (int)insn->group.n;
        }
        if (type == TL_STF_INST_PC_TARGET && rest.n >= TL_STF_TARGET_BYTES) {
            insn->taken = true; /* even if to the next instruction */
            insn->next = tl_le64(rest.p + 1);
            has_next = true;
            rest = (struct tl_bytes){rest.p + TL_STF_TARGET_BYTES, rest.n - TL_STF_TARGET_BYTES};
            continue;
        }
        const int size = other_record(layout, whole, rest, insn, &pc, &has_next);
        if (size < 0)
            return size;
        rest.p += size;
        rest.n -= (size_t)size;
    }
    return TL_BAD;
}

void tl_walk_code(struct tl_walk_step *insn, uint8_t isa)
{
    if (insn->size == 4 && isa == TL_ISA_T32) {
        tl_put_le16(insn->code, (uint16_t)(insn->opcode >> 16));
        tl_put_le16(insn->code + 2, (uint16_t)insn->opcode);
    } else if (insn->size == 4) {
        tl_put_le32(insn->code, insn->opcode);
    } else if (insn->size == 2) {
        tl_put_le16(insn->code, (uint16_t)insn->opcode);
    }
}
