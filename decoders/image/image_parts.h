/* SPDX-License-Identifier: MIT */
/* Shared by the files of the image module; private to this folder. */
#ifndef TL_IMAGE_IMAGE_PARTS_H
#define TL_IMAGE_IMAGE_PARTS_H

#include "image/image.h"
#include "image/pool.h"
#include "image/types.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define TL_SPACE_BITS 8

/* A mapped region as it was added. */
struct tl_region {
    uint64_t first;
    uint64_t last; /* inclusive, so that the end of the address space needs no special case */
    struct tl_image_span span;
    const uint8_t *bytes; /* owned by the image */
    unsigned space;
};

/* A function in a file or a part of it. */
struct tl_part_symbol {
    uint64_t offset;   /* in the part or the file; or its address */
    uint64_t size;     /* 0: not known */
    uint64_t max_size; /* the size it can have: up to the end of its section and file */
    const char *name;  /* owned by the image */
    uint32_t order;    /* index in the file's symbol table */
    uint8_t rank;      /* among names for the same address the lowest is used */
};

/* The functions of a file parts of which are mapped. */
struct tl_file_symbols {
    const char *file;         /* its name; owned by the image */
    struct tl_part_symbol *v; /* owned; sorted by offset, then symbol table order */
    size_t n, cap;
};

/* A file part that is stored once. */
struct tl_image_part {
    const char *name;
    uint64_t offset, length; /* as passed by the caller */
    struct tl_bytes bytes;
    struct tl_part_symbol *symbols; /* owned */
    size_t n_symbols, cap_symbols;
};

/* A piece of one address space after overlaps are resolved: exclusive for its addresses and its
 * period. Bytes are owned by the image. */
struct tl_extent {
    uint64_t first;
    uint64_t last;
    struct tl_image_span span;
    const uint8_t *bytes; /* the byte at `first` */
    uint64_t most;        /* the largest `last` of the extents up to this one */
};

struct tl_extents {
    struct tl_extent *v; /* sorted by `first` */
    size_t n;
    size_t cap;
};

/* Another name for the address of a symbol. */
struct tl_alias {
    const char *name; /* owned by the image */
    uint32_t symbol;
};

struct tl_symbols {
    struct tl_symbol *v; /* sorted by address once frozen */
    size_t n;
    size_t cap;
    struct tl_alias *aliases; /* once frozen */
    size_t n_aliases, cap_aliases;
    /* For each symbol its demangled name, from when it was first asked for; NULL: no symbol is
     * mangled. Changes in a frozen image, from NULL to a name. */
    _Atomic(char *) *demangled;
};

/* The programs that functions are of. */
struct tl_programs {
    const char **names;
    size_t n, cap;
    uint32_t now; /* that of additions, + 1; 0: none */
    /* For each symbol its name with its program's, from when it was first asked for; NULL: no name
     * is in several programs. Changes in a frozen image, from NULL to a name. */
    _Atomic(char *) *told;
};

/* Everything bound to one context. */
struct tl_layer {
    struct tl_image_context context;
    uint32_t was;              /* its index before tl_layers_sort() */
    struct tl_region *regions; /* in the order they were added */
    size_t n_regions;
    size_t cap_regions;
    /* Valid once frozen: */
    size_t version; /* index of its first version; versions are sorted by time */
    size_t n_versions;
    struct tl_extents extents[TL_SPACE_BITS]; /* by space bit; several spaces may share one list */
    uint8_t owners;    /* bit set of the spaces whose list is freed with this entry */
    uint32_t *symbols; /* symbol indices, sorted by address */
    size_t n_symbols;
};

/* A layer during a period without changes. */
struct tl_version {
    struct tl_image_span span;
    uint32_t layer;
};

/* How a layer is bound; layers sorted by context are grouped in this order. */
enum tl_binding {
    TL_BOUND_TO_NONE,
    TL_BOUND_TO_VMID,
    TL_BOUND_TO_CONTEXT_ID,
    TL_BOUND_TO_BOTH,
    TL_BINDINGS
};

#define TL_LAYERS_MAX ((size_t)1 << 20)

/* Executable bytes of an ELF file. */
struct tl_elf_range {
    uint64_t first, size;
    uint32_t elf;
};

