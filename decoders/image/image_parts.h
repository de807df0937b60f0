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
    struct tl_image_span span;
    const uint8_t *bytes; /* owned by the image */
    unsigned space;
};

/* A function in a file, or in a part of it. */
struct tl_part_symbol {
    uint64_t offset; /* in the part, or in the file */
    uint64_t size;
    const char *name; /* owned by the image */
    uint32_t order;   /* in the file's table */
};

/* The functions of a file of which parts are mapped. */
struct tl_file_symbols {
    const char *file;         /* its name, owned by the image */
    struct tl_part_symbol *v; /* owned; by offset, then in the order of the table */
    size_t n, cap;
};

/* A part of a file that is kept once. */
struct tl_image_part {
    const char *name;
    uint64_t offset, length; /* as given */
    struct tl_bytes bytes;
    struct tl_part_symbol *symbols; /* owned */
    size_t n_symbols, cap_symbols;
};

/* A piece of one space after overlaps are resolved: of its addresses, at its times, nothing else is
 * there. Bytes are owned by the image. */
struct tl_extent {
    uint64_t first;
    uint64_t last;
    struct tl_image_span span;
    const uint8_t *bytes; /* of `first` */
    uint64_t most;        /* the largest `last` of those up to here */
};

struct tl_extents {
    struct tl_extent *v; /* ascending by `first` */
    size_t n;
    size_t cap;
};

struct tl_symbols {
    struct tl_symbol *v; /* ascending by address once sorted */
    size_t n;
    size_t cap;
};

/* What is given for one context. */
struct tl_layer {
    struct tl_image_context context;
    uint32_t was;              /* its index before tl_layers_sort() */
    struct tl_region *regions; /* in the order given */
    size_t n_regions;
    size_t cap_regions;
    /* From freeze on: */
    size_t version; /* the first of its versions, which are ascending by time */
    size_t n_versions;
    struct tl_extents extents[TL_SPACE_BITS]; /* by space bit; one list may be of several … */
    uint8_t owners;                           /* … and is freed with the space that has its bit */
    uint32_t *symbols;                        /* indices, ascending by address */
    size_t n_symbols;
};

/* A layer between two of its changes, or for ever. */
struct tl_version {
    struct tl_image_span span;
    uint32_t layer;
};

/* Layers sorted by context are in these groups. */
enum tl_binding {
    TL_BOUND_TO_NONE,
    TL_BOUND_TO_VMID,
    TL_BOUND_TO_CONTEXT_ID,
    TL_BOUND_TO_BOTH,
    TL_BINDINGS
};

#define TL_LAYERS_MAX ((size_t)1 << 20)

struct tl_image {
    struct tl_layer *layers; /* the first is of no context; ascending by context once frozen */
    size_t n_layers;
    size_t cap_layers;
    size_t layer;              /* the one that regions are added to, … */
    struct tl_image_span span; /* … and when; within the image, `until` is UINT64_MAX for the end */
    struct tl_version *versions; /* of the first layer, of the second, … */
    size_t n_versions;
    size_t group[TL_BINDINGS + 1];        /* the first layer of each binding */
    uint64_t group_versions[TL_BINDINGS]; /* versions of all layers of each binding */
    uint64_t *changes;                    /* ascending: when any layer changes */
    size_t n_changes;
    struct tl_symbols symbols;
    struct tl_image_part *parts;
    size_t n_parts, cap_parts;
    struct tl_file_symbols *files; /* that parts are of */
    size_t n_files, cap_files;
    void **owned; /* memory freed with the image: regions, string tables, joined extents, names */
    size_t n_owned;
    size_t cap_owned;
    bool frozen;
    uint16_t machine; /* e_machine of the first ELF file, 0: none */
};

/* Hand `memory` over to the image. On TL_NOMEM it is freed at once. */
TL_MUST_USE int tl_image_own(struct tl_image *image, void *memory);

/*
 * Put the layers into the order that tl_image_view() searches, symbols follow theirs; make their
 * versions, without what is in them. TL_NOMEM, TL_LIMIT.
 */
TL_MUST_USE int tl_layers_sort(struct tl_image *image);

void tl_layers_fini(struct tl_image *image);

/* The versions that a view consists of, the one that counts first in front. Returns how many. */
unsigned tl_view_versions(const struct tl_image *image, uint64_t view,
                          const struct tl_version *versions[static TL_BINDINGS]);

/* Is something with `span` there in the version? Its span does not begin or end within it. */
static inline bool tl_version_has(const struct tl_version *version, struct tl_image_span span)
{
    return span.from <= version->span.from && version->span.from < span.until;
}

/* Fill each layer's extents from its regions. TL_NOMEM. */
TL_MUST_USE int tl_image_resolve(struct tl_image *image);

/* Bytes of one version, as tl_image_at(). */
struct tl_bytes tl_version_at(const struct tl_image *image, const struct tl_version *version,
                              unsigned space, uint64_t address);

/* Add a symbol where and when regions are added; `name` must live as long as the image. */
TL_MUST_USE int tl_symbols_add(struct tl_image *image, uint64_t address, uint64_t size,
                               unsigned space, const char *name);

/* The functions that an ELF file says lie in the part, to the part. What is no ELF file has none.
 * TL_NOMEM. */
TL_MUST_USE int tl_elf_part_symbols(struct tl_image *image, struct tl_image_part *part,
                                    struct tl_bytes file);

/* Sort by address, keep one per address, layer and time, make up missing sizes, index. TL_NOMEM. */
TL_MUST_USE int tl_symbols_sort(struct tl_image *image);

#endif
