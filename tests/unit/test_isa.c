/* SPDX-License-Identifier: MIT */
/* Encodings as LLVM's assembler makes them; those newer than it, by the Arm manuals. */
#include "base/err.h"
#include "isa/isa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { COND = 1, LINK = 2, RET = 4, TO_T32 = 8, TO_A32 = 16 };

struct example {
    const char *text;
    uint64_t pc;
    uint64_t target;
    uint32_t op; /* T32: first halfword on top, RISC-V: as a number */
    uint8_t size;
    uint8_t kind;
    uint8_t flags;
};

#define PLAIN     TL_INSN_PLAIN
#define BRANCH    TL_INSN_BRANCH
#define INDIRECT  TL_INSN_INDIRECT
#define RETURN_EX TL_INSN_RETURN_EX
#define SYNC      TL_INSN_SYNC
#define WAIT      TL_INSN_WAIT
#define TRAP      TL_INSN_TRAP
#define TRANSACT  TL_INSN_TRANSACT

static const struct example a64[] = {
    {"b start", 0x1000, 0x1000, 0x14000000, 4, BRANCH, 0},
    {"b end", 4, 0x24, 0x14000008, 4, BRANCH, 0},
    {"bl start", 8, 0, 0x97fffffe, 4, BRANCH, LINK},
    {"bl far back", 0xffff000000000000, 0xfffefffff8000000, 0x96000000, 4, BRANCH, LINK},
    {"b.ne end", 0xc, 0x24, 0x540000c1, 4, BRANCH, COND},
    {"bc.ne end", 0xc, 0x24, 0x540000d1, 4, BRANCH, COND},
    {"b.al end", 0x20, 0x24, 0x5400002e, 4, BRANCH, 0},
    {"cbz x0, end", 0x10, 0x24, 0xb40000a0, 4, BRANCH, COND},
    {"cbnz w1, start", 0x14, 0, 0x35ffff61, 4, BRANCH, COND},
    {"tbz x3, #40, end", 0x18, 0x24, 0xb6400063, 4, BRANCH, COND},
    {"tbnz w3, #3, start", 0x1c, 0, 0x371fff23, 4, BRANCH, COND},
    {"cbeq x6, xzr, .+4", 0x102c0e8, 0x102c0ec, 0xf4df0026, 4, BRANCH, COND},
    {"cbgt w0, #1, .-4", 0x100, 0xfc, 0x7500bfe0, 4, BRANCH, COND},
    {"br x16", 0, 0, 0xd61f0200, 4, INDIRECT, 0},
    {"blr x17", 0, 0, 0xd63f0220, 4, INDIRECT, LINK},
    {"ret", 0, 0, 0xd65f03c0, 4, INDIRECT, RET},
    {"ret x5", 0, 0, 0xd65f00a0, 4, INDIRECT, RET},
    {"braa x1, x2", 0, 0, 0xd71f0822, 4, INDIRECT, 0},
    {"brabz x3", 0, 0, 0xd61f0c7f, 4, INDIRECT, 0},
    {"blraa x4, x5", 0, 0, 0xd73f0885, 4, INDIRECT, LINK},
    {"blrabz x6", 0, 0, 0xd63f0cdf, 4, INDIRECT, LINK},
    {"retaa", 0, 0, 0xd65f0bff, 4, INDIRECT, RET},
    {"retab", 0, 0, 0xd65f0fff, 4, INDIRECT, RET},
    {"retaasppcr x2", 0, 0, 0xd65f0be2, 4, INDIRECT, RET},
    {"retaasppc label", 0, 0, 0x5500009f, 4, INDIRECT, RET},
    {"retabsppc label", 0, 0, 0x5520009f, 4, INDIRECT, RET},
    {"eret", 0, 0, 0xd69f03e0, 4, RETURN_EX, 0},
    {"eretaa", 0, 0, 0xd69f0bff, 4, RETURN_EX, 0},
    {"eretab", 0, 0, 0xd69f0fff, 4, RETURN_EX, 0},
    {"texit", 0, 0, 0xd6ff03e0, 4, RETURN_EX, 0},
    {"texit nb", 0, 0, 0xd6ff07e0, 4, RETURN_EX, 0},
    {"isb", 0, 0, 0xd5033fdf, 4, SYNC, 0},
    {"wfi", 0, 0, 0xd503207f, 4, WAIT, 0},
    {"wfe", 0, 0, 0xd503205f, 4, WAIT, 0},
    {"wfet x3", 0, 0, 0xd5031003, 4, WAIT, 0},
    {"wfit x4", 0, 0, 0xd5031024, 4, WAIT, 0},
    {"tstart x5", 0, 0, 0xd5233065, 4, TRANSACT, 0},
    {"svc #0", 0, 0, 0xd4000001, 4, TRAP, 0},
    {"brk #1", 0, 0, 0xd4200020, 4, TRAP, 0},
    {"dsb sy", 0, 0, 0xd5033f9f, 4, PLAIN, 0},
    {"nop", 0, 0, 0xd503201f, 4, PLAIN, 0},
    {"yield", 0, 0, 0xd503203f, 4, PLAIN, 0},
    {"ldr x0, [x1]", 0, 0, 0xf9400020, 4, PLAIN, 0},
    {"add x0, x1, x2", 0, 0, 0x8b020020, 4, PLAIN, 0},
};

