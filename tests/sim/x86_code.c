/* SPDX-License-Identifier: MIT */
#include "sim/x86_code.h"

#include <string.h>

/*
 * An opcode and its operands. `reg` of ModRM: 0..7, ANY, or NONE without a ModRM. `imm`: as in the
 * SDM's opcode map; z has 2 or 4 bytes, v has 2, 4 or 8, a is an address. `no`: the modes that do
 * not have this instruction.
 */
enum { ANY = 8, MEMORY = 16, NONE = 32 };
enum { NOT_16 = 1, NOT_32 = 2, NOT_64 = 4, ONLY_64 = NOT_16 | NOT_32 };

struct form {
    uint8_t op[5], n;
    uint8_t reg;
    char imm;
    uint8_t no;
    bool fixed; /* no operand or address size prefix, no REX */
};

static const struct form others[] = {
    {{0x90}, 1, NONE, 0, 0, false},
    {{0x98}, 1, NONE, 0, 0, false},
    {{0x99}, 1, NONE, 0, 0, false},
    {{0xf8}, 1, NONE, 0, 0, true},
    {{0xc9}, 1, NONE, 0, 0, false},
    {{0x50}, 1, NONE, 0, 0, false},
    {{0x5f}, 1, NONE, 0, 0, false},
    {{0x42}, 1, NONE, 0, NOT_64, false},
    {{0x27}, 1, NONE, 0, NOT_64, false},
    {{0xb1}, 1, NONE, 'b', 0, false},
    {{0xba}, 1, NONE, 'v', 0, false},
    {{0xa8}, 1, NONE, 'b', 0, false},
    {{0xa9}, 1, NONE, 'z', 0, false},
    {{0xa1}, 1, NONE, 'a', 0, false},
    {{0xa2}, 1, NONE, 'a', 0, false},
    {{0x6a}, 1, NONE, 'b', 0, false},
    {{0x68}, 1, NONE, 'z', 0, true},
    {{0xc8}, 1, NONE, 'e', 0, false},
    {{0x01}, 1, ANY, 0, 0, false},
    {{0x8b}, 1, ANY, 0, 0, false},
    {{0x88}, 1, ANY, 0, 0, false},
    {{0x8d}, 1, ANY | MEMORY, 0, 0, false},
    {{0x69}, 1, ANY, 'z', 0, false},
    {{0x6b}, 1, ANY, 'b', 0, false},
    {{0x80}, 1, ANY, 'b', 0, false},
    {{0x81}, 1, ANY, 'z', 0, false},
    {{0x83}, 1, ANY, 'b', 0, false},
    {{0xc1}, 1, 4, 'b', 0, false},
    {{0xc6}, 1, 0, 'b', 0, false},
    {{0xc7}, 1, 0, 'z', 0, false},
    {{0xf6}, 1, 0, 'b', 0, false},
    {{0xf6}, 1, 3, 0, 0, false},
    {{0xf7}, 1, 0, 'z', 0, false},
    {{0xf7}, 1, 2, 0, 0, false},
    {{0xff}, 1, 1, 0, 0, false},
    {{0xff}, 1, 6, 0, 0, false},
    {{0xd9}, 1, 0, 0, 0, true},
    {{0x0f, 0xa2}, 2, NONE, 0, 0, true},
    {{0x0f, 0xc9}, 2, NONE, 0, 0, false},
    {{0x0f, 0x1f}, 2, 0, 0, 0, false},
    {{0x0f, 0xaf}, 2, ANY, 0, 0, false},
    {{0x0f, 0xb6}, 2, ANY, 0, 0, false},
    {{0x0f, 0xba}, 2, 5, 'b', 0, false},
    {{0x0f, 0x10}, 2, ANY, 0, 0, false},
    {{0x0f, 0x70}, 2, ANY, 'b', 0, false},
    {{0x0f, 0x38, 0x00}, 3, ANY, 0, 0, false},
    {{0x0f, 0x3a, 0x0f}, 3, ANY, 'b', 0, false},
    {{0xc5, 0xf8, 0x77}, 3, NONE, 0, NOT_16, true},
    {{0xc5, 0xf8, 0x28}, 3, ANY, 0, NOT_16, true},
    {{0xc5, 0xf9, 0x70}, 3, ANY, 'b', NOT_16, true},
    {{0xc4, 0xe2, 0x79, 0x18}, 4, ANY, 0, NOT_16, true},
    {{0xc4, 0xe3, 0x79, 0x0f}, 4, ANY, 'b', NOT_16, true},
    {{0x62, 0xf1, 0x7c, 0x48, 0x28}, 5, ANY, 0, ONLY_64, true},
    {{0x62, 0xf3, 0x7d, 0x48, 0x25}, 5, ANY, 'b', ONLY_64, true},
};

