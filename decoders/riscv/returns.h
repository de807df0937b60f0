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
    /* Set by the owner: how often one entry stands for more calls from the same place. */
    uint16_t most;
    uint32_t n, top;
    uint32_t calls; /* that the entries stand for */
    uint32_t min;   /* smallest `calls` since the owner set it */
    uint64_t pc[1u << TL_RETURNS_MAX_LOG];
    uint16_t more[1u << TL_RETURNS_MAX_LOG]; /* calls of an entry besides one, if `most` > 0 */
};

static inline void tl_returns_clear(struct tl_returns *r)
{
    r->n = r->calls = r->min = 0;
}

static inline void tl_returns_push(struct tl_returns *r, uint64_t pc)
{
    if (r->size == 0)
        return;
    if (r->most && r->n && r->pc[r->top] == pc && r->more[r->top] < r->most) {
        r->more[r->top]++;
        r->calls++;
        return;
    }
    r->top = (r->top + 1) & (r->size - 1);
    if (__builtin_expect(r->n < r->size, 1))
        r->n++;
    else /* the oldest goes */
        r->calls -= 1u + (r->most ? r->more[r->top] : 0);
    r->calls++;
    r->pc[r->top] = pc;
    r->more[r->top] = 0;
}

/* Would this be empty without the newest call? */
static inline bool tl_returns_is_last(const struct tl_returns *r)
{
    return r->calls <= 1;
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
    r->calls--;
    r->min = r->calls < r->min ? r->calls : r->min;
    if (r->most && r->more[r->top]) {
        r->more[r->top]--;
        return true;
    }
    r->top = (r->top - 1) & (r->size - 1);
    r->n--;
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
    for (uint32_t i = 0; i < r->n && r->most; i++)
        tl_state_u16(s, &r->more[(r->top - i) & (r->size - 1)]);
    if (tl_state_loads(s))
        r->calls = r->n;
    for (uint32_t i = 0; i < r->n && r->most && tl_state_loads(s); i++)
        r->calls += r->more[(r->top - i) & (r->size - 1)];
    r->min = 0;
}

#endif
