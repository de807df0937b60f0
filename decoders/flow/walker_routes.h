/* SPDX-License-Identifier: MIT */
/*
 * Routes: memoised walks (TL_WALKER_CONDITIONS, for sinks that accept paths).
 *
 * A route is the path that a sequence of outcomes, optionally followed by an address, takes from a
 * block: its steps in the form of a PATH item, and the block after them. Since programs repeat
 * themselves, a hash table of walks seen twice, keyed by first block, outcomes and address, answers
 * most packets with a lookup and a copy. No block is examined, and no branch of the lookup depends
 * on the traced outcomes. If there is no such route, the walk goes block by block
 * (walker_conditions.c) with the same result.
 *
 * Blocks are borrowed from the walker's cache: call tl_walker_routes_forget() when they are freed.
 * Private to the walker except for the function at the end.
 *
 * Decoding Intel PT to paths is 1.6 to 1.8 times as fast with routes. End to end: 8 % (with cycle
 * counts) to 30 % less processor time (`decode --out`).
 */
#ifndef TL_FLOW_WALKER_ROUTES_H
#define TL_FLOW_WALKER_ROUTES_H

#include "flow/walker_hot.h"

#include <assert.h>
#include <string.h>

#define TL_ROUTE_STEPS 10  /* at most; longer walks use several routes */
#define TL_ROUTE_BITS  12  /* outcomes per lookup, at most */
#define TL_ROUTE_WORD  62u /* outcomes per call, at most */
/* Slots, powers of two. The second number is for programs that need more than half of the first, or
 * often replace a route: a short trace spends more on getting memory than on being decoded. */
#define TL_ROUTE_FEW  512u
#define TL_ROUTE_MANY 4096u
/* Set in a route's outcomes if an address follows them. */
#define TL_ROUTE_ARRIVES (UINT64_C(1) << 63)

/*
 * The first three members are the key. `n` = 0: requested once, not recorded yet. Two cache lines.
 */
struct tl_walker_route {
    const struct tl_block *from; /* NULL: none */
    /* outcomes, the newest in bit 0, below a stop bit; may include TL_ROUTE_ARRIVES */
    uint64_t bits;
    uint64_t to;           /* address after the outcomes, if TL_ROUTE_ARRIVES; else 0 */
    struct tl_block *next; /* block after the last step */
    /* block that the route pops from the return stack first; or NULL */
    const struct tl_block *back;
    uint16_t insns;
    uint16_t calls; /* bit mask of steps that are calls and have not returned at the route's end */
    uint8_t n;      /* steps */
    uint8_t used;   /* outcomes consumed; the rest is left for the next route */
    uint8_t rise;   /* return stack entries that must be free */
    bool arrives : 1; /* it ends at `to` */
    bool whole : 1;   /* it consumes all outcomes and, if asked to, ends at `to` */
    uintptr_t steps[TL_ROUTE_STEPS];
};

static_assert(sizeof(struct tl_walker_route) == 128, "two cache lines");
static_assert(TL_ROUTE_STEPS * TL_BLOCK_MAX <= UINT16_MAX, "a route's instructions");

/* Slow path of tl_walker_routes(), if the lookup does not answer completely. `*word` as there. */
bool tl_walker_routes_rest(struct tl_walker *w, uint64_t *word, bool arrives, uint64_t to,
                           uint64_t offset);
void tl_walker_routes_forget(struct tl_walker *w);

static inline struct tl_walker_route *tl_walker_route_slot(const struct tl_walker *w,
                                                           const struct tl_block *from,
                                                           uint64_t bits, uint64_t to)
{
    const uint64_t rest = bits * 0x9e3779b97f4a7c15ULL ^ to * 0xc2b2ae3d27d4eb4fULL;
    const uint64_t key = ((uintptr_t)from ^ rest >> 20) * 0x9e3779b97f4a7c15ULL;
    return &w->routes[key >> 40 & (w->n_routes - 1)];
}

/* Does the return stack satisfy the route? Then update it to its state after the route. */
static inline bool tl_walker_route_calls(struct tl_walker *w, const struct tl_walker_route *route)
{
    struct tl_walker_returns *const r = &w->returns;
    const bool returns = route->back;
    if (returns && tl_walker_after_return(w) != route->back)
        return false;
    if (route->rise && r->n - returns + route->rise > r->size)
        return false;
    if (returns)
        tl_walker_drop_return(r);
    for (unsigned calls = route->calls; calls; calls &= calls - 1)
        tl_walker_push_return(
            w, (struct tl_block *)(route->steps[__builtin_ctz(calls)] & ~(uintptr_t)TL_STEP_BITS));
    return true;
}

/* Execute `route`: append its steps and continue after it. */
static inline void tl_walker_route_follow(struct tl_walker *w, const struct tl_walker_route *route,
                                          uint64_t offset)
{
    memcpy(tl_item_batch_steps(w->out, TL_ROUTE_STEPS), route->steps, sizeof route->steps);
    tl_item_batch_path(w->out, route->n, route->insns, offset);
    w->block = route->next;
    w->pc = route->next->pc;
}

/*
 * Walk from the block at pc along the outcomes in `*word`, the newest in bit 0 below a stop bit. If
 * `arrives`, continue to an indirect branch and take it to the address `to`, in the current
 * instruction set. Equivalent to tl_walker_conditions(), tl_walker_to_indirect() and
 * tl_walker_jump(). Returns false if part of that remains: the caller then uses those functions for
 * the outcomes left in `*word` and the address.
 */
static inline __attribute__((always_inline)) bool
tl_walker_routes(struct tl_walker *w, uint64_t *word, bool arrives, uint64_t to, uint64_t offset)
{
    if (!w->block || !w->routes)
        return false;
    const uint64_t bits = *word | (uint64_t)arrives << 63;
    to = arrives ? to : 0;
    const struct tl_walker_route *const route = tl_walker_route_slot(w, w->block, bits, to);
    if (route->from != w->block || route->bits != bits || route->to != to || !route->whole ||
        !tl_walker_route_calls(w, route))
        return tl_walker_routes_rest(w, word, arrives, to, offset);
    tl_walker_route_follow(w, route, offset);
    return true;
}

#endif
