/* SPDX-License-Identifier: MIT */
/*
 * An instruction consists of legacy prefixes, at most one of REX, REX2, VEX or EVEX, an opcode in
 * one of the maps, ModRM with SIB and displacement, and immediates. A letter per opcode of the
 * first two maps specifies which of these it has; the other maps are regular.
 */
#include "isa/x86.h"

#include "base/err.h"
#include "isa/isa_parts.h"

#include <string.h>

/*
 * -  nothing       m  ModRM          n  ModRM whose mod is ignored
 * b  imm8          z  imm16/32       v  imm16/32/64       w  imm16       e  imm16, imm8
 * B  ModRM, imm8   Z  ModRM, imm16/32
 * j  rel8          J  rel16/32       o  address           f  far address
 * g  F6: imm8 for /0, /1    G  F7: imm16/32 for /0, /1    C  C7: imm for /0, rel for /7
 * p  push imm16/32          A  0F 78
 */
static const char map0[257] = "mmmmbz--mmmmbz--mmmmbz--mmmmbz--mmmmbz--mmmmbz--mmmmbz--mmmmbz--"
                              "----------------" /* 40 */
                              "----------------" /* 50 */
                              "--mm----pZbB----" /* 60 */
                              "jjjjjjjjjjjjjjjj" /* 70 */
                              "BZBBmmmmmmmmmmmm" /* 80 */
                              "----------f-----" /* 90 */
                              "oooo----bz------" /* a0 */
                              "bbbbbbbbvvvvvvvv" /* b0 */
                              "BBw-mmBCe-w--b--" /* c0 */
                              "mmmmbb--mmmmmmmm" /* d0 */
                              "jjjjbbbbJJfj----" /* e0 */
                              "------gG------mm" /* f0 */;

static const char map1[257] = "mmmm---------m-B" /* 00 */
                              "mmmmmmmmmmmmmmmm" /* 10 */
                              "nnnnnnnnmmmmmmmm" /* 20 */
                              "----------------" /* 30 */
                              "mmmmmmmmmmmmmmmm" /* 40 */
                              "mmmmmmmmmmmmmmmm" /* 50 */
                              "mmmmmmmmmmmmmmmm" /* 60 */
                              "BBBBmmm-Ammmmmmm" /* 70 */
                              "JJJJJJJJJJJJJJJJ" /* 80 */
                              "mmmmmmmmmmmmmmmm" /* 90 */
                              "---mBmmm---mBmmm" /* a0 */
                              "mmmmmmmmmmBmmmmm" /* b0 */
                              "mmBmBBBm--------" /* c0 */
                              "mmmmmmmmmmmmmmmm" /* d0 */
                              "mmmmmmmmmmmmmmmm" /* e0 */
                              "mmmmmmmmmmmmmmmm" /* f0 */;

enum encoding { LEGACY, VEX, EVEX };

struct decoder {
    const uint8_t *p;
    size_t n; /* bytes available, at most TL_X86_MAX */
    size_t at;
    enum tl_isa isa;
    uint8_t map, opcode, modrm;
    uint8_t encoding; /* enum encoding */
    uint8_t repeat;   /* the last of F2 and F3 */
    bool osz, asz, f3, rex_w, rex2;
    uint8_t rex_r;
    uint8_t n_displacement; /* bytes of a branch's displacement */
    size_t displacement;    /* offset of the displacement */
};

static bool is_64(const struct decoder *d)
{
    return d->isa == TL_ISA_X64;
}

/* Are operands 16 bits wide, rather than 32 (or 64 with REX.W)? */
static bool has_short_operands(const struct decoder *d)
{
    return (d->isa == TL_ISA_X16) != d->osz && !d->rex_w;
}

static unsigned address_bytes(const struct decoder *d)
{
    if (is_64(d))
        return d->asz ? 4 : 8;
    return (d->isa == TL_ISA_X16) != d->asz ? 2 : 4;
}

/* Skip `size` bytes. False: not enough bytes. */
static bool skip(struct decoder *d, size_t size)
{
    d->at += size;
    return d->at <= d->n;
}

/* ---- prefixes ------------------------------------------------------------------------------- */

/* VEX and EVEX begin like instructions with a ModRM for a memory operand, and can be such
 * instructions only outside 64-bit mode. */