#define TL_IMAGE_ELFS 16 /* files that are known by name; further ones have none */

struct tl_image {
    struct tl_layer *layers; /* the first one is unbound; sorted by context once frozen */
    size_t n_layers;
    size_t cap_layers;
    size_t layer; /* current layer for additions */
    /* Period for additions; within the image, `until` is UINT64_MAX for no end */
    struct tl_image_span span;
    struct tl_version *versions; /* of all layers, concatenated */
    size_t n_versions;
    size_t group[TL_BINDINGS + 1];        /* index of the first layer of each binding */
    uint64_t group_versions[TL_BINDINGS]; /* number of versions of all layers of each binding */
    uint64_t *changes;                    /* sorted times at which any layer changes */
    size_t n_changes;
    struct tl_symbols symbols;
    struct tl_programs programs;
    struct tl_image_part *parts;
    size_t n_parts, cap_parts;
    struct tl_file_symbols *files; /* files of `parts` */
    size_t n_files, cap_files;
    /* Until it is frozen, trees of tsearch(3): layers by context, regions, parts and files by what
     * they are, so that any number can be added. Private to known.c. */
    void *known_layers, *known_regions, *known_parts, *known_files;
    struct tl_image_pool *pool; /* NULL: it has its own copies of everything */
    struct tl_bytes *shared;    /* taken from the pool */
    size_t n_shared, cap_shared;
    struct tl_bytes *mapped; /* files, each as a whole: mapped.c */
    size_t n_mapped, cap_mapped;
    size_t owned_bytes, shared_bytes;
    void **owned; /* memory freed with the image: regions, string tables, joined extents, names */
    size_t n_owned;
    size_t cap_owned;
    bool frozen;
    uint16_t machine;    /* e_machine of the first ELF file, 0: none */
    bool is_narrow;      /* it has 32-bit addresses */
    bool has_zcm;        /* a RISC-V program in it has Zcmp or Zcmt */
    uint64_t jump_table; /* of RISC-V's Zcmt, by its symbol; 0: none */
    /* Handlers by exception number, from the first vector table, or that at `table`: vectors.c;
     * owned as memory. */
    const uint32_t *vectors;
    uint64_t table;  /* if has_table */
    bool has_table;  /* its address is told */
    bool table_used; /* `vectors` are from there */
    size_t n_vectors;
    uint64_t vectors_bias;
    const char **irqs; /* names of interrupts that an SVD file tells: svd.c; NULL: none is told */
    struct tl_part_symbol *variables; /* owned; sorted by address once frozen */
    size_t n_variables, cap_variables;
    struct tl_types types;           /* of some of them */
    const char *elfs[TL_IMAGE_ELFS]; /* names of the first ELF files */
    size_t n_elfs;
    struct tl_elf_range *elf_ranges; /* owned */
    size_t n_elf_ranges, cap_elf_ranges;
};

/* Transfer ownership of `memory`, `n` bytes, to the image. On TL_NOMEM it is freed immediately. */
TL_MUST_USE int tl_image_own(struct tl_image *image, void *memory, size_t n);
/* Bytes that live as long as the image: those of a mapped file themselves, else a copy, shared with
 * others if it has a pool; NULL: out of memory. */
const void *tl_image_keep(struct tl_image *image, const void *p, size_t n);

/* ---- mapped.c: files in memory ------------------------------------------------------------- */

/* Are these bytes in the file that was mapped last? */
bool tl_mapped_has(const struct tl_image *image, const void *p, size_t n);
void tl_mapped_fini(struct tl_image *image);

/* ---- pool.c ------------------------------------------------------------------------------- */

/* Take equal bytes from the pool, which gets a copy if it has none; NULL: out of memory. Give them
 * back with tl_pool_give(). */
const uint8_t *tl_pool_take(struct tl_image_pool *pool, const uint8_t *p, size_t n);
void tl_pool_give(struct tl_image_pool *pool, struct tl_bytes bytes);

/*
 * Sort the layers into the order that tl_image_view() searches, updating symbols; create their
 * versions, without contents. Returns TL_NOMEM, TL_LIMIT.
 */