static const struct example a32[] = {
    {"b .", 0x8000, 0x8000, 0xeafffffe, 4, BRANCH, 0},
    {"b back", 0x810, 0x804, 0xeafffffb, 4, BRANCH, 0},
    {"beq .+16", 0, 0x10, 0x0a000002, 4, BRANCH, COND},
    {"bl .", 0x80c, 0x80c, 0xebfffffe, 4, BRANCH, LINK},
    {"bl over the top", 0xfffffff8, 0x10, 0xeb000004, 4, BRANCH, LINK},
    {"blx .", 0x804, 0x804, 0xfafffffe, 4, BRANCH, LINK | TO_T32},
    {"blx .+2", 0x804, 0x806, 0xfbfffffe, 4, BRANCH, LINK | TO_T32},
    {"bx lr", 0, 0, 0xe12fff1e, 4, INDIRECT, RET},
    {"bxne r3", 0, 0, 0x112fff13, 4, INDIRECT, COND},
    {"blx r2", 0, 0, 0xe12fff32, 4, INDIRECT, LINK},
    {"bxj r1", 0, 0, 0xe12fff21, 4, INDIRECT, 0},
    {"mov pc, lr", 0, 0, 0xe1a0f00e, 4, INDIRECT, RET},
    {"movs pc, lr", 0, 0, 0xe1b0f00e, 4, RETURN_EX, 0},
    {"add pc, r1, r2", 0, 0, 0xe081f002, 4, INDIRECT, 0},
    {"subs pc, lr, #4", 0, 0, 0xe25ef004, 4, RETURN_EX, 0},
    {"ldr pc, [r1, #4]", 0, 0, 0xe591f004, 4, INDIRECT, 0},
    {"pop {pc}", 0, 0, 0xe49df004, 4, INDIRECT, RET},
    {"ldr pc, [r1, r2]", 0, 0, 0xe791f002, 4, INDIRECT, 0},
    {"ldrb r1, [r2]", 0, 0, 0xe5d21000, 4, PLAIN, 0},
    {"pop {r4, pc}", 0, 0, 0xe8bd8010, 4, INDIRECT, RET},
    {"ldm r1, {r2, pc}", 0, 0, 0xe8918004, 4, INDIRECT, 0},
    {"ldm r1, {r2, pc} ^", 0, 0, 0xe8d18004, 4, RETURN_EX, 0},
    {"ldm r1, {r2, r3}", 0, 0, 0xe891000c, 4, PLAIN, 0},
    {"rfeia sp!", 0, 0, 0xf8bd0a00, 4, RETURN_EX, 0},
    {"eret", 0, 0, 0xe160006e, 4, RETURN_EX, 0},
    {"isb sy", 0, 0, 0xf57ff06f, 4, SYNC, 0},
    {"mcr p15, 0, r0, c7, c5, 4", 0, 0, 0xee070f95, 4, SYNC, 0},
    {"dsb sy", 0, 0, 0xf57ff04f, 4, PLAIN, 0},
    {"wfi", 0, 0, 0xe320f003, 4, WAIT, 0},
    {"wfe", 0, 0, 0xe320f002, 4, WAIT, 0},
    {"svc #1", 0, 0, 0xef000001, 4, TRAP, 0},
    {"hvc #1", 0, 0, 0xe1400071, 4, TRAP, 0},
    {"smc #1", 0, 0, 0xe1600071, 4, TRAP, 0},
    {"bkpt #1", 0, 0, 0xe1200071, 4, TRAP, 0},
    {"udf #0", 0, 0, 0xe7f000f0, 4, TRAP, 0},
    {"cmp pc, #1", 0, 0, 0xe35f0001, 4, PLAIN, 0},
    {"teqp r1, #1 (Armv3)", 0, 0, 0xe331f001, 4, PLAIN, 0},
    {"mul r1, r2, r3", 0, 0, 0xe0010392, 4, PLAIN, 0},
    {"movw r1, #1", 0, 0, 0xe3001001, 4, PLAIN, 0},
    {"msr cpsr_f, #0", 0, 0, 0xe328f000, 4, PLAIN, 0},
    {"nop", 0, 0, 0xe320f000, 4, PLAIN, 0},
};

