/* SPDX-License-Identifier: MIT */
/*
 * Paints the regions of a layer in the order of addition, on a plane of addresses and times, so
 * that a later one covers an earlier one where and when both are present. What an operating system
 * has mapped never overlaps, however much it is, so regions that share no address with others, or
 * none at any time, are recognised by sorting; only the rest is compared, each with each.
 */
#include "base/buf.h"
#include "base/cancel.h"
#include "image/image_parts.h"

#include <search.h>
#include <stdlib.h>

static int add(struct tl_extents *list, struct tl_extent e)
{
    if (tl_grow(&list->v, &list->cap, list->n + 1, sizeof *list->v) < 0)
        return TL_NOMEM;
    list->v[list->n++] = e;
    return TL_OK;
}

static int add_region(struct tl_extents *list, const struct tl_region *region)
{
    return add(list, (struct tl_extent){.first = region->first,
                                        .last = region->last,
                                        .span = region->span,
                                        .bytes = region->bytes});
}

static struct tl_extent addresses_of(struct tl_extent e, uint64_t first, uint64_t last)
{
    e.bytes += first - e.first;
    e.first = first;
    e.last = last;
    return e;
}

/* Parts of an extent that remain next to an overlapping region: before and after its period, before
 * and after its addresses. Returns how many. */
static size_t cut(const struct tl_extent *e, const struct tl_region *r, struct tl_extent out[4])
{
    struct tl_extent during = *e;
    size_t n = 0;
    if (e->span.from < r->span.from) {
        out[n] = *e;
        out[n++].span.until = during.span.from = r->span.from;
    }
    if (e->span.until > r->span.until) {
        out[n] = *e;
        out[n++].span.from = during.span.until = r->span.until;
    }
    if (e->first < r->first)
        out[n++] = addresses_of(during, e->first, r->first - 1);
    if (e->last > r->last)
        out[n++] = addresses_of(during, r->last + 1, e->last);
    return n;
}

static bool overlaps(const struct tl_extent *e, const struct tl_region *r)
{
    return e->first <= r->last && r->first <= e->last && e->span.from < r->span.until &&
           r->span.from < e->span.until;
}

/* `base`: the first extent that may be covered. */
static int paint(struct tl_extents *list, size_t base, const struct tl_region *region)
{
    for (size_t i = base; i < list->n;) {
        struct tl_extent left[4];
        if (!overlaps(&list->v[i], region)) {
            i++;
            continue;
        }
        const size_t n = cut(&list->v[i], region, left);
        list->v[i] = n > 0 ? left[0] : list->v[--list->n];
        for (size_t k = 1; k < n; k++)
            if (add(list, left[k]) < 0)
                return TL_NOMEM;
    }
    return add_region(list, region);
}

/* ---- regions that do not overlap ------------------------------------------------------------ */

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Pointers to regions, which are in the order they were added. */
static const struct tl_region *at(const void *p)
{
    return *(const struct tl_region *const *)p;
}

static int by_first(const void *a, const void *b)
{
    return order(at(a)->first, at(b)->first);
}

static int by_begin(const void *a, const void *b)
{
    return order(at(a)->span.from, at(b)->span.from);
}

static int by_end(const void *a, const void *b)
{
    return order(at(a)->span.until, at(b)->span.until);
}

static int by_addition(const void *a, const void *b)
{
    return (at(a) > at(b)) - (at(a) < at(b));
}

/* Regions that overlap are equal. */
static int by_place(const void *a, const void *b)
{
    const struct tl_region *const x = a, *const y = b;
    return x->last < y->first ? -1 : x->first > y->last;
}

static void leave(void *unused)
{
    (void)unused; /* the layer owns it */
}

/*
 * Are at no time two of them at one address? Time passes from change to change, and a tree has what
 * is present. `ends`: room for `n`. Sorts both. Returns 1, 0, TL_NOMEM.
 */
static int is_flat(const struct tl_region **v, const struct tl_region **ends, size_t n)
{
    void *present = NULL;
    int flat = 1;
    for (size_t i = 0; i < n; i++)
        ends[i] = v[i];
    qsort(v, n, sizeof(const struct tl_region *), by_begin);
    qsort(ends, n, sizeof(const struct tl_region *), by_end);
    for (size_t i = 0, ended = 0; flat == 1 && i < n; i++) {
        for (; ends[ended]->span.until <= v[i]->span.from; ended++)
            tdelete(ends[ended], &present, by_place);
        const struct tl_region *const *const kept = tsearch(v[i], &present, by_place);
        flat = !kept ? TL_NOMEM : *kept == v[i];
    }
    tdestroy(present, leave);
    return flat;
}

/* Paint regions of which each overlaps the addresses of another. */
static int paint_group(struct tl_extents *list, const struct tl_region **v,
                       const struct tl_region **spare, size_t n)
{
    const size_t base = list->n;
    const int flat = n == 1 ? 1 : is_flat(v, spare, n);
    int rc = flat < 0 ? flat : TL_OK;
    if (!flat)
        qsort(v, n, sizeof(const struct tl_region *), by_addition);
    for (size_t i = 0; rc == TL_OK && i < n; i++) {
        rc = flat ? add_region(list, v[i]) : paint(list, base, v[i]);
        if (rc == TL_OK && !flat)
            rc = tl_cancel_check();
    }
    return rc;
}

/* The regions of a space. Returns how many. */
static size_t choose(const struct tl_layer *layer, size_t space, const struct tl_region **out)
{
    size_t n = 0;
    for (size_t i = 0; i < layer->n_regions; i++)
        if (layer->regions[i].space >> space & 1)
            out[n++] = &layer->regions[i];
    return n;
}

int tl_image_paint(struct tl_layer *layer, size_t space)
{
    const struct tl_region **const v = calloc(2 * layer->n_regions + 1, sizeof *v);
    int rc = v ? TL_OK : TL_NOMEM;
    const size_t n = v ? choose(layer, space, v) : 0;
    if (n > 1)
        qsort(v, n, sizeof *v, by_first);
    for (size_t i = 0, end; rc == TL_OK && i < n; i = end) {
        uint64_t last = v[i]->last;
        for (end = i + 1; end < n && v[end]->first <= last; end++)
            last = v[end]->last > last ? v[end]->last : last;
        rc = paint_group(&layer->extents[space], v + i, v + layer->n_regions, end - i);
    }
    free(v);
    return rc;
}
