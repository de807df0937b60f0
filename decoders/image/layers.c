/* SPDX-License-Identifier: MIT */
/* Which regions are there in which context. */
#include "base/buf.h"
#include "image/image_parts.h"

#include <stdlib.h>

/* Nothing, VMID, context ID, both: the more special, the higher. */
static unsigned rank(const struct tl_image_context *c)
{
    return c->has_context_id * 2u + c->has_vmid;
}

static int order(const struct tl_image_context *a, const struct tl_image_context *b)
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
    return order(&((const struct tl_layer *)a)->context, &((const struct tl_layer *)b)->context);
}

int tl_layers_sort(struct tl_image *image)
{
    uint32_t *const now = malloc(image->n_layers * sizeof *now); /* by index before */
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
    return TL_OK;
}

void tl_layers_fini(struct tl_image *image)
{
    for (size_t i = 0; i < image->n_layers; i++) {
        struct tl_layer *layer = &image->layers[i];
        for (size_t k = 0; k < layer->n_regions; k++)
            free(layer->regions[k].bytes);
        free(layer->regions);
        free(layer->symbols);
        for (size_t k = 0; k < TL_SPACE_BITS; k++)
            free(layer->extents[k].v);
    }
    free(image->layers);
}

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
    for (size_t i = 0; i < image->n_layers; i++) {
        if (order(&image->layers[i].context, &wanted) == 0) {
            image->layer = i;
            return TL_OK;
        }
    }
    if (image->n_layers == TL_LAYERS_MAX || image->frozen)
        return TL_LIMIT;
    if (tl_grow(&image->layers, &image->cap_layers, image->n_layers + 1, sizeof *image->layers) < 0)
        return TL_NOMEM;
    image->layer = image->n_layers++;
    image->layers[image->layer] = (struct tl_layer){.context = wanted};
    return TL_OK;
}

/* Index of the layer of exactly this context, 0: there is none. */
static uint64_t find(const struct tl_image *image, const struct tl_image_context *context)
{
    size_t lo = 1, hi = image->n_layers;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (order(&image->layers[mid].context, context) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < image->n_layers && order(&image->layers[lo].context, context) == 0 ? lo : 0;
}

uint64_t tl_image_view(const struct tl_image *image, const struct tl_image_context *context)
{
    if (image->n_layers == 1)
        return 0;
    const struct tl_image_context process = {.context_id = context->context_id,
                                             .has_context_id = true};
    const struct tl_image_context machine = {.vmid = context->vmid, .has_vmid = true};
    uint64_t view = 0;
    if (context->has_context_id && context->has_vmid)
        view = find(image, context);
    view = view << TL_VIEW_BITS | (context->has_context_id ? find(image, &process) : 0);
    return view << TL_VIEW_BITS | (context->has_vmid ? find(image, &machine) : 0);
}
