/* SPDX-License-Identifier: MIT */
/*
 * Code that several processes map is kept once, and identical dumps are dropped, since a trace of a
 * whole system names the same files hundreds of times. Sorting waits for tl_image_freeze(), so that
 * adding needs no order.
 */
#include "image/image.h"

#include "base/buf.h"
#include "base/whole.h"
#include "image/image_parts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned space;
} spaces[] = {
    {"EL1S", TL_SPACE_EL1S},
    {"EL1N", TL_SPACE_EL1N},
    {"EL1R", TL_SPACE_EL1R},
    {"EL2", TL_SPACE_EL2},
    {"EL2N", TL_SPACE_EL2},
    {"EL2S", TL_SPACE_EL2S},
    {"EL2R", TL_SPACE_EL2R},
    {"EL3", TL_SPACE_EL3},
    {"ROOT", TL_SPACE_ROOT},
    {"S", TL_SPACE_S},
    {"N", TL_SPACE_N},
    {"R", TL_SPACE_R},
    {"ANY", TL_SPACE_ANY},
    /* names in earlier snapshot versions: hypervisor, physical, and physical by security */
    {"H", TL_SPACE_EL2},
    {"P", TL_SPACE_ANY},
    {"NP", TL_SPACE_N},
    {"SP", TL_SPACE_S},
};

int tl_space_parse(const char *name)
{
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (strcasecmp(name, spaces[i].name) == 0)
            return (int)spaces[i].space;
    return TL_BAD;
}

const char *tl_space_name(unsigned space)
{
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (spaces[i].space == space)
            return spaces[i].name;
    return "ANY";
}

int tl_image_new(struct tl_image **out)
{
    struct tl_image *image = calloc(1, sizeof *image);
    if (!image || tl_image_bind(image, NULL) < 0) {
        tl_image_free(image);
        return TL_NOMEM;
    }
    tl_image_set_period(image, (struct tl_image_span){0});
    *out = image;
    return TL_OK;
}

void tl_image_free(struct tl_image *image)
{
    if (!image)
        return;
    tl_layers_fini(image);
    for (size_t i = 0; i < image->n_owned; i++)
        free(image->owned[i]);
    free(image->owned);
    for (size_t i = 0; i < image->n_shared; i++)
        tl_pool_give(image->pool, image->shared[i]);
    free(image->shared);
    tl_mapped_fini(image);
    for (size_t i = 0; i < image->n_parts; i++)
        free(image->parts[i].symbols);
    free(image->parts);
    for (size_t i = 0; i < image->n_files; i++)
        free(image->files[i].v);
    free(image->files);
    for (size_t i = 0; image->symbols.demangled && i < image->symbols.n; i++)
        free(atomic_load(&image->symbols.demangled[i]));
    free(image->symbols.demangled);
    tl_programs_fini(image);
    free(image->symbols.v);
    free(image->symbols.aliases);
    tl_known_fini(image);
    free(image->variables);
    tl_types_fini(&image->types);
    free(image->elf_ranges);
    free(image);
}

int tl_image_own(struct tl_image *image, void *memory, size_t n)
{
    if (tl_grow(&image->owned, &image->cap_owned, image->n_owned + 1, sizeof *image->owned) < 0) {
        free(memory);
        return TL_NOMEM;
    }
    image->owned[image->n_owned++] = memory;
    image->owned_bytes += n;
    return TL_OK;
}

void tl_image_set_period(struct tl_image *image, struct tl_image_span span)
{
    image->span = (struct tl_image_span){span.from, span.until ? span.until : UINT64_MAX};
}

