/* SPDX-License-Identifier: MIT */
/*
 * Determines which regions are visible in which context, and when.
 *
 * A layer holds everything bound to one context. It is divided into versions wherever one of its
 * regions or symbols begins or ends, so each version's memory does not change. A view consists of
 * one version of each applicable layer, encoded as one number with a digit per binding, see
 * tl_image_view().
 */
#include "base/buf.h"
#include "base/search.h"
#include "image/image_parts.h"

#include <stdlib.h>

/* enum tl_binding: higher means more specific. */
static unsigned rank(const struct tl_image_context *c)
{
    return c->has_context_id * (unsigned)TL_BOUND_TO_CONTEXT_ID +
           c->has_vmid * (unsigned)TL_BOUND_TO_VMID;
}

int tl_context_order(const struct tl_image_context *a, const struct tl_image_context *b)
{
    if (rank(a) != rank(b))
        return rank(a) < rank(b) ? -1 : 1;
    if (a->has_context_id && a->context_id != b->context_id)
        return a->context_id < b->context_id ? -1 : 1;
    if (a->has_vmid && a->vmid != b->vmid)
        return a->vmid < b->vmid ? -1 : 1;
    return 0;
}

static int order_layers(const void *a, const void *b)
{
    return tl_context_order(&((const struct tl_layer *)a)->context,
                            &((const struct tl_layer *)b)->context);
}

/* ---- freezing ------------------------------------------------------------------------------ */

static int sort(struct tl_image *image)
{
    uint32_t *const now = malloc(image->n_layers * sizeof *now); /* new index by old index */
    if (!now)
        return TL_NOMEM;
    for (size_t i = 0; i < image->n_layers; i++)
        image->layers[i].was = (uint32_t)i;
    qsort(image->layers, image->n_layers, sizeof *image->layers, order_layers);
    for (size_t i = 0; i < image->n_layers; i++)
        now[image->layers[i].was] = (uint32_t)i;
    for (size_t i = 0; i < image->symbols.n; i++)
        image->symbols.v[i].layer = now[image->symbols.v[i].layer];
    free(now);
    for (size_t i = 0, binding = 0; binding <= TL_BINDINGS; binding++) {
        while (i < image->n_layers && rank(&image->layers[i].context) < binding)
            i++;
        image->group[binding] = i;
    }
    return TL_OK;
}

/* A time at which a layer changes. */
struct change {
    uint64_t time;
    uint32_t layer;
};

struct changes {
    struct change *v;
    size_t n, cap;
};

static int order_changes(const void *a, const void *b)
{
    const struct change *const x = a, *const y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->time > y->time) - (x->time < y->time);
}

static int order_times(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int add_span(struct changes *changes, size_t layer, struct tl_image_span span)
{
    const uint64_t times[] = {span.from, span.until};
    for (size_t i = 0; i < 2; i++) {
        if (times[i] == 0 || times[i] == UINT64_MAX)
            continue;
        if (tl_grow(&changes->v, &changes->cap, changes->n + 1, sizeof *changes->v) < 0)
            return TL_NOMEM;
        changes->v[changes->n++] = (struct change){times[i], (uint32_t)layer};
    }
    return TL_OK;
}

/* Collect all changes, sorted by layer and time, without duplicates. */
static int find_changes(const struct tl_image *image, struct changes *changes)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < image->n_layers; i++)
        for (size_t k = 0; rc == TL_OK && k < image->layers[i].n_regions; k++)
            rc = add_span(changes, i, image->layers[i].regions[k].span);
    for (size_t i = 0; rc == TL_OK && i < image->symbols.n; i++)
        rc = add_span(changes, image->symbols.v[i].layer, image->symbols.v[i].span);
    if (rc < 0 || changes->n == 0)
        return rc;
    qsort(changes->v, changes->n, sizeof *changes->v, order_changes);
    size_t kept = 1;
    for (size_t i = 1; i < changes->n; i++)
        if (order_changes(&changes->v[i], &changes->v[kept - 1]) != 0)
            changes->v[kept++] = changes->v[i];
    changes->n = kept;
    return TL_OK;
}

