/* SPDX-License-Identifier: MIT */
/*
 * Makes random A32 and T32 programs. First the kinds of all instructions, then their encodings,
 * since a branch needs the address that it goes to.
 */
#include "sim/arm32_program.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

static int add(struct tl_arm32_program *p, struct tl_arm32_insn insn)
{
    if (tl_grow(&p->insns, &p->cap, p->n + 1, sizeof *p->insns) < 0)
        return TL_NOMEM;
    insn.address = p->base + (uint32_t)p->code.n;
    p->insns[p->n++] = insn;
    return tl_buf_add(&p->code, (const uint8_t[4]){0}, insn.size);
}

static int align(struct tl_arm32_program *p)
{
    return p->code.n % 4 ? tl_buf_add(&p->code, (const uint8_t[2]){0}, 2) : TL_OK;
}

static uint8_t kind_of(struct tl_sim_rng *rng, uint32_t function)
{
    const uint32_t dice = tl_sim_below(rng, 100);
    const bool calls = function + 1 < TL_ARM32_FUNCTIONS;
    return dice < 50            ? TL_ARM32_PLAIN
           : dice < 58          ? TL_ARM32_MAYBE
           : dice < 76          ? TL_ARM32_BRANCH
           : dice < 86 && calls ? TL_ARM32_CALL
           : dice < 91 && calls ? TL_ARM32_INDIRECT
           : dice < 94          ? TL_ARM32_BARRIER
           : dice < 97          ? TL_ARM32_DMB
           : dice < 98          ? TL_ARM32_SVC
                                : TL_ARM32_PLAIN;
}

/* ---- loads and stores ------------------------------------------------------------------------ */

struct access {
    uint32_t encoding;
    uint8_t access, transfers, width;
};

static const struct access accesses_a32[] = {
    {0xe5910000, 1, 1, 4}, {0xe5c10000, 2, 1, 1}, {0xe1d100b0, 1, 1, 2}, /* LDR, STRB, LDRH */
    {0xe891000d, 1, 3, 4}, {0xe1c100d0, 1, 2, 4}, {0xe1c100f0, 2, 2, 4}, /* LDM, LDRD, STRD */
    {0xe881000d, 2, 3, 4}, {0xe1d100d0, 1, 1, 1}, {0xe7c10002, 2, 1, 1}, /* STM, LDRSB, STRB */
    {0xed910b00, 1, 2, 4}, {0xe1910f9f, 1, 1, 4},                        /* VLDR, LDREX */
};
static const struct access accesses_t16[] = {
    {0x6808, 1, 1, 4}, {0x7008, 2, 1, 1},
    {0x8808, 1, 1, 2}, /* LDR, STRB, LDRH */
    {0xc10c, 2, 2, 4}, {0xb40c, 2, 2, 4},
    {0xbc0c, 1, 2, 4}, /* STM, PUSH, POP */
    {0x5688, 1, 1, 1}, {0x4801, 1, 1, 4},
    {0x9001, 2, 1, 4}, /* LDRSB, a literal, STR to the stack */
};
static const struct access accesses_t32[] = {
    {0xe9d10200, 1, 2, 4}, {0xe9c10200, 2, 2, 4}, {0xe891000d, 1, 3, 4}, /* LDRD, STRD, LDM */
    {0xf8d10000, 1, 1, 4}, {0xf8a10000, 2, 1, 2}, {0xf9910000, 1, 1, 1}, /* LDR, STRH, LDRSB */
    {0xe8d10f4f, 1, 1, 1}, {0xe8410200, 2, 1, 4}, {0xed810b00, 2, 2, 4}, /* LDREXB, STREX, VSTR */
};

