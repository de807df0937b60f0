/* SPDX-License-Identifier: MIT */
/*
 * Keeps the lower convex hull of (timestamp, arrival) pairs and takes the clock relation from one
 * of its edges. Delays only ever make pairs later, so that an average of all pairs would follow the
 * load of the network.
 */
#include "catalog/clockfit.h"

#include <math.h>
#include <stdlib.h>

/* Products of differences up to this fit into 128 bits: 146 years in ns. */
#define FAR (UINT64_C(1) << 62)

typedef __int128 wide;

static wide across(struct tl_clock_pair a, struct tl_clock_pair b, struct tl_clock_pair c)
{
    const wide x1 = (wide)b.ticks - a.ticks, y1 = (wide)b.ns - a.ns;
    const wide x2 = (wide)c.ticks - b.ticks, y2 = (wide)c.ns - b.ns;
    return x1 * y2 - y1 * x2;
}

/* Distance of `p` above the line through a and b: ns. */
static double above(struct tl_clock_pair a, struct tl_clock_pair b, struct tl_clock_pair p)
{
    const double slope = (double)((wide)b.ns - a.ns) / (double)((wide)b.ticks - a.ticks);
    return (double)((wide)p.ns - a.ns) - slope * (double)((wide)p.ticks - a.ticks);
}

/* `p` is after all others. */
static void add_hull(struct tl_clockfit *f, struct tl_clock_pair p)
{
    struct tl_clock_pair *const h = f->hull;
    while (f->n_hull >= 2 && across(h[f->n_hull - 2], h[f->n_hull - 1], p) <= 0)
        f->n_hull--;
    if (f->n_hull == TL_CLOCKFIT_HULL) {
        /* Remove the corner closest to the line between its neighbours. */
        size_t min = 1;
        double depth = INFINITY;
        for (size_t i = 1; i + 1 < f->n_hull; i++) {
            const double d = -above(h[i - 1], h[i + 1], h[i]);
            if (d < depth) {
                depth = d;
                min = i;
            }
        }
        memmove(h + min, h + min + 1, (f->n_hull - min - 1) * sizeof(*h));
        f->n_hull--;
    }
    h[f->n_hull++] = p;
}

/* `last` is final. */
static void commit(struct tl_clockfit *f)
{
    if (f->pairs == 1)
        f->first = f->last;
    add_hull(f, f->last);
    if ((f->pairs - 1) % f->stride != 0)
        return;
    if (f->n_some == TL_CLOCKFIT_SPLIT) {
        for (size_t i = 0; i < TL_CLOCKFIT_SPLIT / 2; i++)
            f->some[i] = f->some[2 * i];
        f->n_some = TL_CLOCKFIT_SPLIT / 2;
        f->stride *= 2;
    }
    f->some[f->n_some++] = f->last;
}

static bool is_far(uint64_t a, uint64_t b)
{
    return (a > b ? a - b : b - a) > FAR;
}

void tl_clockfit_add(struct tl_clockfit *f, uint64_t ticks, uint64_t ns)
{
    if (ns == 0)
        return;
    if (f->pairs == 0)
        f->stride = 1;
    else if (ticks <= f->last.ticks)
        return;
    if (f->pairs > 0 && ns != f->last.ns) {
        const struct tl_clock_pair begin = f->pairs == 1 ? f->last : f->first;
        if (is_far(ticks, begin.ticks) || is_far(ns, begin.ns))
            return;
        commit(f);
    }
    f->pairs += f->pairs == 0 || ns != f->last.ns;
    f->last = (struct tl_clock_pair){ticks, ns};
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void tl_clockfit_relation(const struct tl_clockfit *fit, struct tl_clock_relation *out)
{
    struct tl_clockfit f = *fit;
    *out = (struct tl_clock_relation){0};
    if (f.pairs < TL_CLOCKFIT_PAIRS)
        return;
    commit(&f);
    if (f.last.ns < f.first.ns + TL_CLOCKFIT_SPAN)
        return;
    const uint64_t middle = f.first.ticks + (f.last.ticks - f.first.ticks) / 2;
    size_t i = 1;
    while (i + 1 < f.n_hull && f.hull[i].ticks < middle)
        i++;
    const struct tl_clock_pair a = f.hull[i - 1], b = f.hull[i];
    double delays[TL_CLOCKFIT_SPLIT];
    for (size_t k = 0; k < f.n_some; k++)
        delays[k] = above(a, b, f.some[k]);
    qsort(delays, f.n_some, sizeof(*delays), by_size);
    const double spread = fmax(delays[(f.n_some - 1) * 95 / 100], 0);
    const double span = (double)(f.last.ns - f.first.ns);
    const double slope = (double)((wide)b.ns - a.ns) / (double)((wide)b.ticks - a.ticks);
    if (spread > span / 10 || slope <= 0)
        return;
    *out = (struct tl_clock_relation){
        .pairs = f.pairs,
        .ticks = middle,
        .unix_ns =
            a.ns + (uint64_t)(int64_t)llround(slope * (double)((wide)middle - (wide)a.ticks)),
        .ns_per_tick = slope,
        .error = slope * spread / span,
        .spread_ns = (uint64_t)spread,
    };
}

void tl_clockfit_state(struct tl_clockfit *f, struct tl_state *s)
{
    tl_state_bytes(s, f, sizeof(*f));
    tl_state_check(s, f->n_hull <= TL_CLOCKFIT_HULL && f->n_some <= TL_CLOCKFIT_SPLIT &&
                          (f->pairs == 0 || f->stride > 0));
    if (s->rc < 0)
        *f = (struct tl_clockfit){0};
}

/* ---- stored --------------------------------------------------------------------------------- */

static void put_double(uint8_t *p, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));
    tl_put_le64(p, bits);
}

static double get_double(const uint8_t *p)
{
    const uint64_t bits = tl_le64(p);
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

void tl_clock_relation_put(const struct tl_clock_relation *r,
                           uint8_t out[static TL_CLOCK_RELATION_BYTES])
{
    tl_put_le64(out, r->pairs);
    tl_put_le64(out + 8, r->ticks);
    tl_put_le64(out + 16, r->unix_ns);
    put_double(out + 24, r->ns_per_tick);
    put_double(out + 32, r->error);
    tl_put_le64(out + 40, r->spread_ns);
}

void tl_clock_relation_get(struct tl_clock_relation *out, struct tl_bytes bytes)
{
    *out = (struct tl_clock_relation){0};
    if (bytes.n != TL_CLOCK_RELATION_BYTES)
        return;
    const uint8_t *const p = bytes.p;
    const struct tl_clock_relation r = {
        .pairs = tl_le64(p),
        .ticks = tl_le64(p + 8),
        .unix_ns = tl_le64(p + 16),
        .ns_per_tick = get_double(p + 24),
        .error = get_double(p + 32),
        .spread_ns = tl_le64(p + 40),
    };
    if (isfinite(r.ns_per_tick) && r.ns_per_tick > 0 && isfinite(r.error) && r.error >= 0)
        *out = r;
}