static bool is_vector_prefix(const struct decoder *d)
{
    return is_64(d) || (d->at + 1 < d->n && d->p[d->at + 1] >= 0xc0);
}

static void set_pp(struct decoder *d, uint8_t pp)
{
    d->osz |= pp == 1;
    d->f3 |= pp == 2;
    if (pp > 1)
        d->repeat = pp == 2 ? 0xf3 : 0xf2;
}

/* Read a VEX, EVEX or REX2 prefix at `at`, and the opcode. False: not enough bytes. */
static bool take_vector_prefix(struct decoder *d, uint8_t byte)
{
    const size_t size = byte == 0x62 ? 4 : byte == 0xc4 ? 3 : 2;
    if (d->at + size >= d->n)
        return false;
    const uint8_t p1 = d->p[d->at + 1], p2 = d->p[d->at + 2];
    switch (byte) {
    case 0xc5:
        d->encoding = VEX;
        d->map = 1;
        set_pp(d, p1 & 3);
        break;
    case 0xc4:
    case 0x62:
        d->encoding = byte == 0xc4 ? VEX : EVEX;
        d->map = p1 & (byte == 0xc4 ? 0x1f : 7);
        d->rex_w = p2 & 0x80;
        set_pp(d, p2 & 3);
        break;
    default: /* d5: REX2 */
        d->rex2 = true;
        d->rex_w = p1 & 8;
        d->rex_r = (p1 >> 2 & 1) | (p1 >> 5 & 2);
        d->map = p1 >> 7;
        break;
    }
    d->opcode = d->p[d->at + size];
    d->at += size + 1;
    return true;
}

static bool take_opcode(struct decoder *d)
{
    const uint8_t b = d->p[d->at++];
    d->opcode = b;
    d->map = 0;
    if (b != 0x0f)
        return true;
    if (d->at >= d->n)
        return false;
    d->opcode = d->p[d->at++];
    d->map = 1;
    if (d->opcode != 0x38 && d->opcode != 0x3a)
        return true;
    d->map = d->opcode == 0x38 ? 2 : 3;
    if (d->at >= d->n)
        return false;
    d->opcode = d->p[d->at++];
    return true;
}

/* Read prefixes and opcode. False: not enough bytes. */
static bool take_head(struct decoder *d)
{
    uint8_t rex = 0;
    for (; d->at < d->n; d->at++) {
        const uint8_t b = d->p[d->at];
        switch (b) {
        case 0x66:
            d->osz = true;
            break;
        case 0x67:
            d->asz = true;
            break;
        case 0xf3:
            d->f3 = true;
            d->repeat = b;
            break;
        case 0xf2:
            d->repeat = b;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0xf0:
            break;
        case 0xc4:
        case 0xc5:
        case 0x62:
            if (d->at + 1 >= d->n)
                return false;
            if (is_vector_prefix(d))
                return take_vector_prefix(d, b);
            return take_opcode(d);
        case 0xd5:
            return is_64(d) ? take_vector_prefix(d, b) : take_opcode(d);
        default:
            if (is_64(d) && (b & 0xf0) == 0x40) {
                rex = b;
                continue;
            }
            d->rex_w = rex & 8;
            d->rex_r = rex >> 2 & 1;
            return take_opcode(d);
        }
        rex = 0; /* only valid immediately before the opcode */
    }
    return false;
}

/* ---- operands ------------------------------------------------------------------------------- */

static bool take_modrm(struct decoder *d)
{
    if (d->at >= d->n)
        return false;
    d->modrm = d->p[d->at++];
    const unsigned mod = d->modrm >> 6, rm = d->modrm & 7, address = address_bytes(d);
    if (mod == 3)
        return true;
    if (address == 2)
        return skip(d, mod == 1 ? 1 : mod == 2 || rm == 6 ? 2 : 0);
    unsigned base = rm;
    if (rm == 4) {
        if (d->at >= d->n)
            return false;
        base = d->p[d->at++] & 7;
    }
    return skip(d, mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0);
}

