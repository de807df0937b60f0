/* SPDX-License-Identifier: MIT */
/*
 * From the regions as given to a sorted list of extents per address space.
 *
 * Each space is painted in the order given, so a later region covers an earlier one. Extents
 * that touch are then joined into one piece of memory, because code runs across the border of
 * two dumps and an instruction may straddle it. Images have tens to hundreds of regions, are
 * frozen once and read for hours, so painting may be quadratic; look-up is a binary search.
 */
#include "base/buf.h"
#include "image/image_parts.h"

#include <stdlib.h>

/* Index of the first extent that ends at or behind `address`. */
static size_t lower_bound(const struct tl_extents *list, uint64_t address)
{
    size_t lo = 0, hi = list->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (list->v[mid].last < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Replace the extents from..to (exclusive) by the n new ones. */
static int splice(struct tl_extents *list, size_t from, size_t to, const struct tl_extent *with,
                  size_t n)
{
    const size_t count = list->n - (to - from) + n;
    if (tl_grow(&list->v, &list->cap, count, sizeof *list->v) < 0)
        return TL_NOMEM;
    memmove(list->v + from + n, list->v + to, (list->n - to) * sizeof *list->v);
    memcpy(list->v + from, with, n * sizeof *with);
    list->n = count;
    return TL_OK;
}

static int paint(struct tl_extents *list, const struct tl_region *region)
{
    struct tl_extent with[3];
    size_t n = 0;
    const size_t from = lower_bound(list, region->first);
    size_t to = from;
    while (to < list->n && list->v[to].first <= region->last)
        to++;

    if (to > from && list->v[from].first < region->first) { /* keep its head */
        with[n] = list->v[from];
        with[n++].last = region->first - 1;
    }
    with[n++] = (struct tl_extent){region->first, region->last, region->bytes};
    if (to > from && list->v[to - 1].last > region->last) { /* keep its tail */
        const struct tl_extent *e = &list->v[to - 1];
        with[n++] =
            (struct tl_extent){region->last + 1, e->last, e->bytes + (region->last + 1 - e->first)};
    }
    return splice(list, from, to, with, n);
}

static bool touch(const struct tl_extent *a, const struct tl_extent *b)
{
    return a->last + 1 == b->first && b->first != 0;
}

static size_t extent_size(const struct tl_extent *e)
{
    return (size_t)(e->last - e->first) + 1;
}

/* Has a list joined exactly this run of extents already? */
static const uint8_t *joined_in(const struct tl_extents *list, const struct tl_extent *run,
                                size_t n, uint64_t last)
{
    const size_t i = lower_bound(list, run[0].first);
    if (i == list->n || list->v[i].first != run[0].first || list->v[i].last != last)
        return NULL;
    const uint8_t *const p = list->v[i].bytes;
    size_t at = 0, k = 0;
    while (k < n && memcmp(p + at, run[k].bytes, extent_size(&run[k])) == 0)
        at += extent_size(&run[k++]);
    return k == n ? p : NULL;
}

/* The version in front of a layer's version, or NULL. */
static const struct tl_version *before(const struct tl_version *version)
{
    return version->span.from > 0 ? version - 1 : NULL;
}

/* Have the earlier spaces of the version, or the version before it, joined this run already? */
static const uint8_t *joined_before(const struct tl_version *version, size_t space,
                                    const struct tl_extent *run, size_t n)
{
    const struct tl_version *const earlier = before(version);
    const uint64_t last = run[n - 1].last;
    const uint8_t *p = earlier ? joined_in(&earlier->extents[space], run, n, last) : NULL;
    for (size_t s = 0; !p && s < space; s++)
        p = joined_in(&version->extents[s], run, n, last);
    return p;
}

static const uint8_t *join(struct tl_image *image, const struct tl_version *version, size_t space,
                           const struct tl_extent *run, size_t n)
{
    const uint64_t last = run[n - 1].last;
    const uint8_t *p = joined_before(version, space, run, n);
    if (p)
        return p;
    const size_t size = (size_t)(last - run[0].first) + 1;
    uint8_t *memory = malloc(size);
    if (!memory || tl_image_own(image, memory) < 0)
        return NULL;
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        memcpy(memory + at, run[k].bytes, extent_size(&run[k]));
        at += extent_size(&run[k]);
    }
    return memory;
}

static int join_touching(struct tl_image *image, struct tl_version *version, size_t space)
{
    struct tl_extents *list = &version->extents[space];
    size_t kept = 0;
    for (size_t i = 0, end; i < list->n; i = end) {
        struct tl_extent whole = list->v[i];
        for (end = i + 1; end < list->n && touch(&list->v[end - 1], &list->v[end]); end++)
            ;
        if (end > i + 1) {
            whole.last = list->v[end - 1].last;
            whole.bytes = join(image, version, space, &list->v[i], end - i);
            if (!whole.bytes)
                return TL_NOMEM;
        }
        list->v[kept++] = whole;
    }
    list->n = kept;
    return TL_OK;
}

/* The lowest space that all of the layer's regions are in that are in `space`, and no others. */
static size_t same_space(const struct tl_layer *layer, size_t space)
{
    for (size_t s = 0; s < space; s++) {
        size_t i = 0;
        while (i < layer->n_regions &&
               !((layer->regions[i].space >> s ^ layer->regions[i].space >> space) & 1))
            i++;
        if (i == layer->n_regions)
            return s;
    }
    return space;
}

static int resolve_version(struct tl_image *image, const struct tl_layer *layer,
                           struct tl_version *version)
{
    for (size_t space = 0; space < TL_SPACE_BITS; space++) {
        const size_t same = same_space(layer, space);
        if (same < space) {
            version->extents[space] = version->extents[same];
            continue;
        }
        version->owners |= (uint8_t)(1u << space);
        for (size_t i = 0; i < layer->n_regions; i++) {
            const struct tl_region *const region = &layer->regions[i];
            if (!(region->space >> space & 1) || !tl_version_has(version, region->span))
                continue;
            if (paint(&version->extents[space], region) < 0)
                return TL_NOMEM;
        }
        if (join_touching(image, version, space) < 0)
            return TL_NOMEM;
    }
    return TL_OK;
}

int tl_image_resolve(struct tl_image *image)
{
    int rc = TL_OK;
    for (size_t i = 0; i < image->n_layers; i++) {
        const struct tl_layer *const layer = &image->layers[i];
        for (size_t k = 0; rc == TL_OK && k < layer->n_versions; k++)
            rc = resolve_version(image, layer, &image->versions[layer->version + k]);
    }
    return rc;
}

/* The bytes at `address`; *next becomes the lowest address behind it (0: none) that is known to
 * have some. */
static struct tl_bytes look_up(const struct tl_version *version, unsigned space, uint64_t address,
                               uint64_t *next)
{
    struct tl_bytes found = {NULL, 0};
    for (size_t bit = 0; bit < TL_SPACE_BITS; bit++) {
        if (!(space >> bit & 1))
            continue;
        const struct tl_extents *list = &version->extents[bit];
        const size_t i = lower_bound(list, address);
        if (i == list->n)
            continue;
        const struct tl_extent *e = &list->v[i];
        if (e->first > address) {
            *next = *next && *next < e->first ? *next : e->first;
        } else {
            found.p = e->bytes + (address - e->first);
            found.n = (size_t)(e->last - address) + 1;
            return found;
        }
    }
    return found;
}

struct tl_bytes tl_version_at(const struct tl_version *version, unsigned space, uint64_t address)
{
    return look_up(version, space, address, &(uint64_t){0});
}

struct tl_bytes tl_image_at(const struct tl_image *image, unsigned space, uint64_t address)
{
    return tl_version_at(&image->versions[0], space, address);
}

struct tl_bytes tl_image_view_at(const struct tl_image *image, uint64_t view, unsigned space,
                                 uint64_t address)
{
    const struct tl_version *versions[TL_BINDINGS];
    const unsigned n = tl_view_versions(image, view, versions);
    struct tl_bytes found = {NULL, 0};
    uint64_t next = 0; /* where what counts more than what is found begins */
    for (unsigned i = 0; !found.n && i < n; i++) {
        uint64_t begins = next;
        found = look_up(versions[i], space, address, &begins);
        if (!found.n)
            next = begins;
    }
    if (next && found.n > next - address)
        found.n = (size_t)(next - address);
    return found;
}

/* Narrow *first..*last around `address` to what `version` has nothing at. */
static void narrow(const struct tl_version *version, unsigned space, uint64_t address,
                   uint64_t *first, uint64_t *last)
{
    for (size_t bit = 0; bit < TL_SPACE_BITS; bit++) {
        const struct tl_extents *const list = &version->extents[bit];
        if (!(space >> bit & 1))
            continue;
        const size_t i = lower_bound(list, address);
        if (i > 0 && list->v[i - 1].last >= *first)
            *first = list->v[i - 1].last + 1;
        if (i < list->n && list->v[i].first <= *last)
            *last = list->v[i].first - 1;
    }
}

void tl_image_view_void(const struct tl_image *image, uint64_t view, unsigned space,
                        uint64_t address, uint64_t *first, uint64_t *last)
{
    const struct tl_version *versions[TL_BINDINGS];
    const unsigned n = tl_view_versions(image, view, versions);
    *first = 0;
    *last = UINT64_MAX;
    for (unsigned i = 0; i < n; i++)
        narrow(versions[i], space, address, first, last);
}