/* Snapshots repeat the same dumps for every core: these are dropped. */
static int take_region(struct tl_image *image, const struct tl_region *region, void *memory,
                       struct tl_fail *fail)
{
    struct tl_layer *const layer = &image->layers[image->layer];
    const size_t n = (size_t)(region->last - region->first) + 1;
    int rc =
        tl_grow(&layer->regions, &layer->cap_regions, layer->n_regions + 1, sizeof *layer->regions);
    if (rc == TL_OK)
        rc = tl_known_region(image, region);
    if (rc == TL_OK && memory && tl_image_own(image, memory, n) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", n);
    if (rc == TL_OK)
        layer->regions[layer->n_regions++] = *region;
    else
        free(memory);
    return rc < 0 ? tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", n) : TL_OK;
}

/* Add a region. If `memory` is not NULL, it contains the bytes and the image takes ownership, or it
 * is freed. */
static int add_region(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                      unsigned space, const char *name, void *memory, struct tl_fail *fail)
{
    const struct tl_region region = {.first = address,
                                     .last = address + (bytes.n - 1),
                                     .span = image->span,
                                     .bytes = bytes.p,
                                     .space = space};
    int rc = TL_OK;
    if (image->frozen || !(space & TL_SPACE_ANY))
        rc = tl_fail_set(fail, TL_USAGE, "%s: the image takes no more", name ? name : "region");
    else if (bytes.n == 0 || image->span.from >= image->span.until)
        rc = TL_OK;
    else if (bytes.n - 1 > UINT64_MAX - address)
        rc = tl_fail_set(fail, TL_USAGE, "%s: does not fit above address 0x%llx; lower it",
                         name ? name : "region", (unsigned long long)address);
    else
        return take_region(image, &region, memory, fail);
    free(memory);
    return rc;
}

int tl_image_add_bytes(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                       unsigned space, const char *name, struct tl_fail *fail)
{
    if (bytes.n == 0)
        return TL_OK;
    if (image->pool || tl_mapped_has(image, bytes.p, bytes.n)) {
        const uint8_t *const kept = tl_image_keep(image, bytes.p, bytes.n);
        return kept ? add_region(image, address, (struct tl_bytes){kept, bytes.n}, space, name,
                                 NULL, fail)
                    : tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", bytes.n);
    }
    uint8_t *copy = malloc(bytes.n);
    if (!copy)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", bytes.n);
    memcpy(copy, bytes.p, bytes.n);
    return add_region(image, address, (struct tl_bytes){copy, bytes.n}, space, name, copy, fail);
}

static const void *keep_shared(struct tl_image *image, const void *p, size_t n)
{
    if (tl_grow(&image->shared, &image->cap_shared, image->n_shared + 1, sizeof *image->shared) < 0)
        return NULL;
    const uint8_t *const kept = tl_pool_take(image->pool, p, n);
    if (!kept)
        return NULL;
    image->shared[image->n_shared++] = (struct tl_bytes){kept, n};
    image->shared_bytes += n;
    return kept;
}

const void *tl_image_keep(struct tl_image *image, const void *p, size_t n)
{
    enum { SMALL = 1024 }; /* not worth an entry */
    if (tl_mapped_has(image, p, n))
        return p;
    if (image->pool && n > SMALL)
        return keep_shared(image, p, n);
    void *const copy = malloc(n ? n : 1);
    if (!copy)
        return NULL;
    memcpy(copy, p, n);
    return tl_image_own(image, copy, n) < 0 ? NULL : copy;
}

int tl_image_add_part(struct tl_image *image, uint64_t address, struct tl_bytes bytes,
                      unsigned space, const char *name, uint64_t offset, uint64_t length,
                      struct tl_fail *fail)
{
    struct tl_image_part part = {.offset = offset, .length = length};
    const int rc =
        tl_grow(&image->parts, &image->cap_parts, image->n_parts + 1, sizeof *image->parts);
    if (rc == TL_OK && bytes.n > 0)
        part.bytes = (struct tl_bytes){tl_image_keep(image, bytes.p, bytes.n), bytes.n};
    if (rc == TL_OK)
        part.name = tl_image_keep(image, name, strlen(name) + 1);
    if (!part.name || (bytes.n > 0 && !part.bytes.p))
        return tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", bytes.n);
    image->parts[image->n_parts] = part;
    if (tl_known_add_part(image, image->n_parts) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory for %zu bytes of image", bytes.n);
    image->n_parts++;
    return add_region(image, address, part.bytes, space, name, NULL, fail);
}

static int add_functions(struct tl_image *image, const struct tl_image_part *part, uint64_t address,
                         unsigned space, struct tl_fail *fail)
{
    for (size_t i = 0; i < part->n_symbols; i++) {
        struct tl_part_symbol s = part->symbols[i];
        s.offset += address;
        if (tl_symbols_add(image, space, &s) < 0)
            return tl_fail_set(fail, TL_NOMEM, "%s: out of memory for symbols", part->name);
    }
    return TL_OK;
}

int tl_image_part_functions(struct tl_image *image, uint64_t address, struct tl_bytes file,
                            unsigned space, struct tl_fail *fail)
{
    struct tl_image_part *const part = &image->parts[image->n_parts - 1];
    if (tl_elf_part_symbols(image, part, file) < 0)
        return tl_fail_set(fail, TL_NOMEM, "%s: out of memory for symbols", part->name);
    return add_functions(image, part, address, space, fail);
}

int tl_image_add_again(struct tl_image *image, uint64_t address, unsigned space, const char *name,
                       uint64_t offset, uint64_t length, struct tl_fail *fail)
{
    const struct tl_image_part wanted = {.name = name, .offset = offset, .length = length};
    const int64_t known = tl_known_part(image, &wanted);
    if (known < 0)
        return TL_NOTFOUND;
    const struct tl_image_part *const part = &image->parts[known];
    const int rc = add_region(image, address, part->bytes, space, name, NULL, fail);
    return rc < 0 ? rc : add_functions(image, part, address, space, fail);
}

static int read_all(int fd, uint8_t *p, size_t n, uint64_t offset)
{
    const int rc = tl_read_at(fd, p, n, offset);
    if (rc != TL_EOF)
        return rc;
    errno = EIO; /* the file was truncated meanwhile */
    return TL_IO;
}

int tl_image_add_file(struct tl_image *image, const char *path, uint64_t address, uint64_t offset,
                      uint64_t length, unsigned space, struct tl_fail *fail)
{
    uint8_t *p = NULL;
    struct stat st;
    int rc = TL_OK;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0) {
        rc = tl_fail_set(fail, TL_IO, "%s: cannot be opened; check the image's path", path);
        goto done;
    }
    const uint64_t size = (uint64_t)st.st_size;
    if (offset > size || (length != UINT64_MAX && length > size - offset)) {
        rc = tl_fail_at(fail, TL_BAD, offset, "%s: has only %llu bytes; check offset and length",
                        path, (unsigned long long)size);
        goto done;
    }
    const size_t n = (size_t)(length == UINT64_MAX ? size - offset : length);
    if (n == 0)
        goto done;
    p = malloc(n);
    if (!p) {
        rc = tl_fail_set(fail, TL_NOMEM, "%s: out of memory for %zu bytes", path, n);
        goto done;
    }
    if (read_all(fd, p, n, offset) < 0) {
        rc = tl_fail_set(fail, TL_IO, "%s: cannot be read", path);
        free(p);
        goto done;
    }
    rc = add_region(image, address, (struct tl_bytes){p, n}, space, path, p, fail);
done:
    if (fd >= 0)
        close(fd);
    return rc;
}

int tl_image_freeze(struct tl_image *image)
{
    if (image->frozen)
        return TL_OK;
    int rc = tl_layers_sort(image);
    if (rc == TL_OK)
        rc = tl_image_resolve(image);
    if (rc == TL_OK)
        rc = tl_symbols_sort(image);
    tl_variables_sort(image);
    image->frozen = rc == TL_OK;
    if (image->frozen)
        tl_known_fini(image);
    return rc;
}

unsigned tl_image_machine(const struct tl_image *image)
{
    return image->machine;
}

bool tl_image_is_narrow(const struct tl_image *image)
{
    return image->is_narrow;
}

bool tl_image_has_zcm(const struct tl_image *image)
{
    return image->has_zcm;
}

uint64_t tl_image_jump_table(const struct tl_image *image)
{
    return image->jump_table;
}
