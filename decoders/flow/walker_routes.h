/* SPDX-License-Identifier: MIT */
/*
 * Routes: whole walks by one look-up (TL_WALKER_CONDITIONS, to sinks that take paths).
 *
 * A route is what outcomes, and perhaps an address behind them, lead to from a block on: its steps,
 * as a PATH item has them, and the block behind them. Programs do the same again, so a table of
 * those that were seen twice, by the block they begin at, the outcomes and the address, answers
 * most packets: a look-up and a copy in place of a look at each block, and no jump in it depends on
 * what the branches did. Not found or not to be told in one route: the walk goes block by block
 * (walker_conditions.c), which comes to the same.
 *
 * Blocks are borrowed from the walker's cache: tl_walker_routes_forget() when they go. Private to
 * the walker but for the function at the end.
 *
 * Flow of Intel PT to paths is 1.6 to 1.8 times as fast for it, a file to .zstf 1.2 times where it
 * has no cycle counts.
 */
#ifndef TL_FLOW_WALKER_ROUTES_H
#define TL_FLOW_WALKER_ROUTES_H

#include "flow/walker_hot.h"

#include <assert.h>
#include <string.h>

#define TL_ROUTE_STEPS 10  /* at most; longer walks are several routes */
#define TL_ROUTE_BITS  12  /* outcomes that are looked up at once, at most */
#define TL_ROUTE_WORD  62u /* outcomes that may be given at once */
#define TL_ROUTE_SLOTS 4096u
/* With a route's outcomes: an address follows them. */
#define TL_ROUTE_ARRIVES (UINT64_C(1) << 63)

/* Found by what comes first; empty, with `n` = 0, if it was asked for once. Two cache lines. */
struct tl_walker_route {
    const struct tl_block *from; /* NULL: none */
    uint64_t bits; /* outcomes, the newest in bit 0, below a stop bit; with TL_ROUTE_ARRIVES … */
    uint64_t to;   /* … the address behind them */
    struct tl_block *next;       /* where it leads */
    const struct tl_block *back; /* the block that it takes from the return stack first; or NULL */
    uint16_t insns;
    uint16_t calls;   /* steps that are calls from which it does not return */
    uint8_t n;        /* steps */
    uint8_t used;     /* outcomes that it takes; those left are for the next one */
    uint8_t rise;     /* entries that the return stack needs room for, on its way */
    bool arrives : 1; /* it ends at `to` */
    bool whole : 1;   /* it takes all outcomes, and ends at `to` if it is to */
    uintptr_t steps[TL_ROUTE_STEPS];
};

static_assert(sizeof(struct tl_walker_route) == 128, "two cache lines");
static_assert(TL_ROUTE_STEPS * TL_BLOCK_MAX <= UINT16_MAX, "a route's instructions");

/* Whatever is not one route: tl_walker_routes() behind a look-up. `*word` as there. */
bool tl_walker_routes_rest(struct tl_walker *w, uint64_t *word, bool arrives, uint64_t to,
                           uint64_t offset);
void tl_walker_routes_forget(struct tl_walker *w);

static inline struct tl_walker_route *tl_walker_route_slot(const struct tl_walker *w,
                                                           const struct tl_block *from,
                                                           uint64_t bits, uint64_t to)
{
    const uint64_t rest = bits * 0x9e3779b97f4a7c15ULL ^ to * 0xc2b2ae3d27d4eb4fULL;
    const uint64_t key = ((uintptr_t)from ^ rest >> 20) * 0x9e3779b97f4a7c15ULL;
    return &w->routes[key >> 40 & (TL_ROUTE_SLOTS - 1)];
}

/* Does the return stack have what the route needs? Then it becomes what it is behind the route. */
static inline bool tl_walker_route_calls(struct tl_walker *w, const struct tl_walker_route *route)
{
    struct tl_walker_returns *const r = &w->returns;
    const bool returns = route->back;
    if (returns && tl_walker_behind_return(w) != route->back)
        return false;
    if (route->rise && r->n - returns + route->rise > r->size)
        return false;
    if (returns)
        tl_walker_drop_return(r);
    for (unsigned calls = route->calls; calls; calls &= calls - 1)
        tl_walker_push_return(
            w, (struct tl_block *)(route->steps[__builtin_ctz(calls)] & ~(uintptr_t)TL_STEP_TAKEN));
    return true;
}

/* All of `route`: its steps, and where it leads. */
static inline void tl_walker_route_follow(struct tl_walker *w, const struct tl_walker_route *route,
                                          uint64_t offset)
{
    memcpy(tl_item_batch_steps(w->out, TL_ROUTE_STEPS), route->steps, sizeof route->steps);
    tl_item_batch_path(w->out, route->n, route->insns, offset);
    w->block = route->next;
    w->pc = route->next->pc;
}

/*
 * From the block at pc, along the outcomes of `*word`, the newest in bit 0 below a stop bit; and if
 * it `arrives`, on to an indirect branch, and with it to the address `to`, in the instruction set
 * in force: as tl_walker_conditions(), tl_walker_to_indirect() and tl_walker_jump(). False: that is
 * not all done, and these are for the outcomes that are left in `*word`, and the address.
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
