/* SPDX-License-Identifier: MIT */
/*
 * A hart's call stack as a trace encoder has it: the addresses behind calls. Unbounded for the
 * user; when it is full the oldest address is dropped. Header only; not thread-safe.
 */
#ifndef TL_RISCV_RETURNS_H
#define TL_RISCV_RETURNS_H

#include "base/state.h"

#define TL_RETURNS_MAX 64u /* a power of two; no N-Trace encoder has more than 32 */

struct tl_returns {
    uint64_t pc[TL_RETURNS_MAX];
    uint8_t top; /* index of the newest */
    uint8_t n;
};

static inline void tl_returns_push(struct tl_returns *r, uint64_t pc)
{
    r->top = (uint8_t)((r->top + 1u) % TL_RETURNS_MAX);
    r->pc[r->top] = pc;
    r->n = (uint8_t)(r->n < TL_RETURNS_MAX ? r->n + 1u : r->n);
}

/* False: it is empty. */
static inline bool tl_returns_pop(struct tl_returns *r, uint64_t *pc)
{
    if (r->n == 0)
        return false;
    *pc = r->pc[r->top];
    r->top = (uint8_t)((r->top - 1u) % TL_RETURNS_MAX);
    r->n--;
    return true;
}

static inline void tl_returns_state(struct tl_returns *r, struct tl_state *s)
{
    tl_state_u8(s, &r->n, TL_RETURNS_MAX);
    if (tl_state_loads(s))
        r->top = (uint8_t)((r->n - 1u) % TL_RETURNS_MAX);
    for (unsigned i = 0; i < r->n; i++) /* newest first */
        tl_state_u64(s, &r->pc[(r->top - i) % TL_RETURNS_MAX]);
}

#endif