static const struct example t32[] = {
    {"beq start", 0, 0, 0xd0fe, 2, BRANCH, COND},
    {"beq end", 2, 0x2c, 0xd013, 2, BRANCH, COND},
    {"b start", 4, 0, 0xe7fc, 2, BRANCH, 0},
    {"b end", 6, 0x2c, 0xe011, 2, BRANCH, 0},
    {"cbz r0, end", 8, 0x2c, 0xb180, 2, BRANCH, COND},
    {"cbnz r1, end", 0xa, 0x2c, 0xb979, 2, BRANCH, COND},
    {"beq.w start", 0xc, 0, 0xf43faff8, 4, BRANCH, COND},
    {"beq.w far", 0x10, 0x800, 0xf00083f6, 4, BRANCH, COND},
    {"b.w start", 0x14, 0, 0xf7ffbff4, 4, BRANCH, 0},
    {"b.w far", 0x18, 0x800, 0xf000bbf2, 4, BRANCH, 0},
    {"bl start", 0x1c, 0, 0xf7fffff0, 4, BRANCH, LINK},
    {"bl far", 0x20, 0x800, 0xf000fbee, 4, BRANCH, LINK},
    {"blx .", 0x24, 0x24, 0xf7ffeffe, 4, BRANCH, LINK | TO_A32},
    {"blx . from an odd halfword", 0x26, 0x24, 0xf7ffeffe, 4, BRANCH, LINK | TO_A32},
    {"bx lr", 0, 0, 0x4770, 2, INDIRECT, RET},
    {"bx r3", 0, 0, 0x4718, 2, INDIRECT, 0},
    {"blx r4", 0, 0, 0x47a0, 2, INDIRECT, LINK},
    {"bxns lr", 0, 0, 0x4774, 2, INDIRECT, RET},
    {"blxns r3", 0, 0, 0x479c, 2, INDIRECT, LINK},
    {"mov pc, lr", 0, 0, 0x46f7, 2, INDIRECT, RET},
    {"mov pc, r1", 0, 0, 0x468f, 2, INDIRECT, 0},
    {"add pc, r1", 0, 0, 0x448f, 2, INDIRECT, 0},
    {"cmp r8, r1", 0, 0, 0x4588, 2, PLAIN, 0},
    {"pop {r4, pc}", 0, 0, 0xbd10, 2, INDIRECT, RET},
    {"pop {r4, r5}", 0, 0, 0xbc30, 2, PLAIN, 0},
    {"bxj r1", 0, 0, 0xf3c18f00, 4, INDIRECT, 0},
    {"subs pc, lr, #4", 0, 0, 0xf3de8f04, 4, RETURN_EX, 0},
    {"eret", 0, 0, 0xf3de8f00, 4, RETURN_EX, 0},
    {"tbb [r0, r1]", 0, 0, 0xe8d0f001, 4, INDIRECT, 0},
    {"tbh [r0, r1, lsl #1]", 0, 0, 0xe8d0f011, 4, INDIRECT, 0},
    {"rfeia r1", 0, 0, 0xe991c000, 4, RETURN_EX, 0},
    {"rfedb r1!", 0, 0, 0xe831c000, 4, RETURN_EX, 0},
    {"ldm.w r1!, {r2, pc}", 0, 0, 0xe8b18004, 4, INDIRECT, 0},
    {"pop.w {r4, r8, pc}", 0, 0, 0xe8bd8110, 4, INDIRECT, RET},
    {"ldm.w r1!, {r2, r3}", 0, 0, 0xe8b1000c, 4, PLAIN, 0},
    {"ldr.w pc, [r1, #4]", 0, 0, 0xf8d1f004, 4, INDIRECT, 0},
    {"ldr.w pc, [pc, #4]", 0, 0, 0xf8dff004, 4, INDIRECT, 0},
    {"ldr pc, [sp], #4", 0, 0, 0xf85dfb04, 4, INDIRECT, RET},
    {"ldr.w pc, [r1, r2]", 0, 0, 0xf851f002, 4, INDIRECT, 0},
    {"ldr.w r3, [r1, r2]", 0, 0, 0xf8513002, 4, PLAIN, 0},
    {"isb sy", 0, 0, 0xf3bf8f6f, 4, SYNC, 0},
    {"dsb sy", 0, 0, 0xf3bf8f4f, 4, PLAIN, 0},
    {"wfi", 0, 0, 0xbf30, 2, WAIT, 0},
    {"wfe.w", 0, 0, 0xf3af8002, 4, WAIT, 0},
    {"svc #1", 0, 0, 0xdf01, 2, TRAP, 0},
    {"hvc #1", 0, 0, 0xf7e08001, 4, TRAP, 0},
    {"smc #1", 0, 0, 0xf7f18000, 4, TRAP, 0},
    {"bkpt #1", 0, 0, 0xbe01, 2, TRAP, 0},
    {"nop", 0, 0, 0xbf00, 2, PLAIN, 0},
    {"wls lr, r3, #100", 0x100, 0x168, 0xf043c033, 4, BRANCH, COND},
    {"wlstp.8 lr, r3, #100", 0x100, 0x168, 0xf003c033, 4, BRANCH, COND},
    {"wlstp.32 lr, r5, #4", 0x100, 0x108, 0xf025c003, 4, BRANCH, COND},
    {"dls lr, r2", 0, 0, 0xf042e001, 4, PLAIN, 0},
    {"dlstp.16 lr, r2", 0, 0, 0xf012e001, 4, PLAIN, 0},
    {"le lr, #-100", 0x100, 0xa0, 0xf00fc033, 4, BRANCH, COND},
    {"le #-6", 0x100, 0xfe, 0xf02fc803, 4, BRANCH, 0},
    {"letp lr, #-102", 0x100, 0x9e, 0xf01fc833, 4, BRANCH, COND},
    {"clrm {r0, apsr}", 0, 0, 0xe89f8001, 4, PLAIN, 0},
    {"bf 8, #64", 0, 0, 0xf240e021, 4, PLAIN, 0},
    {"bfx 8, r3", 0, 0, 0xf263e001, 4, PLAIN, 0},
    {"bfl 8, #64", 0, 0, 0xf200c021, 4, PLAIN, 0},
    {"bflx 8, r5", 0, 0, 0xf275e001, 4, PLAIN, 0},
    {"bfcsel 8, #64, 12, eq", 0, 0, 0xf202e021, 4, PLAIN, 0},
};

