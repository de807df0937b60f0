/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of calls, as far as the encoder's return stack or call counter remembers them:
 * the newest ones. Header only; not thread-safe.
 *
 * Source: E-Trace 2.0, "Implicit return mode".
 */
#ifndef TL_RISCV_ETRACE_RETURNS_H
#define TL_RISCV_ETRACE_RETURNS_H

#include "base/state.h"

#include <stdlib.h>

struct tl_etrace_returns {
    uint64_t *v; /* owned; a ring. NULL: the encoder infers no returns */
    uint32_t size, n, top;
    uint32_t min; /* smallest `n` since the owner set it */
};

/* `size` is return_stack_size or call_counter_size. Returns TL_NOMEM. */
TL_MUST_USE static inline int tl_etrace_returns_init(struct tl_etrace_returns *r, uint8_t size)
{
    *r = (struct tl_etrace_returns){.size = size ? UINT32_C(1) << size : 0};
    if (size)
        r->v = calloc(r->size, sizeof *r->v);
    return size && !r->v ? TL_NOMEM : TL_OK;
}

static inline void tl_etrace_returns_fini(struct tl_etrace_returns *r)
{
    free(r->v);
}

static inline void tl_etrace_returns_clear(struct tl_etrace_returns *r)
{
    r->n = r->min = 0;
}

static inline void tl_etrace_returns_push(struct tl_etrace_returns *r, uint64_t pc)
{
    if (!r->v)
        return;
    r->top = (r->top + 1) & (r->size - 1);
    r->v[r->top] = pc;
    r->n += r->n < r->size; /* when full, the oldest goes */
}

/* At least one is there. */
static inline uint64_t tl_etrace_returns_pop(struct tl_etrace_returns *r)
{
    const uint64_t pc = r->v[r->top];
    r->top = (r->top - 1) & (r->size - 1);
    r->n--;
    r->min = r->n < r->min ? r->n : r->min;
    return pc;
}

static inline void tl_etrace_returns_state(struct tl_etrace_returns *r, struct tl_state *s)
{
    tl_state_u32(s, &r->n);
    tl_state_check(s, r->n <= r->size);
    if (tl_state_loads(s) && s->rc < 0)
        r->n = 0;
    if (tl_state_loads(s) && r->v)
        r->top = (r->n - 1) & (r->size - 1);
    for (uint32_t i = 0; i < r->n; i++) /* newest first */
        tl_state_u64(s, &r->v[(r->top - i) & (r->size - 1)]);
    r->min = 0;
}

#endif