TL_MUST_USE int tl_layers_sort(struct tl_image *image);

void tl_layers_fini(struct tl_image *image);

/* ---- known.c: what has been added -------------------------------------------------------- */

/* The order of contexts: 0 if they are equal. */
int tl_context_order(const struct tl_image_context *a, const struct tl_image_context *b);
/* Index of the layer of this context, or -1; note that it is there. Returns TL_NOMEM. */
int64_t tl_known_layer(const struct tl_image *image, const struct tl_image_context *context);
TL_MUST_USE int tl_known_add_layer(struct tl_image *image, const struct tl_image_context *context,
                                   size_t index);
/* Has the current layer this region with the same bytes? Notes it otherwise. Returns 1, 0,
 * TL_NOMEM. */
TL_MUST_USE int tl_known_region(struct tl_image *image, const struct tl_region *region);
/* Index of the last part with this name, offset and length, or -1; note one. Returns TL_NOMEM. */
int64_t tl_known_part(const struct tl_image *image, const struct tl_image_part *part);
TL_MUST_USE int tl_known_add_part(struct tl_image *image, size_t index);
/* Index of the file of this name, or -1; note one, whose name lives as long as the image. Returns
 * TL_NOMEM. */
int64_t tl_known_file(const struct tl_image *image, const char *name);
TL_MUST_USE int tl_known_add_file(struct tl_image *image, const char *name, size_t index);
/* Forget everything: nothing will be added any more. */
void tl_known_fini(struct tl_image *image);

/* The versions a view consists of, highest precedence first. Returns how many. */
unsigned tl_view_versions(const struct tl_image *image, uint64_t view,
                          const struct tl_version *versions[static TL_BINDINGS]);

/* Is something with period `span` present in the version? `span` must not begin or end within the
 * version. */
static inline bool tl_version_has(const struct tl_version *version, struct tl_image_span span)
{
    return span.from <= version->span.from && version->span.from < span.until;
}

/* Append what is visible of a layer's regions in a space to its extents. Returns TL_NOMEM, or as
 * tl_cancel_check(). */
TL_MUST_USE int tl_image_paint(struct tl_layer *layer, size_t space);

/* Fill each layer's extents from its regions. Returns as tl_image_paint(). */
TL_MUST_USE int tl_image_resolve(struct tl_image *image);

/* Bytes of one version, as tl_image_view_at(). */
struct tl_bytes tl_version_at(const struct tl_image *image, const struct tl_version *version,
                              unsigned space, uint64_t address);

/* Add a symbol, at address `offset`, with the current layer and period; its name must live as long
 * as the image. */
/* Find out which names are in several programs, once the symbols are sorted. Returns TL_NOMEM. */
TL_MUST_USE int tl_programs_sort(struct tl_image *image);
void tl_programs_fini(struct tl_image *image);
/* The program, + 1, that the last word in brackets of a function's name tells, as in "main [ls]";
 * `*n`, the text's length, is then without it. 0: it tells none. */
uint32_t tl_program_of_name(const struct tl_image *image, const char *text, size_t *n);

TL_MUST_USE int tl_symbols_add(struct tl_image *image, unsigned space,
                               const struct tl_part_symbol *symbol);

/* Add to `part` the functions that an ELF file has within it. A file that is not ELF has none.
 * Returns TL_NOMEM. */
TL_MUST_USE int tl_elf_part_symbols(struct tl_image *image, struct tl_image_part *part,
                                    struct tl_bytes file);

/* Begin an ELF file; add executable bytes of it. Return TL_NOMEM. */
TL_MUST_USE int tl_elfs_begin(struct tl_image *image, const char *name);
TL_MUST_USE int tl_elfs_add(struct tl_image *image, uint64_t first, uint64_t size);

/* Add a variable, at address `offset`; its name must live as long as the image. Returns TL_NOMEM.
 */
TL_MUST_USE int tl_variables_add(struct tl_image *image, const struct tl_part_symbol *symbol);
void tl_variables_sort(struct tl_image *image);

/* Sort by address, keep one per address, layer and period, compute missing sizes, index. Returns
 * TL_NOMEM. */
TL_MUST_USE int tl_symbols_sort(struct tl_image *image);

#endif