/* The rows of each kind; j, J: a direct branch with a distance of one byte, or of 2 or 4. */
static const struct {
    uint8_t kind;
    struct form form;
} branches[] = {
    {TL_SIM_X86_COND, {{0x70}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0x7f}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0xe0}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0xe2}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0x67, 0xe3}, 2, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0xe3}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_COND, {{0x0f, 0x84}, 2, NONE, 'J', 0, true}},
    {TL_SIM_X86_COND, {{0x0f, 0x8d}, 2, NONE, 'J', 0, true}},
    {TL_SIM_X86_JUMP, {{0xeb}, 1, NONE, 'j', 0, true}},
    {TL_SIM_X86_JUMP, {{0xe9}, 1, NONE, 'J', 0, true}},
    {TL_SIM_X86_CALL, {{0xe8}, 1, NONE, 'J', 0, true}},
    {TL_SIM_X86_JUMP_INDIRECT, {{0xff}, 1, 4, 0, 0, true}},
    {TL_SIM_X86_CALL_INDIRECT, {{0xff}, 1, 2, 0, 0, true}},
    {TL_SIM_X86_RETURN, {{0xc3}, 1, NONE, 0, 0, true}},
    {TL_SIM_X86_RETURN, {{0xf3, 0xc3}, 2, NONE, 0, 0, true}},
    {TL_SIM_X86_RETURN, {{0xc2}, 1, NONE, 'w', 0, true}},
    {TL_SIM_X86_TRAP, {{0xcd}, 1, NONE, 'b', 0, true}},
    {TL_SIM_X86_TRAP, {{0xcc}, 1, NONE, 0, 0, true}},
    {TL_SIM_X86_TRAP, {{0x0f, 0x05}, 2, NONE, 0, ONLY_64, true}},
    {TL_SIM_X86_TRAP, {{0x0f, 0x34}, 2, NONE, 0, NOT_16, true}},
    {TL_SIM_X86_FAR_CALL, {{0x9a}, 1, NONE, 'f', NOT_64, true}},
    {TL_SIM_X86_FAR_CALL, {{0xff}, 1, 3 | MEMORY, 0, 0, true}},
    {TL_SIM_X86_FAR_JUMP, {{0xea}, 1, NONE, 'f', NOT_64, true}},
    {TL_SIM_X86_FAR_JUMP, {{0xff}, 1, 5 | MEMORY, 0, 0, true}},
    {TL_SIM_X86_FAR_RETURN, {{0xcb}, 1, NONE, 0, 0, true}},
    {TL_SIM_X86_FAR_RETURN, {{0xca}, 1, NONE, 'w', 0, true}},
    {TL_SIM_X86_FAR_RETURN, {{0xcf}, 1, NONE, 0, 0, true}},
    {TL_SIM_X86_FAR_RETURN, {{0x48, 0xcf}, 2, NONE, 0, ONLY_64, true}},
    {TL_SIM_X86_FAR_RETURN, {{0x0f, 0x07}, 2, NONE, 0, ONLY_64, true}},
    {TL_SIM_X86_FAR_RETURN, {{0x0f, 0x35}, 2, NONE, 0, ONLY_64, true}},
    {TL_SIM_X86_PTWRITE, {{0xf3, 0x0f, 0xae}, 3, 4, 0, 0, true}},
    {TL_SIM_X86_PTWRITE, {{0xf3, 0x48, 0x0f, 0xae}, 4, 4, 0, ONLY_64, true}},
    {TL_SIM_X86_MOV_CR3, {{0x0f, 0x22, 0xd8}, 3, NONE, 0, 0, true}},
    {TL_SIM_X86_MOV_CR3, {{0x41, 0x0f, 0x22, 0xdf}, 4, NONE, 0, ONLY_64, true}},
    {TL_SIM_X86_VMPTRLD, {{0x0f, 0xc7}, 2, 6 | MEMORY, 0, 0, true}},
    {TL_SIM_X86_MWAIT, {{0x0f, 0x01, 0xc9}, 3, NONE, 0, 0, true}},
    {TL_SIM_X86_XBEGIN, {{0xc7, 0xf8}, 2, NONE, 'J', 0, true}},
    {TL_SIM_X86_XEND, {{0x0f, 0x01, 0xd5}, 3, NONE, 0, 0, true}},
    {TL_SIM_X86_XABORT, {{0xc6, 0xf8}, 2, NONE, 'b', 0, true}},
};

struct maker {
    struct tl_sim_x86_bytes *out;
    struct tl_sim_rng *rng;
    enum tl_isa isa;
    bool operand, address, wide; /* 66, 67, REX.W */
};

static bool allowed(const struct form *form, enum tl_isa isa)
{
    return !(form->no & (isa == TL_ISA_X16 ? NOT_16 : isa == TL_ISA_X32 ? NOT_32 : NOT_64));
}

static void put(struct maker *m, uint8_t byte)
{
    m->out->p[m->out->n++] = byte;
}

static void put_random(struct maker *m, unsigned n)
{
    while (n-- > 0)
        put(m, (uint8_t)tl_sim_rand(m->rng));
}

static uint8_t segment(struct tl_sim_rng *rng)
{
    static const uint8_t prefixes[] = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65};
    return prefixes[tl_sim_below(rng, sizeof prefixes)];
}