static const struct example rv64[] = {
    {"jal ra, start", 2, 0, 0xfffff0ef, 4, BRANCH, LINK},
    {"c.j end", 6, 0x42, 0xa835, 2, BRANCH, 0},
    {"c.jalr a0", 8, 0, 0x9502, 2, INDIRECT, LINK},
    {"c.jr a0", 0xa, 0, 0x8502, 2, INDIRECT, 0},
    {"c.jr ra", 0xc, 0, 0x8082, 2, INDIRECT, RET},
    {"jalr zero, 4(t0)", 0xe, 0, 0x00428067, 4, INDIRECT, RET},
    {"beq a0, a1, end", 0x12, 0x42, 0x02b50863, 4, BRANCH, COND},
    {"bgeu a0, a1, start", 0x16, 0, 0xfeb575e3, 4, BRANCH, COND},
    {"c.beqz a0, end", 0x1c, 0x42, 0xc11d, 2, BRANCH, COND},
    {"c.bnez a0, start", 0x1e, 0, 0xf16d, 2, BRANCH, COND},
    {"c.ebreak", 0, 0, 0x9002, 2, TRAP, 0},
    {"ecall", 0, 0, 0x00000073, 4, TRAP, 0},
    {"ebreak", 0, 0, 0x00100073, 4, TRAP, 0},
    {"mret", 0, 0, 0x30200073, 4, RETURN_EX, 0},
    {"sret", 0, 0, 0x10200073, 4, RETURN_EX, 0},
    {"wfi", 0, 0, 0x10500073, 4, PLAIN, 0},
    {"addi a0, a0, 1", 0, 0, 0x00150513, 4, PLAIN, 0},
    {"c.addi a0, 1", 0, 0, 0x0505, 2, PLAIN, 0},
    {"c.addiw a0, -3", 0, 0, 0x3575, 2, PLAIN, 0},
};

