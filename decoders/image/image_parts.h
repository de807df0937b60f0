/* SPDX-License-Identifier: MIT */
/* What the files of the image module share; not for others. */
#ifndef TL_IMAGE_IMAGE_PARTS_H
#define TL_IMAGE_IMAGE_PARTS_H

#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>

#define TL_SPACE_BITS 8

/* A mapped piece as it was given. */
struct tl_region {
    uint64_t first;
    uint64_t last; /* inclusive, so that the address space's end needs no care */
    uint8_t *bytes;
    unsigned space;
};

/* A piece of one space after overlaps are resolved; bytes are owned by the image. */
struct tl_extent {
    uint64_t first;
    uint64_t last;
    const uint8_t *bytes; /* of `first` */
};

struct tl_extents {
    struct tl_extent *v; /* ascending, not overlapping */
    size_t n;
    size_t cap;
};

struct tl_symbols {
    struct tl_symbol *v; /* ascending by address once sorted */
    size_t n;
    size_t cap;
};

/* Regions that are there together: always, or in a context. */
struct tl_layer {
    struct tl_image_context context;
    uint32_t was;              /* its index before tl_layers_sort() */
    struct tl_region *regions; /* in the order given */
    size_t n_regions;
    size_t cap_regions;
    struct tl_extents extents[TL_SPACE_BITS]; /* by space bit, filled by freeze */
    uint32_t *symbols;                        /* indices, ascending by address; filled by freeze */
    size_t n_symbols;
};

/* A view is the indices of the layers bound to both identifiers, the context ID, the VMID. */
#define TL_VIEW_BITS  20
#define TL_LAYERS_MAX ((size_t)1 << TL_VIEW_BITS)

struct tl_image {
    struct tl_layer *layers; /* the first is of no context; ascending by context once frozen */
    size_t n_layers;
    size_t cap_layers;
    size_t layer; /* the one that regions are added to */
    struct tl_symbols symbols;
    void **owned; /* memory freed with the image: string tables, joined extents */
    size_t n_owned;
    size_t cap_owned;
    bool frozen;
    uint16_t machine; /* e_machine of the first ELF file, 0: none */
};

/* Hand `memory` over to the image. On TL_NOMEM it is freed at once. */
TL_MUST_USE int tl_image_own(struct tl_image *image, void *memory);

/* Fill each layer's extents from its regions. TL_NOMEM. */
TL_MUST_USE int tl_image_resolve(struct tl_image *image);

/* Put the layers into the order that tl_image_view() searches; symbols follow theirs. TL_NOMEM. */
TL_MUST_USE int tl_layers_sort(struct tl_image *image);

void tl_layers_fini(struct tl_image *image);

/* Bytes of one layer, as tl_image_at(). */
struct tl_bytes tl_layer_at(const struct tl_layer *layer, unsigned space, uint64_t address);

/* Add a symbol of the layer that regions are added to; `name` must live as long as the image. */
TL_MUST_USE int tl_symbols_add(struct tl_image *image, uint64_t address, uint64_t size,
                               unsigned space, const char *name);

/* Sort by address, keep one per address and layer, make up missing sizes, index. TL_NOMEM. */
TL_MUST_USE int tl_symbols_sort(struct tl_image *image);

#endif