static char letter_of(const struct decoder *d)
{
    static const char evex4_imm8[] = {0x24,       0x2c,       0x6b,      (char)0x80,
                                      (char)0x83, (char)0xc0, (char)0xc1};
    if (d->encoding == LEGACY)
        return d->map == 0   ? map0[d->opcode]
               : d->map == 1 ? map1[d->opcode]
               : d->map == 2 ? 'm'
                             : 'B';
    switch (d->map) {
    case 1:
        if (d->encoding == VEX && d->opcode == 0x77)
            return '-';
        return (d->opcode & 0xfc) == 0x70 || d->opcode == 0xc2 ||
                       (d->opcode >= 0xc4 && d->opcode <= 0xc6)
                   ? 'B'
                   : 'm';
    case 2:
    case 5:
    case 6:
        return 'm';
    case 3:
        return 'B';
    case 4: /* APX: opcodes of the first two maps */
        if (d->encoding == VEX)
            return '?';
        if (memchr(evex4_imm8, d->opcode, sizeof evex4_imm8))
            return 'B';
        return d->opcode == 0x69 || d->opcode == 0x81 ? 'Z'
               : d->opcode == 0xf6                    ? 'g'
               : d->opcode == 0xf7                    ? 'G'
                                                      : 'm';
    case 7:
        return 'I';
    default:
        return '?';
    }
}

static inline bool has_modrm(char letter)
{
    switch (letter) {
    case 'm':
    case 'B':
    case 'Z':
    case 'g':
    case 'G':
    case 'C':
    case 'A':
    case 'I':
        return true;
    default:
        return false;
    }
}

static bool take_relative(struct decoder *d, unsigned size)
{
    d->displacement = d->at;
    d->n_displacement = (uint8_t)size;
    return skip(d, size);
}

/* Read everything after the opcode. Returns 0: not enough bytes; TL_BAD: undefined instruction. */
static int take_operands(struct decoder *d)
{
    const unsigned z = has_short_operands(d) ? 2 : 4;
    const char letter = letter_of(d);
    if (has_modrm(letter) && !take_modrm(d))
        return 0;
    const unsigned reg = d->modrm >> 3 & 7;
    switch (letter) {
    case '-':
    case 'm':
        return 1;
    case 'n':
        if (!skip(d, 1))
            return 0;
        d->modrm = d->p[d->at - 1];
        return 1;
    case 'b':
    case 'B':
        return skip(d, 1);
    case 'z':
    case 'Z':
        return skip(d, z);
    case 'p':
        return skip(d, is_64(d) && !d->osz ? 4 : z);
    case 'v':
        return skip(d, d->rex_w ? 8 : z);
    case 'w':
        return skip(d, 2);
    case 'e':
        return skip(d, 3);
    case 'j':
        return take_relative(d, 1);
    case 'J': /* Intel's processors ignore an operand size prefix in 64-bit mode */
        return take_relative(d, is_64(d) ? 4 : z);
    case 'o':
        return take_relative(d, address_bytes(d));
    case 'f':
        return skip(d, z + 2);
    case 'g':
        return skip(d, reg < 2);
    case 'G':
        return skip(d, reg < 2 ? z : 0);
    case 'C':
        return reg == 7 ? take_relative(d, z) : skip(d, reg == 0 ? z : 0);
    case 'A': /* EXTRQ, INSERTQ; else VMREAD */
        return skip(d, d->osz || d->repeat == 0xf2 ? 2 : 0);
    case 'I':
        return skip(d, 4);
    default:
        return TL_BAD;
    }
}

/* ---- classes -------------------------------------------------------------------------------- */

static void set(struct tl_x86_insn *out, enum tl_x86_class class, enum tl_x86_special special)
{
    out->class = (uint8_t) class;
    out->special = (uint8_t)special;
}

static void set_direct(const struct decoder *d, enum tl_x86_class class, struct tl_x86_insn *out)
{
    uint64_t v = 0;
    for (unsigned i = d->n_displacement; i-- > 0;)
        v = v << 8 | d->p[d->displacement + i];
    const unsigned up = 64 - 8u * d->n_displacement;
    out->class = (uint8_t) class;
    out->direct = true;
    out->displacement = up < 64 ? (int64_t)(v << up) >> up : 0;
}