static const struct example rv32[] = {
    {"c.jal start", 2, 0, 0x3ffd, 2, BRANCH, LINK},
    {"c.jal end", 4, 6, 0x2009, 2, BRANCH, LINK},
    {"jal below zero", 0, 0xfffffffe, 0xfffff06f, 4, BRANCH, 0},
};

static struct tl_bytes to_memory(enum tl_isa isa, const struct example *e, uint8_t memory[4])
{
    if (isa == TL_ISA_T32 && e->size == 4) {
        tl_put_le16(memory, (uint16_t)(e->op >> 16));
        tl_put_le16(memory + 2, (uint16_t)e->op);
    } else {
        tl_put_le32(memory, e->op);
    }
    return (struct tl_bytes){memory, e->size};
}

static void check(enum tl_isa isa, const struct example *examples, size_t n)
{
    const struct tl_isa_options options = {.wfx_branch = true}, no_wfx = {.wfx_branch = false};
    for (size_t i = 0; i < n; i++) {
        const struct example *e = &examples[i];
        uint8_t memory[4];
        struct tl_bytes code = to_memory(isa, e, memory);
        struct tl_insn insn;
        print_message("%s: %s\n", tl_isa_name(isa), e->text);
        assert_int_equal(tl_insn_decode(isa, &options, e->pc, code, &insn), e->size);
        assert_int_equal(insn.size, e->size);
        assert_int_equal(insn.encoding, e->op);
        assert_int_equal(insn.kind, e->kind);
        assert_int_equal(insn.conditional, !!(e->flags & COND));
        assert_int_equal(insn.link, !!(e->flags & LINK));
        assert_int_equal(insn.is_return, !!(e->flags & RET));
        assert_int_equal(insn.next_isa, e->flags & TO_T32   ? TL_ISA_T32
                                        : e->flags & TO_A32 ? TL_ISA_A32
                                                            : isa);
        if (e->kind == TL_INSN_BRANCH)
            assert_int_equal(insn.target, e->target);
        tl_insn_decode(isa, &no_wfx, e->pc, code, &insn);
        assert_int_equal(insn.kind, e->kind == TL_INSN_WAIT ? TL_INSN_PLAIN : e->kind);
        code.n--; /* cut off: never read behind */
        assert_int_equal(tl_insn_decode(isa, &options, e->pc, code, &insn), TL_AGAIN);
    }
}

