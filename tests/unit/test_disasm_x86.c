/* SPDX-License-Identifier: MIT */
/*
 * Lengths of x86 instructions, and the targets of their branches, compared with LLVM's
 * disassembler: every opcode of every map with random prefixes and operands, in all three modes.
 * Encodings that LLVM rejects are skipped (our lengths are those of anything that may follow the
 * opcode), and so are those it treats as a lone prefix.
 */
#include "base/err.h"
#include "disasm/disasm.h"
#include "isa/x86.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PC UINT64_C(0x400000)

static uint64_t state_of_random;

static uint32_t any(uint32_t below)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)((state_of_random >> 33) % below);
}

/* An instruction, or nearly one. */
static void make(enum tl_isa isa, unsigned round, uint8_t code[static 24])
{
    size_t n = 0;
    for (size_t i = 0; i < 24; i++)
        code[i] = (uint8_t)any(256);
    if (any(4) == 0)
        code[n++] = 0x66;
    if (any(8) == 0)
        code[n++] = 0x67;
    if (any(8) == 0)
        code[n++] = any(2) ? 0xf2 : 0xf3;
    if (isa == TL_ISA_X64 && any(3) == 0)
        code[n++] = (uint8_t)(0x40 + any(16));
    switch (any(6)) {
    case 0:
    case 1:
        break;
    case 2:
    case 3:
        code[n++] = 0x0f;
        break;
    case 4:
        code[n++] = 0x0f;
        code[n++] = any(2) ? 0x38 : 0x3a;
        break;
    default: /* VEX, EVEX */
        n = 0;
        code[n++] = any(3) ? (any(2) ? 0xc4 : 0xc5) : 0x62;
        code[n] |= isa == TL_ISA_X64 ? 0 : 0xc0;
        n += code[0] == 0xc5 ? 1 : code[0] == 0xc4 ? 2 : 3;
        break;
    }
    code[n] = (uint8_t)round;
}

/* Texts of prefixes that LLVM considers separate instructions, and of instructions that it decodes
 * differently. */
static bool is_prefix(const char *text)
{
    static const char *const alone[] = {
        "lock", "rep", "repne", "data16", "data32", "addr32",  "addr16",   "cs",      "ds",
        "es",   "fs",  "gs",    "ss",     "rex64",  "notrack", "xacquire", "xrelease"};
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) {
        const size_t n = strlen(alone[i]);
        if (!strncmp(text, alone[i], n) && (text[n] == 0 || text[n] == ' ' || text[n] == '\t'))
            return true;
    }
    return false;
}

static unsigned after_prefixes(enum tl_isa isa, const uint8_t *code)
{
    unsigned at = 0;
    while (memchr("\x66\x67\xf2\xf3\x26\x2e\x36\x3e\x64\x65", code[at], 10) ||
           (isa == TL_ISA_X64 && (code[at] & 0xf0) == 0x40))
        at++;
    return at;
}

/* The target of a direct branch, computed from its last one, two or four bytes, depending on its
 * size. */