/* One in three plain instructions accesses memory. */
static void make_access(struct tl_arm32_insn *i, struct tl_sim_rng *rng)
{
    enum { A32 = sizeof accesses_a32, T16 = sizeof accesses_t16, T32 = sizeof accesses_t32 };
    const struct access *const list = !i->t32        ? accesses_a32
                                      : i->size == 2 ? accesses_t16
                                                     : accesses_t32;
    const size_t bytes = !i->t32 ? A32 : i->size == 2 ? T16 : T32;
    const struct access *const a = &list[tl_sim_below(rng, (uint32_t)(bytes / sizeof *list))];
    if (i->kind != TL_ARM32_PLAIN || tl_sim_below(rng, 3) > 0)
        return;
    i->encoding = a->encoding;
    i->access = a->access;
    i->transfers = a->transfers;
    i->width = a->width;
}

static int add_function(struct tl_arm32_program *p, struct tl_sim_rng *rng, uint32_t function,
                        bool m_profile)
{
    const bool t32 = m_profile || tl_sim_below(rng, 2);
    const uint32_t first = (uint32_t)p->n, n = tl_sim_between(rng, 4, 40);
    p->functions[function] = first;
    for (uint32_t i = 0; i <= n; i++) {
        struct tl_arm32_insn insn = {.t32 = t32, .kind = kind_of(rng, function), .size = 4};
        if (insn.kind == TL_ARM32_BRANCH && i < n) { /* forward */
            insn.conditional = tl_sim_below(rng, 3) > 0;
            insn.target = first + tl_sim_between(rng, i + 1, n);
        }
        if (insn.kind == TL_ARM32_CALL)
            insn.target =
                tl_sim_between(rng, function + 1, TL_ARM32_FUNCTIONS - 1); /* a function yet */
        if (i == n) {
            insn.kind = function ? TL_ARM32_RETURN : TL_ARM32_BRANCH;
            insn.conditional = false;
            insn.target = first;
        }
        if (t32 && insn.kind == TL_ARM32_MAYBE)
            insn.kind = TL_ARM32_PLAIN; /* it would need an IT block */
        const bool narrow = insn.kind == TL_ARM32_PLAIN || insn.kind == TL_ARM32_RETURN ||
                            insn.kind == TL_ARM32_INDIRECT || insn.kind == TL_ARM32_SVC;
        if (t32 && narrow && (insn.kind != TL_ARM32_PLAIN || tl_sim_below(rng, 3)))
            insn.size = 2;
        make_access(&insn, rng);
        const int rc = add(p, insn);
        if (rc < 0)
            return rc;
    }
    return align(p);
}

static int add_handler(struct tl_arm32_program *p, bool m_profile)
{
    p->handler = (uint32_t)p->n;
    int rc = TL_OK;
    for (unsigned i = 0; i < 4 && rc == TL_OK; i++)
        rc = add(p, (struct tl_arm32_insn){.t32 = m_profile,
                                           .kind = i == 3 ? TL_ARM32_LEAVE : TL_ARM32_PLAIN,
                                           .size = m_profile ? 2 : 4});
    return rc;
}

/* ---- encodings ------------------------------------------------------------------------------- */

static uint32_t bits(uint32_t value, unsigned high, unsigned low)
{
    return value >> low & ((1u << (high - low + 1)) - 1);
}

static uint32_t a32(const struct tl_arm32_insn *i, const struct tl_arm32_insn *to)
{
    const uint32_t offset = to ? (to->address - i->address - 8) >> 2 & 0xffffff : 0;
    switch (i->kind) {
    case TL_ARM32_MAYBE:
        return 0x01a00000; /* MOVEQ r0, r0 */
    case TL_ARM32_BRANCH:
        return (i->conditional ? 0x1a000000 : 0xea000000) | offset;
    case TL_ARM32_CALL:
        if (to->t32)
            return 0xfa000000 | offset | ((to->address - i->address - 8) & 2) << 23;
        return 0xeb000000 | offset;
    case TL_ARM32_INDIRECT:
        return 0xe12fff33; /* BLX r3 */
    case TL_ARM32_RETURN:
        return 0xe12fff1e; /* BX LR */
    case TL_ARM32_BARRIER:
        return 0xf57ff06f;
    case TL_ARM32_DMB:
        return 0xf57ff05f;
    case TL_ARM32_SVC:
        return 0xef000000;
    case TL_ARM32_LEAVE:
        return 0xe25ef004; /* SUBS PC, LR, #4 */
    default:
        return 0xe1a00000;
    }
}

