/* SPDX-License-Identifier: MIT */
/*
 * Finds what an image already has, while it is built: contexts, regions, parts of files. Hundreds
 * of thousands may be added, of any processes, so each is found in a tree (tsearch(3)).
 */
#include "image/image_parts.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Add a copy to a tree, unless there is an equal one. Returns 1: there is; 0; TL_NOMEM. */
static int put(void **tree, const void *one, size_t size, int (*order)(const void *, const void *))
{
    void *const copy = malloc(size);
    if (!copy)
        return TL_NOMEM;
    memcpy(copy, one, size);
    void *const *const kept = tsearch(copy, tree, order);
    if (kept && *kept == copy)
        return TL_OK;
    free(copy);
    return kept ? 1 : TL_NOMEM;
}

static int order_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* ---- layers -------------------------------------------------------------------------------- */

struct layer {
    struct tl_image_context context;
    size_t index;
};

static int by_context(const void *a, const void *b)
{
    return tl_context_order(a, b);
}

int64_t tl_known_layer(const struct tl_image *image, const struct tl_image_context *context)
{
    struct layer *const *const found = tfind(context, &image->known_layers, by_context);
    return found ? (int64_t)(*found)->index : -1;
}

int tl_known_add_layer(struct tl_image *image, const struct tl_image_context *context, size_t index)
{
    const struct layer layer = {*context, index};
    return put(&image->known_layers, &layer, sizeof layer, by_context);
}

/* ---- regions ------------------------------------------------------------------------------- */

struct region {
    struct tl_region is;
    size_t layer;
};

static int by_region(const void *a, const void *b)
{
    const struct region *const x = a, *const y = b;
    const uint64_t keys[][2] = {{x->layer, y->layer},
                                {x->is.first, y->is.first},
                                {x->is.last, y->is.last},
                                {x->is.space, y->is.space},
                                {x->is.span.from, y->is.span.from},
                                {x->is.span.until, y->is.span.until}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i][0] != keys[i][1])
            return order_u64(keys[i][0], keys[i][1]);
    return x->is.bytes == y->is.bytes
               ? 0
               : memcmp(x->is.bytes, y->is.bytes, (size_t)(x->is.last - x->is.first) + 1);
}

int tl_known_region(struct tl_image *image, const struct tl_region *region)
{
    const struct region one = {*region, image->layer};
    return put(&image->known_regions, &one, sizeof one, by_region);
}

/* ---- parts --------------------------------------------------------------------------------- */

struct part {
    const char *name;
    uint64_t offset, length;
    size_t index;
};

static int by_part(const void *a, const void *b)
{
    const struct part *const x = a, *const y = b;
    if (x->offset != y->offset || x->length != y->length)
        return x->offset != y->offset ? order_u64(x->offset, y->offset)
                                      : order_u64(x->length, y->length);
    return strcmp(x->name, y->name);
}

static struct part *find_part(const struct tl_image *image, const struct tl_image_part *part)
{
    const struct part wanted = {part->name, part->offset, part->length, 0};
    struct part *const *const found = tfind(&wanted, &image->known_parts, by_part);
    return found ? *found : NULL;
}

int64_t tl_known_part(const struct tl_image *image, const struct tl_image_part *part)
{
    const struct part *const found = find_part(image, part);
    return found ? (int64_t)found->index : -1;
}

int tl_known_add_part(struct tl_image *image, size_t index)
{
    const struct tl_image_part *const p = &image->parts[index];
    struct part *const found = find_part(image, p);
    const struct part one = {p->name, p->offset, p->length, index};
    if (found)
        *found = one;
    return found ? TL_OK : put(&image->known_parts, &one, sizeof one, by_part);
}

/* ---- files --------------------------------------------------------------------------------- */

struct file {
    const char *name;
    size_t index;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

int64_t tl_known_file(const struct tl_image *image, const char *name)
{
    const struct file wanted = {name, 0};
    struct file *const *const found = tfind(&wanted, &image->known_files, by_name);
    return found ? (int64_t)(*found)->index : -1;
}

int tl_known_add_file(struct tl_image *image, const char *name, size_t index)
{
    const struct file one = {name, index};
    return put(&image->known_files, &one, sizeof one, by_name);
}

void tl_known_fini(struct tl_image *image)
{
    tdestroy(image->known_layers, free);
    tdestroy(image->known_regions, free);
    tdestroy(image->known_parts, free);
    tdestroy(image->known_files, free);
    image->known_layers = image->known_regions = NULL;
    image->known_parts = image->known_files = NULL;
}