/* Divide each layer into versions. */
static int make_versions(struct tl_image *image, const struct changes *changes)
{
    size_t at = 0; /* index in the changes */
    image->versions = calloc(image->n_layers + changes->n, sizeof *image->versions);
    if (!image->versions)
        return TL_NOMEM;
    for (size_t i = 0; i < image->n_layers; i++) {
        struct tl_layer *const layer = &image->layers[i];
        layer->version = image->n_versions;
        struct tl_version *version = &image->versions[image->n_versions++];
        *version = (struct tl_version){.span = {0, UINT64_MAX}, .layer = (uint32_t)i};
        for (; at < changes->n && changes->v[at].layer == i; at++) {
            version->span.until = changes->v[at].time;
            version = &image->versions[image->n_versions++];
            *version = (struct tl_version){.span = {changes->v[at].time, UINT64_MAX},
                                           .layer = (uint32_t)i};
        }
        layer->n_versions = image->n_versions - layer->version;
        image->group_versions[rank(&layer->context)] += layer->n_versions;
    }
    return TL_OK;
}

/* Collect the times at which any layer changes. */
static int list_times(struct tl_image *image, const struct changes *changes)
{
    if (changes->n == 0)
        return TL_OK;
    uint64_t *const times = image->changes = malloc(changes->n * sizeof *times);
    if (!times)
        return TL_NOMEM;
    for (size_t i = 0; i < changes->n; i++)
        times[i] = changes->v[i].time;
    qsort(times, changes->n, sizeof *times, order_times);
    image->n_changes = 1;
    for (size_t i = 1; i < changes->n; i++)
        if (times[i] != times[image->n_changes - 1])
            times[image->n_changes++] = times[i];
    return TL_OK;
}

/* Can all views be encoded as numbers? */
static bool has_room(const struct tl_image *image)
{
    uint64_t views = image->group_versions[TL_BOUND_TO_NONE];
    for (unsigned binding = TL_BOUND_TO_VMID; binding < TL_BINDINGS; binding++) {
        if (views > (TL_IMAGE_MACHINE - 1) / (image->group_versions[binding] + 1))
            return false;
        views *= image->group_versions[binding] + 1;
    }
    return true;
}

int tl_layers_sort(struct tl_image *image)
{
    struct changes changes = {0};
    int rc = sort(image);
    if (rc == TL_OK)
        rc = find_changes(image, &changes);
    if (rc == TL_OK)
        rc = make_versions(image, &changes);
    if (rc == TL_OK)
        rc = list_times(image, &changes);
    if (rc == TL_OK && !has_room(image))
        rc = TL_LIMIT;
    free(changes.v);
    return rc;
}

void tl_layers_fini(struct tl_image *image)
{
    for (size_t i = 0; i < image->n_layers; i++) {
        struct tl_layer *const layer = &image->layers[i];
        free(layer->regions);
        free(layer->symbols);
        for (size_t k = 0; k < TL_SPACE_BITS; k++)
            if (layer->owners >> k & 1)
                free(layer->extents[k].v);
    }
    free(image->layers);
    free(image->versions);
    free(image->changes);
}

/* ---- adding -------------------------------------------------------------------------------- */

bool tl_image_is_empty(const struct tl_image *image)
{
    for (size_t i = 0; i < image->n_layers; i++)
        if (image->layers[i].n_regions > 0)
            return false;
    return true;
}

int tl_image_bind(struct tl_image *image, const struct tl_image_context *context)
{
    const struct tl_image_context wanted = context ? *context : (struct tl_image_context){0};
    const int64_t known = tl_known_layer(image, &wanted);
    if (known >= 0)
        image->layer = (size_t)known;
    if (known >= 0)
        return TL_OK;
    if (image->n_layers == TL_LAYERS_MAX || image->frozen)
        return TL_LIMIT;
    if (tl_grow(&image->layers, &image->cap_layers, image->n_layers + 1, sizeof *image->layers) <
            0 ||
        tl_known_add_layer(image, &wanted, image->n_layers) < 0)
        return TL_NOMEM;
    image->layer = image->n_layers++;
    image->layers[image->layer] = (struct tl_layer){.context = wanted};
    return TL_OK;
}

