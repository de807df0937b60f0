/* SPDX-License-Identifier: MIT */
/*
 * x86 instructions from bytes, in the mode chosen by the first byte: each has 1 to 15 bytes, needs
 * exactly these, and does not depend on what follows. The properties that a block is built from
 * agree.
 */
#include "base/err.h"
#include "isa/x86.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool same(const struct tl_x86_insn *a, const struct tl_x86_insn *b)
{
    return a->size == b->size && a->class == b->class && a->special == b->special &&
           a->direct == b->direct && a->displacement == b->displacement &&
           a->absolute == b->absolute;
}

/* A copy that ends where `code` does, so that a sanitizer detects a read past it. */
static int decode(enum tl_isa isa, struct tl_bytes code, struct tl_x86_insn *out)
{
    uint8_t *const exact = malloc(code.n ? code.n : 1);
    require(exact != NULL);
    memcpy(exact, code.p, code.n);
    const int rc = tl_x86_decode(isa, (struct tl_bytes){exact, code.n}, out);
    free(exact);
    return rc;
}

/* Returns its size in bytes. */
static size_t check(enum tl_isa isa, struct tl_bytes in)
{
    struct tl_x86_insn insn, again;
    struct tl_insn block;
    const int size = decode(isa, in, &insn);
    const int of_block = tl_insn_decode(isa, NULL, 0x1000, in, &block);
    require(size == TL_BAD || size == TL_AGAIN || (size >= 1 && size <= TL_X86_MAX));
    require(of_block == size);
    const unsigned quick = in.n > TL_X86_MAX ? tl_x86_quick(isa, in.p) : 0;
    require(quick == 0 || (quick > TL_X86_MAX ? size == TL_BAD
                                              : (int)quick == size && block.kind == TL_INSN_PLAIN &&
                                                    !block.binds));
    if (size < 0) {
        require(size == TL_BAD || in.n < TL_X86_MAX);
        return 1;
    }
    require((size_t)size <= in.n && insn.size == size && block.size == size);
    require(decode(isa, (struct tl_bytes){in.p, (size_t)size}, &again) == size);
    require(same(&insn, &again));
    for (int n = 0; n < size; n++)
        require(decode(isa, (struct tl_bytes){in.p, (size_t)n}, &again) == TL_AGAIN);
    if (insn.direct) {
        const uint64_t to = tl_x86_target(isa, 0x1000, &insn);
        require(isa == TL_ISA_X64 || to <= UINT32_MAX);
        /* The target of JMPABS is in the trace. */
        require(insn.absolute ? block.kind == TL_INSN_INDIRECT
                              : block.kind == TL_INSN_BRANCH && block.target == to);
    }
    return (size_t)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum tl_isa modes[] = {TL_ISA_X64, TL_ISA_X32, TL_ISA_X16};
    if (size < 1)
        return 0;
    for (size_t at = 1; at < size;)
        at += check(modes[data[0] % 3], (struct tl_bytes){data + at, size - at});
    return 0;
}
