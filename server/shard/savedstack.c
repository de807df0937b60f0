/* SPDX-License-Identifier: MIT */
/*
 * Encodes a call stack with the index chunk that begins with it. Innermost frames come first,
 * because their instruction numbers are close to each other and to the chunk.
 */
#include "shard/savedstack.h"

#include "shard/varint.h"

static uint64_t function_code(uint32_t function)
{
    return function == TL_NO_FUNCTION ? 0 : (uint64_t)function + 1;
}

static uint32_t code_function(uint64_t code)
{
    return code == 0 || code > UINT32_MAX ? TL_NO_FUNCTION : (uint32_t)(code - 1);
}

/* Numbers, written and read by the same functions, so that both agree. */
struct codec {
    struct tl_buf *out; /* NULL when reading */
    struct tl_varint_reader in;
    int rc;
};

static void number(struct codec *c, uint64_t *v)
{
    uint8_t bytes[TL_VARINT_MAX];
    if (!c->out)
        *v = tl_varint_get(&c->in);
    else if (c->rc >= 0)
        c->rc = tl_buf_add(c->out, bytes, tl_varint_put(bytes, *v));
}

/* A number up to `max`. */
static uint32_t below(struct codec *c, uint32_t v, uint32_t max)
{
    uint64_t wide = v;
    number(c, &wide);
    c->in.bad |= wide > max;
    return wide <= max ? (uint32_t)wide : 0;
}

static void function(struct codec *c, uint32_t *v)
{
    uint64_t code = function_code(*v);
    number(c, &code);
    *v = code_function(code);
}

static void head(struct codec *c, struct tl_callstack *cs)
{
    number(c, &cs->insns);
    number(c, &cs->next_pc);
    cs->depth = below(c, cs->depth, TL_CALLSTACK_MAX);
    cs->deeper = below(c, cs->deeper, UINT32_MAX);
    function(c, &cs->function);
    cs->exception = (uint16_t)below(c, cs->exception, UINT16_MAX);
    cs->how = (uint8_t)below(c, cs->how, UINT8_MAX);
    number(c, &cs->exception_pc);
}

/* Innermost first: their instruction numbers are close to each other. */
static void frames(struct codec *c, struct tl_frame *first, uint32_t n, uint64_t insn)
{
    enum { FLAGS = 18 }; /* bits for the kind and the exception's number */
    for (uint32_t i = n; i-- > 0 && c->rc >= 0 && !c->in.bad;) {
        struct tl_frame *const f = &first[i];
        uint64_t before = insn - f->insn;
        uint64_t code = (uint64_t)f->flags << FLAGS | (uint64_t)f->exception << 2 | (f->kind & 3);
        number(c, &before);
        number(c, &f->pc);
        number(c, &f->return_pc);
        function(c, &f->function);
        number(c, &code);
        f->insn = insn -= before;
        f->exception = (uint16_t)(code >> 2);
        f->kind = code & 3;
        f->flags = (uint8_t)(code >> FLAGS);
    }
}

static void beyond(struct codec *c, struct tl_callstack *cs)
{
    cs->n_beyond = (uint8_t)below(c, cs->n_beyond, TL_CALLSTACK_BEYOND);
    for (uint8_t i = 0; i < cs->n_beyond; i++) {
        number(c, &cs->beyond[i].return_pc);
        cs->beyond[i].deeper = below(c, cs->beyond[i].deeper, cs->deeper);
    }
}

static void parked(struct codec *c, struct tl_callstack *cs)
{
    cs->n_aside = 0;
    cs->n_parked = below(c, cs->n_parked, TL_CALLSTACK_PARKED);
    for (uint32_t i = 0; i < cs->n_parked && c->rc >= 0 && !c->in.bad; i++) {
        struct tl_parked_stack *const p = &cs->parked[i];
        number(c, &p->who);
        number(c, &p->pc);
        p->n = below(c, p->n, TL_CALLSTACK_ASIDE - cs->n_aside);
        c->in.bad |= p->n == 0;
        frames(c, cs->aside + cs->n_aside, p->n, cs->insns);
        cs->n_aside += p->n;
    }
}

/* Not in older shards. */
static void rest(struct codec *c, struct tl_callstack *cs)
{
    cs->left = (uint8_t)below(c, cs->left, UINT8_MAX);
    cs->user = below(c, cs->user, 1);
    number(c, &cs->process);
    number(c, &cs->thread);
    number(c, &cs->active);
    number(c, &cs->entered);
    beyond(c, cs);
    parked(c, cs);
}

int tl_savedstack_encode(const struct tl_callstack *calls, struct tl_buf *out)
{
    struct tl_callstack *const cs = (struct tl_callstack *)(uintptr_t)calls; /* not changed */
    struct codec c = {.out = out};
    head(&c, cs);
    frames(&c, cs->frames, cs->depth, cs->insns);
    rest(&c, cs);
    return c.rc;
}

int tl_savedstack_decode(struct tl_callstack *cs, struct tl_bytes bytes)
{
    struct codec c = {.in = {bytes.p, bytes.p + bytes.n, false}};
    head(&c, cs);
    frames(&c, cs->frames, cs->depth, cs->insns);
    cs->n_beyond = 0;
    cs->n_parked = cs->n_aside = 0;
    if (!c.in.bad && c.in.p < c.in.end)
        rest(&c, cs);
    return c.in.bad ? TL_BAD : TL_OK;
}

int tl_walk_stack(const struct tl_walk *walk, struct tl_callstack *calls)
{
    return walk->stack.n > 0 ? tl_savedstack_decode(calls, walk->stack) : TL_OK;
}