static uint64_t displaced(enum tl_isa isa, const uint8_t *code, int size)
{
    const unsigned at = after_prefixes(isa, code);
    const unsigned width = (unsigned)size - at - (code[at] == 0x0f ? 2 : 1);
    const uint8_t *const p = code + size - width;
    const int64_t by = width == 1   ? (int8_t)p[0]
                       : width == 2 ? (int16_t)(p[0] | p[1] << 8)
                                    : (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 |
                                                (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    const uint64_t to = PC + (uint64_t)size + (uint64_t)by;
    return isa == TL_ISA_X64 ? to : (uint32_t)to;
}

/* The separate path for frequent instructions gives the same result. */
static void assert_quick(enum tl_isa isa, const uint8_t code[static 24], int size,
                         const struct tl_x86_insn *insn)
{
    struct tl_insn of_block;
    const unsigned quick = tl_x86_quick(isa, code);
    assert_int_equal(tl_insn_decode(isa, NULL, PC, (struct tl_bytes){code, 15}, &of_block), size);
    if (quick > TL_X86_MAX)
        assert_int_equal(size, TL_BAD);
    else if (quick > 0)
        assert_int_equal(quick, size);
    if (quick > 0 && size > 0) {
        assert_int_equal(of_block.kind, TL_INSN_PLAIN);
        assert_false(of_block.binds);
    }
    if (size > 0 && insn->direct && !insn->absolute)
        assert_int_equal(of_block.target, tl_x86_target(isa, PC, insn));
    if (size > 0)
        assert_int_equal(of_block.is_return, insn->class == TL_X86_RETURN);
}

static void compare(enum tl_isa isa, unsigned rounds)
{
    struct tl_disasm *llvm;
    struct tl_fail fail;
    unsigned bad = 0, same = 0, targets = 0;
    if (tl_disasm_new(&llvm, isa, &fail) < 0)
        skip();
    for (unsigned round = 0; round < rounds; round++) {
        uint8_t code[24];
        char text[256];
        struct tl_x86_insn insn;
        make(isa, round, code);
        const struct tl_bytes bytes = {code, 15};
        const int theirs = tl_disasm_text(llvm, PC, bytes, text, sizeof text);
        if (theirs < 0 || is_prefix(text))
            continue;
        const int ours = tl_x86_decode(isa, bytes, &insn);
        assert_quick(isa, code, ours, &insn);
        /* In 64-bit mode Intel's processors ignore the prefix, but LLVM interprets it as AMD's do;
         * in the other modes LLVM ignores it if there is F2 or F3. */
        const bool repeats = memchr(code, 0xf2, 4) || memchr(code, 0xf3, 4);
        if (insn.direct && memchr(code, 0x66, 4) && (isa == TL_ISA_X64 || repeats))
            continue;
        /* EXTRQ and INSERTQ have immediates, VMREAD has none: the prefix decides, as in the
         * reference. */
        if (!strncmp(text, "vmread", 6))
            continue;
        /* LLVM assumes a displacement of four bytes in 16-bit mode. */
        if (!strncmp(text, "xbegin", 6) && isa == TL_ISA_X16)
            continue;
        /* XOP, which Intel never implemented, is POP in the reference, and in our decoder. */
        const uint8_t opcode = code[after_prefixes(isa, code)];
        if (opcode == 0x8f && strncmp(text, "pop", 3) != 0)
            continue;
        /* An address size prefix and an opcode that VEX does not have, which no processor executes:
         * LLVM ignores the VEX. */
        if (ours != theirs && code[0] == 0x67 && (opcode == 0xc4 || opcode == 0xc5) &&
            text[0] != 'v')
            continue;
        const char *const to = strstr(text, " 0x");
        if (ours == theirs && insn.direct && !insn.absolute && to) {
            const uint64_t mask = isa == TL_ISA_X16 ? 0xffff : UINT64_MAX;
            const bool near = strtoull(to + 1, NULL, 16) == displaced(isa, code, ours);
            targets++;
            if (near && ((displaced(isa, code, ours) ^ tl_x86_target(isa, PC, &insn)) & mask) == 0)
                continue;
        } else if (ours == theirs) {
            same++;
            continue;
        }
        if (bad++ < 30) {
            printf("%s:", tl_isa_name(isa));
            for (int i = 0; i < 15; i++)
                printf(" %02x", code[i]);
            printf(": %d (to 0x%" PRIx64 "), LLVM: %d %s\n", ours, tl_x86_target(isa, PC, &insn),
                   theirs, text);
        }
    }
    tl_disasm_free(llvm);
    assert_int_equal(bad, 0);
    assert_true(same > rounds / 20 && targets > rounds / 400);
}

static void as_llvm(void **state)
{
    (void)state;
    const char *const wish = getenv("TL_X86_ROUNDS");
    const unsigned rounds = wish ? (unsigned)strtoul(wish, NULL, 0) : 300000;
    state_of_random = test_seed();
    compare(TL_ISA_X64, rounds);
    compare(TL_ISA_X32, rounds);
    compare(TL_ISA_X16, rounds);
}

static void assert_insn(enum tl_isa isa, const char *hex, int size, enum tl_x86_class class,
                        enum tl_x86_special special)
{
    uint8_t code[16];
    size_t n = 0;
    for (; hex[2 * n]; n++) {
        const char two[3] = {hex[2 * n], hex[2 * n + 1], 0};
        code[n] = (uint8_t)strtoul(two, NULL, 16);
    }
    struct tl_x86_insn insn;
    const int rc = tl_x86_decode(isa, (struct tl_bytes){code, n}, &insn);
    assert_int_equal(rc, size);
    assert_int_equal(insn.class, class);
    assert_int_equal(insn.special, special);
}

static void classes(void **state)
{
    (void)state;
    assert_insn(TL_ISA_X64, "c3", 1, TL_X86_RETURN, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "c20800", 3, TL_X86_RETURN, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "f3c3", 2, TL_X86_RETURN, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "e800000000", 5, TL_X86_CALL, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "ffd0", 2, TL_X86_CALL, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "ff2511223344", 6, TL_X86_JUMP, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "0f05", 2, TL_X86_FAR_CALL, TL_X86_SYSCALL);
    assert_insn(TL_ISA_X64, "480f07", 3, TL_X86_FAR_RETURN, TL_X86_SYSRET);
    assert_insn(TL_ISA_X64, "48cf", 2, TL_X86_FAR_RETURN, TL_X86_IRET);
    assert_insn(TL_ISA_X64, "0f22d8", 3, TL_X86_OTHER, TL_X86_MOV_CR3);
    assert_insn(TL_ISA_X64, "440f22d8", 4, TL_X86_OTHER, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "f30faee0", 4, TL_X86_PTWRITE, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "0fae20", 3, TL_X86_OTHER, TL_X86_PLAIN); /* XSAVE */
    assert_insn(TL_ISA_X64, "0f01c2", 3, TL_X86_FAR_RETURN, TL_X86_VM_ENTRY);
    assert_insn(TL_ISA_X64, "0f01c1", 3, TL_X86_FAR_CALL, TL_X86_VMCALL);
    assert_insn(TL_ISA_X64, "f30f01ec", 4, TL_X86_FAR_RETURN, TL_X86_UIRET);
    assert_insn(TL_ISA_X64, "f20f01ca", 4, TL_X86_FAR_RETURN, TL_X86_ERET);
    assert_insn(TL_ISA_X64, "e2fe", 2, TL_X86_COND, TL_X86_PLAIN);
    assert_insn(TL_ISA_X32, "9a112233445566", 7, TL_X86_FAR_CALL, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "d500a11122334455667788", 11, TL_X86_JUMP, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "d580afc1", 4, TL_X86_OTHER, TL_X86_PLAIN);     /* REX2, map 1 */
    assert_insn(TL_ISA_X64, "62f47c0801c1", 6, TL_X86_OTHER, TL_X86_PLAIN); /* EVEX, map 4 */
    assert_insn(TL_ISA_X64, "0f8011223344", 6, TL_X86_COND, TL_X86_PLAIN);
    assert_insn(TL_ISA_X64, "0f80112233", TL_AGAIN, TL_X86_OTHER, TL_X86_PLAIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes), cmocka_unit_test(as_llvm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
