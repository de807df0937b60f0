/* SPDX-License-Identifier: MIT */
/*
 * Records routes and follows them. A route is recorded when it is asked for a second time, since
 * most sequences of outcomes occur once and recording costs more than the walk.
 */
#include "flow/walker_routes.h"

#include <stdlib.h>

void tl_walker_routes_forget(struct tl_walker *w)
{
    if (w->routes)
        memset(w->routes, 0, w->n_routes * sizeof *w->routes);
}

/* A route being recorded: its steps so far, and the block after them. */
struct making {
    struct tl_walker_route route;
    struct tl_block *next;
    unsigned n; /* outcomes left */
};

static unsigned count(unsigned calls)
{
    return (unsigned)__builtin_popcount(calls);
}

/* Block after a return, from the return stack: after a call of the route, or after the last call
 * before it, provided the route has popped nothing else. NULL: unknown. */
static struct tl_block *after_call(const struct tl_walker *w, struct tl_walker_route *route)
{
    if (route->calls) {
        const unsigned last = 31u - (unsigned)__builtin_clz(route->calls);
        const unsigned depth = count(route->calls);
        route->rise = (uint8_t)(depth > route->rise ? depth : route->rise);
        route->calls &= (uint16_t) ~(1u << last);
        return tl_path_block(route->steps[last])->go[0];
    }
    struct tl_block *const back = route->back ? NULL : tl_walker_after_return(w);
    route->back = back;
    return back;
}

/* Append one step. False: the route cannot contain it. */
static bool add_step(struct tl_walker *w, struct making *m, uint64_t outcomes, uint64_t to)
{
    struct tl_walker_route *const route = &m->route;
    struct tl_block *const b = m->next;
    const bool any = m->n > 0, newest = any && (outcomes >> (m->n - 1) & 1);
    bool taken = true, call = false;
    switch (b->waits) {
    case TL_WAITS_OUTCOME:
        if (!any)
            return false;
        taken = newest;
        m->n--;
        m->next = b->go[taken];
        break;
    case TL_WAITS_NOTHING:
        call = (b->turn[1] & ~TL_STEP_BITS) == TL_TURN_CALL;
        m->next = b->go[1];
        break;
    case TL_WAITS_STRAIGHT:
        taken = false;
        m->next = b->go[0];
        break;
    case TL_WAITS_RETURN:
        route->arrives = !any;
        if (any && !newest)
            return false;
        m->n -= any;
        m->next = any ? after_call(w, route) : NULL;
        break;
    case TL_WAITS_ADDRESS:
        if (any)
            return false;
        route->arrives = true;
        call = b->link;
        break;
    default:
        return false;
    }
    if (route->arrives)
        m->next = tl_block_get(w->cache, w->space, (enum tl_isa)w->isa, to);
    route->calls |= (uint16_t)(call << route->n);
    route->steps[route->n++] =
        tl_path_step(b, route->arrives || (b->turn[taken] & TL_STEP_TAKEN) != 0);
    route->insns += (uint16_t)b->n;
    return m->next && m->next->n > 0;
}

static inline bool is_for(const struct tl_walker_route *route, const struct tl_block *from,
                          uint64_t bits, uint64_t to)
{
    return route->from == from && route->bits == bits && route->to == to;
}

/* Record a route from the walker's block. False: not possible. */
static bool make(struct tl_walker *w, struct tl_walker_route *route, uint64_t bits, uint64_t to)
{
    const struct tl_walker_route empty = {.from = w->block, .bits = bits, .to = to};
    const uint64_t word = bits & ~TL_ROUTE_ARRIVES;
    const unsigned n = 63u - (unsigned)__builtin_clzll(word);
    struct making m = {.route = empty, .next = w->block, .n = n};
    while (m.route.n < TL_ROUTE_STEPS && !route->whole && add_step(w, &m, word, to)) {
        if (n - m.n == m.route.used && !m.route.arrives)
            continue; /* routes end only where an outcome or the address was consumed, so that none
                         is endless */
        m.route.used = (uint8_t)(n - m.n);
        m.route.next = m.next;
        m.route.whole = m.n == 0 && m.route.arrives == (bits != word);
        *route = m.route;
    }
    return route->n > 0;
}

/* Use a larger table, which is empty, from when the first one is crowded. */
static bool grow(struct tl_walker *w)
{
    struct tl_walker_route *const routes = calloc(TL_ROUTE_MANY, sizeof *routes);
    if (!routes)
        return false;
    free(w->routes);
    w->routes = routes;
    w->n_routes = TL_ROUTE_MANY;
    return true;
}

/* Note that a slot gets another route. True: the table has been replaced. */
static bool note_other(struct tl_walker *w, bool is_free)
{
    if (w->n_routes == TL_ROUTE_MANY)
        return false;
    w->routes_used += is_free;
    w->routes_lost += !is_free;
    return (w->routes_used > TL_ROUTE_FEW / 2 || w->routes_lost > TL_ROUTE_FEW) && grow(w);
}

/* Find the route from the walker's block; record it if it was requested before. NULL: none. */
static const struct tl_walker_route *find(struct tl_walker *w, uint64_t bits, uint64_t to)
{
    struct tl_walker_route *route = tl_walker_route_slot(w, w->block, bits, to);
    const bool asked = is_for(route, w->block, bits, to);
    if (asked && (route->n > 0 || make(w, route, bits, to)))
        return route;
    if (!asked && note_other(w, !route->from))
        route = tl_walker_route_slot(w, w->block, bits, to);
    route->from = w->block; /* only these members are valid */
    route->bits = bits;
    route->to = to;
    route->n = 0;
    route->whole = false;
    return NULL;
}

bool tl_walker_routes_rest(struct tl_walker *w, uint64_t *word, bool arrives, uint64_t to,
                           uint64_t offset)
{
    unsigned n = 63u - (unsigned)__builtin_clzll(*word);
    while (w->block) {
        const bool all = n <= TL_ROUTE_BITS;
        const uint64_t bits = all ? *word | (uint64_t)arrives << 63 : *word >> (n - TL_ROUTE_BITS);
        const struct tl_walker_route *const route = find(w, bits, all && arrives ? to : 0);
        if (!route || !tl_walker_route_calls(w, route))
            return false;
        tl_walker_route_follow(w, route, offset);
        n -= route->used;
        *word = (*word & ((UINT64_C(1) << n) - 1)) | UINT64_C(1) << n;
        if (route->arrives || (n == 0 && !arrives))
            return true;
    }
    return false;
}
