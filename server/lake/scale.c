/* SPDX-License-Identifier: MIT */
/*
 * Interpolates between the points of a scale, and finds what bounds a value. A point that stands
 * for others, or is estimated, divides time but bounds nothing, so bounds are looked for beyond it.
 */
#include "lake/scale.h"

#include "base/search.h"

#include <stdlib.h>

void tl_scale_break_add(struct tl_scale_break *missing, const struct tl_item *item)
{
    const uint8_t flags = tl_bucket_flags(item);
    missing->count += flags != 0;
    missing->flags |= flags;
    if (item->kind == TL_ITEM_GAP && item->sub < TL_GAP_KINDS)
        missing->reasons |= 1u << item->sub;
    if (missing->flags == 0)
        missing->flags = TL_FLAG_OFF;
}

void tl_scale_close(struct tl_scale *scale)
{
    free(scale->points);
    free(scale->breaks);
    *scale = (struct tl_scale){0};
}

static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c, bool up)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)((product + (up ? c - 1 : 0)) / c);
}

/* The first point after a position. */
static size_t point_after(const struct tl_scale *s, uint64_t position)
{
    return tl_count_upto(TL_KEYS(s->points, position), s->n, position);
}

/* The first break at or after a position. */
static size_t break_at(const struct tl_scale *s, uint64_t position)
{
    return tl_count_below(TL_KEYS(s->breaks, position), s->n_breaks, position);
}

/* The next point from `i` on that is known, s->n: none; the one before it, SIZE_MAX: none. */
static size_t known_from(const struct tl_scale *s, size_t i)
{
    while (i < s->n && s->points[i].estimated)
        i++;
    return i;
}

static size_t known_before(const struct tl_scale *s, size_t i)
{
    while (i-- > 0)
        if (!s->points[i].estimated)
            return i;
    return SIZE_MAX;
}

/* The lowest value that what follows a known point can have. */
static uint64_t least_behind(const struct tl_scale *s, size_t i)
{
    const struct tl_scale_point *const p = &s->points[i];
    if (p->inexact & TL_ITEM_OVERDUE)
        return 0;
    if (p->inexact & TL_ITEM_DELAYED)
        while (s->points[i].value == p->value)
            if (i-- == 0)
                return 0;
    return s->points[i].value;
}

/* The next point from `i` on that timestamps lost before it do not make too low; s->n: none. */
static size_t high_from(const struct tl_scale *s, size_t i)
{
    while (i < s->n && (s->points[i].estimated || s->points[i].inexact & TL_ITEM_AT_LEAST))
        i++;
    return i;
}

bool tl_scale_bounds(const struct tl_scale *s, uint64_t position, uint64_t *from, uint64_t *to)
{
    const size_t next = point_after(s, position), before = known_before(s, next);
    const bool low = before != SIZE_MAX && s->points[before].inexact & TL_ITEM_AT_LEAST;
    const size_t after = low ? high_from(s, next) : known_from(s, next);
    if (s->n == 0)
        return false;
    *from = before != SIZE_MAX ? least_behind(s, before) : 0;
    *to = after < s->n ? s->points[after].value : UINT64_MAX;
    /* At a break, what precedes it has the time before, what follows it the time after: both are
     * bounds. */
    size_t i = after < s->n ? break_at(s, s->points[after].position) : s->n_breaks;
    for (; i < s->n_breaks && s->breaks[i].position == s->points[after].position; i++)
        *to = s->breaks[i].to > *to ? s->breaks[i].to : *to;
    i = before != SIZE_MAX ? break_at(s, s->points[before].position) : s->n_breaks;
    for (; i < s->n_breaks && s->breaks[i].position == s->points[before].position; i++)
        *from = s->breaks[i].from < *from ? s->breaks[i].from : *from;
    return true;
}

bool tl_scale_edge(const struct tl_scale *s, uint64_t position, uint64_t *from, uint64_t *to)
{
    const size_t before = known_before(s, point_after(s, position));
    if (!tl_scale_bounds(s, position, from, to))
        return false;
    if (before != SIZE_MAX && s->points[before].position == position &&
        !(s->points[before].inexact & TL_ITEM_AT_LEAST))
        *to = s->points[before].value;
    return true;
}

bool tl_scale_value(const struct tl_scale *s, uint64_t position, uint64_t *out)
{
    if (s->n == 0)
        return false;
    const size_t low = point_after(s, position);
    if (low == 0) {
        *out = s->points[0].value;
        return true;
    }
    const struct tl_scale_point *a = &s->points[low - 1];
    *out = a->value;
    if (low < s->n)
        *out += scaled(position - a->position, a[1].value - a->value, a[1].position - a->position,
                       false);
    return true;
}

/* The values between two points, by adding the quotient and what is left of it. */
static void interpolate(const struct tl_scale_point *a, const struct tl_scale_point *b,
                        uint64_t first, size_t n, uint64_t *out)
{
    const uint64_t width = b->position - a->position, rise = b->value - a->value;
    const uint64_t whole = rise / width, part = rise % width;
    uint64_t value = a->value + scaled(first - a->position, rise, width, false);
    uint64_t left = (uint64_t)((unsigned __int128)(first - a->position) * part % width);
    for (size_t i = 0; i < n; i++) {
        out[i] = value;
        const bool carry = left >= width - part;
        value += whole + carry;
        left = carry ? left - (width - part) : left + part;
    }
}

void tl_scale_values(const struct tl_scale *s, uint64_t first, size_t n, uint64_t *out)
{
    size_t next = point_after(s, first);
    for (size_t i = 0, some; i < n; i += some) {
        while (next < s->n && s->points[next].position <= first + i)
            next++;
        const uint64_t end = next < s->n ? s->points[next].position - (first + i) : UINT64_MAX;
        some = n - i < end ? n - i : (size_t)end;
        if (next > 0 && next < s->n)
            interpolate(&s->points[next - 1], &s->points[next], first + i, some, out + i);
        for (size_t k = i; (next == 0 || next == s->n) && k < i + some; k++)
            out[k] = s->n == 0 ? 0 : s->points[next ? next - 1 : 0].value;
    }
}

uint64_t tl_scale_position(const struct tl_scale *s, uint64_t value)
{
    const size_t low = tl_count_below(TL_KEYS(s->points, value), s->n, value);
    if (low == s->n)
        return s->end;
    if (low == 0)
        return 0;
    const struct tl_scale_point *a = &s->points[low - 1];
    return a->position +
           scaled(value - a->value, a[1].position - a->position, a[1].value - a->value, true);
}