/* ---- views --------------------------------------------------------------------------------- */

static bool is_before(const void *layer, const void *context)
{
    return tl_context_order(&((const struct tl_layer *)layer)->context, context) < 0;
}

/* The layer of exactly this context, or NULL. */
static const struct tl_layer *find(const struct tl_image *image,
                                   const struct tl_image_context *context)
{
    const unsigned binding = rank(context);
    const struct tl_layer *const v = image->layers + image->group[binding];
    const size_t n = image->group[binding + 1] - image->group[binding];
    const size_t i = tl_count_before(v, sizeof *v, n, is_before, context);
    return i < n && tl_context_order(&v[i].context, context) == 0 ? &v[i] : NULL;
}

/* The first version of a binding. */
static size_t first_version(const struct tl_image *image, unsigned binding)
{
    const size_t layer = image->group[binding];
    return layer < image->n_layers ? image->layers[layer].version : image->n_versions;
}

/* Number of the version of a layer at `time`, relative to its binding's first. */
static uint64_t version_at(const struct tl_image *image, const struct tl_layer *layer,
                           uint64_t time, uint64_t *until)
{
    const struct tl_version *const v = image->versions + layer->version;
    const size_t begun = tl_count_upto(TL_KEYS(v, span.from), layer->n_versions, time);
    const size_t last = begun > 0 ? begun - 1 : 0;
    if (v[last].span.until < *until)
        *until = v[last].span.until;
    return layer->version + last - first_version(image, rank(&layer->context));
}

/*
 * Digits of a view, lowest first: the version of the first layer, and for each other binding one
 * plus the version of the layer bound to that context, or 0 if there is none.
 */
uint64_t tl_image_view(const struct tl_image *image, const struct tl_image_context *context,
                       uint64_t time, uint64_t *until)
{
    uint64_t unused;
    uint64_t *const end = until ? until : &unused;
    *end = UINT64_MAX;
    if (image->n_versions == 1)
        return 0;
    uint64_t view = 0;
    for (unsigned binding = TL_BOUND_TO_BOTH; binding > TL_BOUND_TO_NONE; binding--) {
        struct tl_image_context bound = *context;
        bound.has_context_id = binding & TL_BOUND_TO_CONTEXT_ID;
        bound.has_vmid = binding & TL_BOUND_TO_VMID;
        const bool known = (context->has_context_id || !bound.has_context_id) &&
                           (context->has_vmid || !bound.has_vmid);
        const struct tl_layer *const layer = known ? find(image, &bound) : NULL;
        view *= image->group_versions[binding] + 1;
        view += layer ? version_at(image, layer, time, end) + 1 : 0;
    }
    return view * image->group_versions[TL_BOUND_TO_NONE] +
           version_at(image, &image->layers[0], time, end);
}

unsigned tl_view_versions(const struct tl_image *image, uint64_t view,
                          const struct tl_version *versions[static TL_BINDINGS])
{
    const uint64_t always = image->group_versions[TL_BOUND_TO_NONE];
    const struct tl_version *found[TL_BINDINGS] = {0};
    const bool is_machine = view & TL_IMAGE_MACHINE;
    unsigned n = 0;
    view &= ~TL_IMAGE_MACHINE;
    found[TL_BOUND_TO_NONE] = &image->versions[view % always];
    view /= always;
    for (unsigned binding = TL_BOUND_TO_VMID; view > 0 && binding < TL_BINDINGS; binding++) {
        const uint64_t digits = image->group_versions[binding] + 1, digit = view % digits;
        if (digit > 0)
            found[binding] = &image->versions[first_version(image, binding) + digit - 1];
        view /= digits;
    }
    for (unsigned binding = TL_BINDINGS; binding-- > 0;)
        if (found[binding] && (!is_machine || binding & TL_BOUND_TO_VMID))
            versions[n++] = found[binding];
    return n;
}

uint64_t tl_image_last_change(const struct tl_image *image, uint64_t time)
{
    const size_t n =
        tl_count_upto(image->changes, sizeof *image->changes, 0, image->n_changes, time);
    return n > 0 ? image->changes[n - 1] : 0;
}