static void examples(void **state)
{
    check(TL_ISA_A64, a64, sizeof a64 / sizeof a64[0]);
    check(TL_ISA_A32, a32, sizeof a32 / sizeof a32[0]);
    check(TL_ISA_T32, t32, sizeof t32 / sizeof t32[0]);
    check(TL_ISA_RV64, rv64, sizeof rv64 / sizeof rv64[0]);
    check(TL_ISA_RV32, rv32, sizeof rv32 / sizeof rv32[0]);
}

static void it_blocks(void **state)
{
    const struct tl_isa_options options = {0};
    static const struct {
        uint16_t op;
        uint8_t length;
    } it[] = {{0xbf08, 1}, {0xbf04, 2}, {0xbf0c, 2}, {0xbf02, 3}, {0xbf01, 4}, {0xbf00, 0}};
    for (size_t i = 0; i < sizeof it / sizeof it[0]; i++) {
        uint8_t memory[2];
        struct tl_insn insn;
        tl_put_le16(memory, it[i].op);
        tl_insn_decode(TL_ISA_T32, &options, 0, (struct tl_bytes){memory, 2}, &insn);
        assert_int_equal(insn.it_length, it[i].length);
    }
}

static void riscv_lengths(void **state)
{
    const struct tl_isa_options options = {0};
    static const struct {
        uint16_t parcel;
        int size;
    } lengths[] = {{0x0001, 2},      {0x0003, 4},     {0x001f, 6},  {0x003f, 8},
                   {0x007f, 10},     {0x107f, 12},    {0x207f, 14}, {0x307f, TL_BAD},
                   {0x707f, TL_BAD}, {0x0000, TL_BAD}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t memory[16] = {0};
        struct tl_insn insn;
        tl_put_le16(memory, lengths[i].parcel);
        assert_int_equal(
            tl_insn_decode(TL_ISA_RV64, &options, 0, (struct tl_bytes){memory, 16}, &insn),
            lengths[i].size);
        if (lengths[i].size < 0)
            assert_int_equal(insn.size, 2);
    }
}

/* Whatever the word: a size that fits, a valid kind, a target only where there is a branch. */
static void any_word(void **state)
{
    const struct tl_isa_options options = {.wfx_branch = true};
    uint64_t seed = 0x9e3779b97f4a7c15ULL;
    for (unsigned i = 0; i < 2000000; i++) {
        uint8_t memory[4];
        struct tl_insn insn;
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        tl_put_le32(memory, (uint32_t)(seed >> 32));
        const enum tl_isa isa = TL_ISA_A64 + i % 5;
        const int rc =
            tl_insn_decode(isa, &options, seed & ~3ULL, (struct tl_bytes){memory, 4}, &insn);
        assert_true(insn.size == 2 || insn.size == 4 || (isa >= TL_ISA_RV32 && insn.size % 2 == 0));
        assert_true(rc == insn.size || (rc < 0 && isa >= TL_ISA_RV32));
        assert_true(insn.kind <= TL_INSN_TRANSACT);
        assert_true(insn.kind == TL_INSN_BRANCH || insn.target == 0);
        assert_true(!insn.link || insn.kind == TL_INSN_BRANCH || insn.kind == TL_INSN_INDIRECT);
    }
}

static void unknown_sets(void **state)
{
    const struct tl_isa_options options = {0};
    const uint8_t memory[4] = {0};
    struct tl_insn insn;
    assert_int_equal(tl_insn_decode(TL_ISA_NONE, &options, 0, (struct tl_bytes){memory, 4}, &insn),
                     TL_UNSUPPORTED);
    assert_string_equal(tl_isa_name(TL_ISA_T32), "t32");
    assert_string_equal(tl_isa_name((enum tl_isa)200), "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(examples), cmocka_unit_test(it_blocks),    cmocka_unit_test(riscv_lengths),
        cmocka_unit_test(any_word), cmocka_unit_test(unknown_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
