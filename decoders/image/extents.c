/* SPDX-License-Identifier: MIT */
/*
 * Converts the added regions to a list of extents per address space.
 *
 * Each space is painted (paint.c). Adjacent extents with the same period are then joined into one
 * piece of memory, because code runs across the border between two dumps and an instruction may
 * straddle it. Lookup is a binary search by address, followed by a backward scan past extents not
 * present at the time: usually none, or earlier contents of the same place.
 */
#include "base/buf.h"
#include "base/search.h"
#include "image/image_parts.h"

#include <stdlib.h>

/* Index of the first extent that begins after `address`. */
static size_t upper_bound(const struct tl_extents *list, uint64_t address)
{
    return tl_count_upto(TL_KEYS(list->v, first), list->n, address);
}

static bool is_there(const struct tl_extent *e, uint64_t time)
{
    return e->span.from <= time && time < e->span.until;
}

/* The extent that contains `address` at `time`, or NULL. */
static const struct tl_extent *find(const struct tl_extents *list, uint64_t address, uint64_t time)
{
    for (size_t i = upper_bound(list, address); i-- > 0 && list->v[i].most >= address;)
        if (list->v[i].last >= address && is_there(&list->v[i], time))
            return &list->v[i];
    return NULL;
}

/* The first extent after `address` that is present at `time`, or NULL. */
static const struct tl_extent *find_after(const struct tl_extents *list, uint64_t address,
                                          uint64_t time)
{
    for (size_t i = upper_bound(list, address); i < list->n; i++)
        if (is_there(&list->v[i], time))
            return &list->v[i];
    return NULL;
}

/* ---- joining ------------------------------------------------------------------------------- */

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int order_spans(const struct tl_image_span *a, const struct tl_image_span *b)
{
    const int differ = order(a->from, b->from);
    return differ ? differ : order(a->until, b->until);
}

static int by_span(const void *a, const void *b)
{
    const struct tl_extent *const x = a, *const y = b;
    const int differ = order_spans(&x->span, &y->span);
    return differ ? differ : order(x->first, y->first);
}

static int by_address(const void *a, const void *b)
{
    const struct tl_extent *const x = a, *const y = b;
    const int differ = order(x->first, y->first);
    return differ ? differ : order_spans(&x->span, &y->span);
}

static bool touch(const struct tl_extent *a, const struct tl_extent *b)
{
    return a->last + 1 == b->first && b->first != 0 && order_spans(&a->span, &b->span) == 0;
}

static size_t extent_size(const struct tl_extent *e)
{
    return (size_t)(e->last - e->first) + 1;
}

/* Do these bytes equal those of a run of extents? */
static bool is_run(const uint8_t *p, const struct tl_extent *run, size_t n)
{
    size_t at = 0, k = 0;
    while (k < n && memcmp(p + at, run[k].bytes, extent_size(&run[k])) == 0)
        at += extent_size(&run[k++]);
    return k == n;
}

/* Find joined bytes for exactly this run of extents in another space. */
static const uint8_t *joined_in(const struct tl_extents *list, const struct tl_extent *run,
                                size_t n)
{
    for (size_t i = upper_bound(list, run[0].first); i-- > 0 && list->v[i].first == run[0].first;)
        if (list->v[i].last == run[n - 1].last && is_run(list->v[i].bytes, run, n))
            return list->v[i].bytes;
    return NULL;
}

static const uint8_t *join(struct tl_image *image, const struct tl_layer *layer, size_t space,
                           const struct tl_extent *run, size_t n)
{
    const uint8_t *p = NULL;
    for (size_t s = 0; !p && s < space; s++)
        p = joined_in(&layer->extents[s], run, n);
    if (p)
        return p;
    const size_t size = (size_t)(run[n - 1].last - run[0].first) + 1;
    uint8_t *memory = malloc(size);
    if (!memory || tl_image_own(image, memory, size) < 0)
        return NULL;
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        memcpy(memory + at, run[k].bytes, extent_size(&run[k]));
        at += extent_size(&run[k]);
    }
    return memory;
}