static void classify_map0(const struct decoder *d, struct tl_x86_insn *out)
{
    const unsigned reg = d->modrm >> 3 & 7;
    const bool branches = !d->rex2; /* with REX2 these are different instructions, or undefined */
    switch (d->opcode) {
    case 0x9a:
        if (!is_64(d))
            set(out, TL_X86_FAR_CALL, TL_X86_PLAIN);
        return;
    case 0xff:
        if (reg >= 2 && reg <= 5) {
            static const uint8_t classes[] = {TL_X86_CALL, TL_X86_FAR_CALL, TL_X86_JUMP,
                                              TL_X86_FAR_JUMP};
            out->class = classes[reg - 2];
        }
        return;
    case 0xcc:
    case 0xcd:
    case 0xf1:
        set(out, TL_X86_FAR_CALL, TL_X86_INT);
        return;
    case 0xce:
        if (!is_64(d))
            set(out, TL_X86_FAR_CALL, TL_X86_INT);
        return;
    case 0xcf:
        set(out, TL_X86_FAR_RETURN, TL_X86_IRET);
        return;
    case 0xc2:
    case 0xc3:
        set(out, TL_X86_RETURN, TL_X86_PLAIN);
        return;
    case 0xca:
    case 0xcb:
        set(out, TL_X86_FAR_RETURN, TL_X86_PLAIN);
        return;
    case 0xea:
        if (!is_64(d))
            set(out, TL_X86_FAR_JUMP, TL_X86_PLAIN);
        return;
    case 0xe8:
        if (branches)
            set_direct(d, TL_X86_CALL, out);
        return;
    case 0xe9:
    case 0xeb:
        if (branches)
            set_direct(d, TL_X86_JUMP, out);
        return;
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
        if (branches)
            set_direct(d, TL_X86_COND, out);
        return;
    case 0xa1: /* JMPABS */
        if (d->rex2 && !d->rex_w && !d->asz && !d->osz) {
            set_direct(d, TL_X86_JUMP, out);
            out->absolute = true;
        }
        return;
    default:
        if ((d->opcode & 0xf0) == 0x70 && branches)
            set_direct(d, TL_X86_COND, out);
        return;
    }
}

static void classify_0f01(const struct decoder *d, struct tl_x86_insn *out)
{
    switch (d->modrm) {
    case 0xc1:
        set(out, TL_X86_FAR_CALL, TL_X86_VMCALL);
        break;
    case 0xc2:
    case 0xc3:
        set(out, TL_X86_FAR_RETURN, TL_X86_VM_ENTRY);
        break;
    case 0xec: /* UIRET */
        set(out, TL_X86_FAR_RETURN, TL_X86_UIRET);
        break;
    case 0xca:
        if (d->repeat)
            set(out, TL_X86_FAR_RETURN, TL_X86_ERET);
        break;
    default:
        break;
    }
}

static void classify_map1(const struct decoder *d, struct tl_x86_insn *out)
{
    const unsigned reg = d->modrm >> 3 & 7;
    switch (d->opcode) {
    case 0x01:
        classify_0f01(d, out);
        return;
    case 0x05:
        set(out, TL_X86_FAR_CALL, TL_X86_SYSCALL);
        return;
    case 0x07:
        set(out, TL_X86_FAR_RETURN, TL_X86_SYSRET);
        return;
    case 0x34:
        if (!d->rex2)
            set(out, TL_X86_FAR_CALL, TL_X86_SYSENTER);
        return;
    case 0x35:
        if (!d->rex2)
            set(out, TL_X86_FAR_RETURN, TL_X86_SYSEXIT);
        return;
    case 0x22:
        if (reg == 3 && !d->rex_r)
            out->special = TL_X86_MOV_CR3;
        return;
    case 0xc7:
        if (reg == 6 && d->modrm < 0xc0)
            out->special = TL_X86_VMPTRLD;
        return;
    case 0xae:
        if (reg == 4 && d->f3 && !d->osz)
            out->class = TL_X86_PTWRITE;
        return;
    default:
        if ((d->opcode & 0xf0) == 0x80 && !d->rex2)
            set_direct(d, TL_X86_COND, out);
        return;
    }
}