static void put_prefixes(struct maker *m)
{
    if (tl_sim_percent(m->rng, 8)) {
        m->operand = true;
        put(m, 0x66);
    }
    if (tl_sim_percent(m->rng, 5)) {
        m->address = true;
        put(m, 0x67);
    }
    if (tl_sim_percent(m->rng, 5))
        put(m, segment(m->rng));
    if (m->isa != TL_ISA_X64 || !tl_sim_percent(m->rng, 50))
        return;
    const uint8_t rex = 0x40 | (uint8_t)tl_sim_below(m->rng, 16);
    m->wide = rex & 8;
    put(m, rex);
}

static void put_modrm(struct maker *m, uint8_t reg)
{
    const unsigned address =
        (unsigned)((m->isa == TL_ISA_X16) != m->address && m->isa != TL_ISA_X64);
    unsigned mod = tl_sim_below(m->rng, reg & MEMORY ? 3 : 4);
    const unsigned rm = tl_sim_below(m->rng, 8);
    reg &= (uint8_t)~MEMORY;
    if (reg == ANY)
        reg = (uint8_t)tl_sim_below(m->rng, 8);
    put(m, (uint8_t)(mod << 6 | reg << 3 | rm));
    if (mod == 3)
        return;
    if (address) { /* 16-bit addressing */
        put_random(m, mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0);
        return;
    }
    unsigned base = rm;
    if (rm == 4) {
        put_random(m, 1);
        base = m->out->p[m->out->n - 1] & 7;
    }
    put_random(m, mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0);
}

static void put_after(struct maker *m, char what)
{
    const unsigned z = (m->isa == TL_ISA_X16) != m->operand && !m->wide ? 2 : 4;
    switch (what) {
    case 'b':
        put_random(m, 1);
        break;
    case 'w':
        put_random(m, 2);
        break;
    case 'e':
        put_random(m, 3);
        break;
    case 'z':
        put_random(m, z);
        break;
    case 'v':
        put_random(m, m->wide ? 8 : z);
        break;
    case 'a':
        put_random(m, m->isa == TL_ISA_X64                   ? (m->address ? 4 : 8)
                      : (m->isa == TL_ISA_X16) != m->address ? 2
                                                             : 4);
        break;
    case 'f':
        put_random(m, z + 2);
        break;
    case 'j':
    case 'J':
        m->out->relative = what == 'j' ? 1 : (uint8_t)z;
        for (unsigned i = 0; i < m->out->relative; i++)
            put(m, 0);
        break;
    default:
        break;
    }
}

/* Add prefixes without effect, up to the maximum instruction length. */
static void lengthen(struct maker *m)
{
    struct tl_sim_x86_bytes *const out = m->out;
    const unsigned more = tl_sim_below(m->rng, TL_SIM_X86_MAX - out->n + 1u);
    memmove(out->p + more, out->p, out->n);
    for (unsigned i = 0; i < more; i++)
        out->p[i] = segment(m->rng);
    out->n = (uint8_t)(out->n + more);
}

static const struct form *choose(struct tl_sim_rng *rng, enum tl_isa isa, enum tl_sim_x86_kind kind)
{
    for (;;) {
        const struct form *form = &others[tl_sim_below(rng, sizeof others / sizeof *others)];
        if (kind != TL_SIM_X86_OTHER) {
            const uint32_t k = tl_sim_below(rng, sizeof branches / sizeof *branches);
            if (branches[k].kind != kind)
                continue;
            form = &branches[k].form;
        }
        if (allowed(form, isa))
            return form;
    }
}

void tl_sim_x86_make(struct tl_sim_x86_bytes *out, struct tl_sim_rng *rng, enum tl_isa isa,
                     enum tl_sim_x86_kind kind)
{
    struct maker m = {.out = out, .rng = rng, .isa = isa};
    const struct form *const form = choose(rng, isa, kind);
    *out = (struct tl_sim_x86_bytes){.n = 0};
    if (!form->fixed)
        put_prefixes(&m);
    for (unsigned i = 0; i < form->n; i++)
        put(&m, form->op[i]);
    if (form->reg != NONE)
        put_modrm(&m, form->reg);
    put_after(&m, form->imm);
    if (tl_sim_percent(rng, 6))
        lengthen(&m);
}

uint32_t tl_sim_x86_code(enum tl_isa isa, uint8_t *code, uint32_t size, uint64_t seed)
{
    struct tl_sim_rng rng = {seed};
    uint32_t n = 0, over = 0; /* distance byte of the last branch */
    for (uint32_t from = 0; n + TL_SIM_X86_MAX <= size;) {
        struct tl_sim_x86_bytes insn;
        const bool branch = tl_sim_percent(&rng, 25);
        tl_sim_x86_make(&insn, &rng, isa,
                        branch ? tl_sim_below(&rng, TL_SIM_X86_PTWRITE) : TL_SIM_X86_OTHER);
        memcpy(code + n, insn.p, insn.n);
        n += insn.n;
        if (over && tl_sim_percent(&rng, 50) && n - from < 128)
            code[over] = (uint8_t)(n - from);
        if (insn.relative) {
            from = n;
            over = n - insn.relative;
        }
    }
    return n;
}
