/* SPDX-License-Identifier: MIT */
#include "shard/stackmark.h"

#include "shard/varint.h"

static uint64_t function_code(uint32_t function)
{
    return function == TL_NO_FUNCTION ? 0 : (uint64_t)function + 1;
}

static uint32_t code_function(uint64_t code)
{
    return code == 0 || code > UINT32_MAX ? TL_NO_FUNCTION : (uint32_t)(code - 1);
}

int tl_stackmark_encode(const struct tl_callstack *cs, struct tl_buf *out)
{
    uint8_t bytes[80];
    uint64_t insn = cs->insns;
    size_t n = 0;
    const uint64_t head[] = {
        cs->insns,     cs->next_pc, cs->depth,       cs->deeper, function_code(cs->function),
        cs->exception, cs->how,     cs->exception_pc};
    for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
        n += tl_varint_put(bytes + n, head[i]);
    int r = tl_buf_add(out, bytes, n);
    /* Innermost first: their instruction numbers are close to each other. */
    for (uint32_t i = cs->depth; i-- > 0 && r >= 0;) {
        const struct tl_frame *f = &cs->frames[i];
        n = tl_varint_put(bytes, insn - f->insn);
        n += tl_varint_put(bytes + n, f->pc);
        n += tl_varint_put(bytes + n, f->return_pc);
        n += tl_varint_put(bytes + n, function_code(f->function));
        n += tl_varint_put(bytes + n, (uint64_t)f->exception << 2 | (f->kind & 3));
        insn = f->insn;
        r = tl_buf_add(out, bytes, n);
    }
    return r;
}

int tl_stackmark_decode(struct tl_callstack *cs, struct tl_bytes bytes)
{
    struct tl_varint_reader r = {bytes.p, bytes.p + bytes.n, false};
    cs->insns = tl_varint_get(&r);
    cs->next_pc = tl_varint_get(&r);
    const uint64_t depth = tl_varint_get(&r);
    cs->deeper = (uint32_t)tl_varint_get(&r);
    cs->function = code_function(tl_varint_get(&r));
    cs->exception = (uint16_t)tl_varint_get(&r);
    cs->how = (uint8_t)tl_varint_get(&r);
    cs->exception_pc = tl_varint_get(&r);
    if (r.bad || depth > TL_CALLSTACK_MAX)
        return TL_BAD;
    cs->depth = (uint32_t)depth;
    uint64_t insn = cs->insns;
    for (uint32_t i = cs->depth; i-- > 0;) {
        struct tl_frame *f = &cs->frames[i];
        f->insn = insn -= tl_varint_get(&r);
        f->pc = tl_varint_get(&r);
        f->return_pc = tl_varint_get(&r);
        f->function = code_function(tl_varint_get(&r));
        const uint64_t code = tl_varint_get(&r);
        f->exception = (uint16_t)(code >> 2);
        f->kind = code & 3;
    }
    return r.bad ? TL_BAD : TL_OK;
}

int tl_walk_stack(const struct tl_walk *walk, struct tl_callstack *calls)
{
    return walk->stack.n > 0 ? tl_stackmark_decode(calls, walk->stack) : TL_OK;
}