/* BL and BLX: S:I1:I2:imm10:imm11, with I = NOT(J EOR S) */
static uint32_t t32_call(uint32_t from, const struct tl_arm32_insn *to)
{
    const uint32_t base = to->t32 ? from + 4 : (from + 4) & ~3u, offset = to->address - base;
    const uint32_t s = bits(offset, 24, 24), j1 = (bits(offset, 23, 23) ^ s) ^ 1,
                   j2 = (bits(offset, 22, 22) ^ s) ^ 1;
    return 0xf000c000 | (to->t32 ? 0x1000u : 0) | s << 26 | bits(offset, 21, 12) << 16 | j1 << 13 |
           j2 << 11 | (to->t32 ? bits(offset, 11, 1) : bits(offset, 11, 2) << 1);
}

static uint32_t t32(const struct tl_arm32_insn *i, const struct tl_arm32_insn *to)
{
    const uint32_t offset = to ? to->address - i->address - 4 : 0;
    const uint32_t s = bits(offset, 31, 31);
    switch (i->kind) {
    case TL_ARM32_BRANCH:
        if (i->conditional) /* BNE.W */
            return 0xf0408000 | s << 26 | bits(offset, 17, 12) << 16 | s << 13 | s << 11 |
                   bits(offset, 11, 1);
        return (t32_call(i->address, to) & ~0x4000u);
    case TL_ARM32_CALL:
        return t32_call(i->address, to);
    case TL_ARM32_INDIRECT:
        return 0x4798; /* BLX r3 */
    case TL_ARM32_RETURN:
    case TL_ARM32_LEAVE:
        return 0x4770; /* BX LR */
    case TL_ARM32_BARRIER:
        return 0xf3bf8f6f;
    case TL_ARM32_DMB:
        return 0xf3bf8f5f;
    case TL_ARM32_SVC:
        return 0xdf00;
    default:
        return i->size == 2 ? 0x4600 : 0xf3af8000;
    }
}

static void encode(struct tl_arm32_program *p, struct tl_arm32_insn *i)
{
    if (i->kind == TL_ARM32_CALL)
        i->target = p->functions[i->target];
    const bool goes = i->kind == TL_ARM32_BRANCH || i->kind == TL_ARM32_CALL;
    const struct tl_arm32_insn *const to = goes ? &p->insns[i->target] : NULL;
    uint8_t *const at = p->code.p + (i->address - p->base);
    if (!i->access)
        i->encoding = i->t32 ? t32(i, to) : a32(i, to);
    if (!i->t32) {
        tl_put_le32(at, i->encoding);
    } else if (i->size == 2) {
        tl_put_le16(at, (uint16_t)i->encoding);
    } else { /* the first halfword first */
        tl_put_le16(at, (uint16_t)(i->encoding >> 16));
        tl_put_le16(at + 2, (uint16_t)i->encoding);
    }
}

int tl_arm32_program_init(struct tl_arm32_program *p, uint64_t seed, uint32_t base, bool m_profile)
{
    struct tl_sim_rng rng = {seed};
    *p = (struct tl_arm32_program){.base = base};
    int rc = TL_OK;
    for (uint32_t f = 0; f < TL_ARM32_FUNCTIONS && rc == TL_OK; f++)
        rc = add_function(p, &rng, f, m_profile);
    if (rc == TL_OK)
        rc = add_handler(p, m_profile);
    for (size_t i = 0; i < p->n && rc == TL_OK; i++)
        encode(p, &p->insns[i]);
    return rc;
}

void tl_arm32_program_fini(struct tl_arm32_program *p)
{
    free(p->insns);
    tl_buf_fini(&p->code);
}