static int join_touching(struct tl_image *image, struct tl_layer *layer, size_t space)
{
    struct tl_extents *list = &layer->extents[space];
    size_t kept = 0;
    if (list->n == 0)
        return TL_OK;
    qsort(list->v, list->n, sizeof *list->v, by_span);
    for (size_t i = 0, end; i < list->n; i = end) {
        struct tl_extent whole = list->v[i];
        for (end = i + 1; end < list->n && touch(&list->v[end - 1], &list->v[end]); end++)
            ;
        if (end > i + 1) {
            whole.last = list->v[end - 1].last;
            whole.bytes = join(image, layer, space, &list->v[i], end - i);
            if (!whole.bytes)
                return TL_NOMEM;
        }
        list->v[kept++] = whole;
    }
    list->n = kept;
    qsort(list->v, list->n, sizeof *list->v, by_address);
    for (size_t i = 0; i < list->n; i++) {
        const uint64_t before = i > 0 ? list->v[i - 1].most : 0;
        list->v[i].most = list->v[i].last > before ? list->v[i].last : before;
    }
    return TL_OK;
}

/* The lowest space in which the layer has exactly the same regions as in `space`. */
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

static int resolve_layer(struct tl_image *image, struct tl_layer *layer)
{
    for (size_t space = 0; space < TL_SPACE_BITS; space++) {
        const size_t same = same_space(layer, space);
        if (same < space) {
            layer->extents[space] = layer->extents[same];
            continue;
        }
        layer->owners |= (uint8_t)(1u << space);
        int rc = tl_image_paint(layer, space);
        if (rc == TL_OK)
            rc = join_touching(image, layer, space);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

int tl_image_resolve(struct tl_image *image)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < image->n_layers; i++)
        rc = resolve_layer(image, &image->layers[i]);
    return rc;
}

/* ---- lookup -------------------------------------------------------------------------------- */

/*
 * The bytes at `address`; *next is set to the lowest address after it known to be mapped (0: none).
 */
static struct tl_bytes look_up(const struct tl_image *image, const struct tl_version *version,
                               unsigned space, uint64_t address, uint64_t *next)
{
    const struct tl_layer *const layer = &image->layers[version->layer];
    const uint64_t time = version->span.from;
    for (size_t bit = 0; bit < TL_SPACE_BITS; bit++) {
        if (!(space >> bit & 1))
            continue;
        const struct tl_extent *const e = find(&layer->extents[bit], address, time);
        if (e)
            return (struct tl_bytes){e->bytes + (address - e->first),
                                     (size_t)(e->last - address) + 1};
        const struct tl_extent *const after = find_after(&layer->extents[bit], address, time);
        if (after && (*next == 0 || after->first < *next))
            *next = after->first;
    }
    return (struct tl_bytes){NULL, 0};
}

struct tl_bytes tl_version_at(const struct tl_image *image, const struct tl_version *version,
                              unsigned space, uint64_t address)
{
    return look_up(image, version, space, address, &(uint64_t){0});
}

struct tl_bytes tl_image_at(const struct tl_image *image, unsigned space, uint64_t address)
{
    return tl_version_at(image, &image->versions[0], space, address);
}

struct tl_bytes tl_image_view_at(const struct tl_image *image, uint64_t view, unsigned space,
                                 uint64_t address)
{
    const struct tl_version *versions[TL_BINDINGS];
    const unsigned n = tl_view_versions(image, view, versions);
    struct tl_bytes found = {NULL, 0};
    uint64_t next = 0; /* start of memory with higher precedence than what was found */
    for (unsigned i = 0; !found.n && i < n; i++) {
        uint64_t begins = next;
        found = look_up(image, versions[i], space, address, &begins);
        if (!found.n)
            next = begins;
    }
    if (next && found.n > next - address)
        found.n = (size_t)(next - address);
    return found;
}

/* Narrow *first..*last around `address` to what the version does not map. */
static void narrow(const struct tl_image *image, const struct tl_version *version, unsigned space,
                   uint64_t address, uint64_t *first, uint64_t *last)
{
    const uint64_t time = version->span.from;
    for (size_t bit = 0; bit < TL_SPACE_BITS; bit++) {
        const struct tl_extents *const list = &image->layers[version->layer].extents[bit];
        if (!(space >> bit & 1))
            continue;
        for (size_t i = upper_bound(list, address); i-- > 0 && list->v[i].most >= *first;)
            if (list->v[i].last >= *first && is_there(&list->v[i], time))
                *first = list->v[i].last + 1;
        const struct tl_extent *const after = find_after(list, address, time);
        if (after && after->first <= *last)
            *last = after->first - 1;
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
        narrow(image, versions[i], space, address, first, last);
}