int tl_x86_decode(enum tl_isa isa, struct tl_bytes code, struct tl_x86_insn *out)
{
    struct decoder d = {.p = code.p, .n = code.n < TL_X86_MAX ? code.n : TL_X86_MAX, .isa = isa};
    *out = (struct tl_x86_insn){0};
    const int rc = take_head(&d) ? take_operands(&d) : 0;
    if (rc == TL_BAD)
        return TL_BAD;
    if (rc == 0)
        return code.n < TL_X86_MAX ? TL_AGAIN : TL_BAD;
    if (d.map == 1 && d.encoding == LEGACY && (d.opcode & 0xf8) == 0x38)
        return TL_BAD; /* undefined maps */
    out->size = (uint8_t)d.at;
    if (d.encoding == LEGACY && d.map == 0)
        classify_map0(&d, out);
    else if (d.encoding == LEGACY && d.map == 1)
        classify_map1(&d, out);
    return out->size;
}

/*
 * ---- common interface ---------------------------------------------------------------------------
 */

static enum tl_insn_kind kind_of(const struct tl_x86_insn *x)
{
    switch (x->class) {
    case TL_X86_CALL:
    case TL_X86_JUMP: /* the trace has the target of JMPABS */
        return x->direct && !x->absolute ? TL_INSN_BRANCH : TL_INSN_INDIRECT;
    case TL_X86_COND:
        return TL_INSN_BRANCH;
    case TL_X86_RETURN:
    case TL_X86_FAR_JUMP:
        return TL_INSN_INDIRECT;
    case TL_X86_FAR_CALL:
        return x->special == TL_X86_PLAIN ? TL_INSN_INDIRECT : TL_INSN_TRAP;
    case TL_X86_FAR_RETURN:
        return x->special == TL_X86_PLAIN ? TL_INSN_INDIRECT : TL_INSN_RETURN_EX;
    default:
        return TL_INSN_PLAIN;
    }
}

static bool is_near_branch(const uint8_t *p)
{
    return (p[0] & 0xf0) == 0x70 || p[0] == 0xe8 || p[0] == 0xe9 || p[0] == 0xeb || p[0] == 0xc3 ||
           (p[0] == 0x0f && (p[1] & 0xf0) == 0x80);
}

/*
 * Fast path for nearly all waypoints: Jcc, JMP, CALL, RET without prefixes, in 32- and 64-bit mode.
 */
static int decode_near_branch(const uint8_t *p, struct tl_x86_insn *out)
{
    const bool is_short = (p[0] & 0xf0) == 0x70 || p[0] == 0xeb;
    const bool escaped = p[0] == 0x0f;
    *out = (struct tl_x86_insn){.size = 1, .class = TL_X86_RETURN};
    if (p[0] == 0xc3)
        return out->size;
    int32_t distance;
    memcpy(&distance, p + 1 + escaped, sizeof distance);
    out->size = is_short ? 2 : escaped ? 6 : 5;
    out->class = p[0] == 0xe8                   ? TL_X86_CALL
                 : p[0] == 0xe9 || p[0] == 0xeb ? TL_X86_JUMP
                                                : TL_X86_COND;
    out->direct = true;
    out->displacement = is_short ? (int8_t)p[1] : distance;
    return out->size;
}

int tl_x86_insn_decode(enum tl_isa isa, uint64_t pc, struct tl_bytes code, struct tl_insn *out)
{
    struct tl_x86_insn x;
    const int rc = isa != TL_ISA_X16 && code.n >= 6 && is_near_branch(code.p)
                       ? decode_near_branch(code.p, &x)
                       : tl_x86_decode(isa, code, &x);
    *out = (struct tl_insn){.size = 1};
    if (rc < 0)
        return rc;
    out->size = x.size;
    for (unsigned i = x.size < 4 ? x.size : 4; i-- > 0;)
        out->encoding = out->encoding << 8 | code.p[i];
    out->kind = (uint8_t)kind_of(&x);
    out->binds =
        out->kind == TL_INSN_PLAIN && (x.special != TL_X86_PLAIN || x.class == TL_X86_PTWRITE);
    out->conditional = x.class == TL_X86_COND;
    /* A call of the next instruction only obtains the PC: it never returns. */
    out->link = x.class == TL_X86_CALL && !(x.direct && x.displacement == 0);
    out->is_return = x.class == TL_X86_RETURN;
    out->next_isa = (uint8_t)isa;
    if (x.direct && !x.absolute)
        out->target = tl_x86_target(isa, pc, &x);
    return x.size;
}
