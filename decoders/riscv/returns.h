/* SPDX-License-Identifier: MIT */
/*
 * Return addresses of calls, as far as a trace encoder remembers them: the newest ones; the oldest
 * is dropped for one too many. Header only; not thread-safe.
 *
 * Source: N-Trace 1.0, "Implicit Return Optimization"; E-Trace 2.0, "Implicit return mode".
 */
#ifndef TL_RISCV_RETURNS_H
#define TL_RISCV_RETURNS_H

#include "base/state.h"

#define TL_RETURNS_MAX_LOG 10 /* logarithm of the largest size */

struct tl_returns {
    uint32_t size; /* a power of two, set by the owner; 0: the encoder infers no returns */
    uint32_t n, top;
    uint32_t min; /* smallest `n` since the owner set it */
    uint64_t pc[1u << TL_RETURNS_MAX_LOG];
};

static inline void tl_returns_clear(struct tl_returns *r)
{
    r->n = r->min = 0;
}

static inline void tl_returns_push(struct tl_returns *r, uint64_t pc)
{
    if (r->size == 0)
        return;
    r->top = (r->top + 1) & (r->size - 1);
    r->pc[r->top] = pc;
    r->n += r->n < r->size;
}

/* The newest one, of at least one. */
static inline uint64_t tl_returns_top(const struct tl_returns *r)
{
    return r->pc[r->top];
}

/* False: there is none. */
static inline bool tl_returns_pop(struct tl_returns *r, uint64_t *pc)
{
    if (r->n == 0)
        return false;
    *pc = tl_returns_top(r);
    r->top = (r->top - 1) & (r->size - 1);
    r->n--;
    r->min = r->n < r->min ? r->n : r->min;
    return true;
}

static inline void tl_returns_state(struct tl_returns *r, struct tl_state *s)
{
    tl_state_u32(s, &r->n);
    tl_state_check(s, r->n <= r->size);
    if (tl_state_loads(s) && s->rc < 0)
        r->n = 0;
    if (tl_state_loads(s) && r->n > 0)
        r->top = (r->n - 1) & (r->size - 1);
    for (uint32_t i = 0; i < r->n; i++) /* newest first */
        tl_state_u64(s, &r->pc[(r->top - i) & (r->size - 1)]);
    r->min = 0;
}

#endif
