/* SPDX-License-Identifier: MIT */
/*
 * Builds the program image from the images named in a setup. An image may be a whole file, a part
 * of it, or code whose address follows from a section or symbol.
 */
#include "setup/setup.h"

#include "base/filekind.h"
#include "debug/variable_types.h"
#include "image/elf_places.h"
#include "image/svd.h"
#include "image/variables.h"
#include "image/vectors.h"

#include <string.h>

/* Map a part of the file, with the functions it contains. */
static int map_part(struct tl_image *image, const struct tl_setup_image *m, struct tl_bytes file,
                    uint64_t offset, uint64_t n, struct tl_fail *fail)
{
    const struct tl_bytes part = {file.p + offset, (size_t)n};
    const int rc =
        tl_image_add_part(image, m->address, part, m->space, m->file, offset, m->length, fail);
    return rc < 0 ? rc : tl_image_part_functions(image, m->address, file, m->space, fail);
}

/* Map a file whose contents determine what is at the address. */
static int map_anchored(struct tl_image *image, const struct tl_setup_image *m,
                        struct tl_bytes bytes, struct tl_fail *fail)
{
    uint64_t value = 0, offset = 0, size = 0;
    const bool is_section = m->anchor[0] == '.';
    const int found = is_section ? tl_elf_bytes_section(bytes, m->anchor, &offset, &size)
                                 : tl_elf_bytes_symbol(bytes, m->anchor, &value);
    if (found < 0)
        return tl_fail_set(fail, TL_NOMEM, "%.120s: out of memory", m->file);
    if (!is_section) /* without the symbol, assume the addresses it was linked to */
        return tl_image_add_elf(image, bytes, found ? m->address - value : 0, m->space, m->file,
                                fail);
    if (!found || offset > bytes.n || size > bytes.n - offset || m->offset >= size)
        return tl_fail_set(fail, TL_BAD, "%.120s: has no such section %.60s", m->file, m->anchor);
    const uint64_t there = size - m->offset;
    return map_part(image, m, bytes, offset + m->offset, m->length < there ? m->length : there,
                    fail);
}

/* An ELF file of which data accesses may be traced: those are shown by the types of variables. */
static int map_elf(struct tl_image *image, const struct tl_setup_image *m, struct tl_bytes bytes,
                   struct tl_fail *fail)
{
    int rc = tl_image_add_elf(image, bytes, m->address, m->space, m->file, fail);
    if (rc < 0 || !tl_image_has_vectors(image))
        return rc;
    rc = tl_variable_types(bytes, m->address, tl_image_keep_text, image, tl_image_types(image));
    tl_types_sort(tl_image_types(image));
    return rc == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "%.120s: out of memory for types", m->file)
                          : rc;
}

int tl_setup_check_image(const struct tl_setup_image *m, struct tl_bytes head, struct tl_fail *fail)
{
    if (m->address || m->offset || m->anchor)
        return TL_OK;
    const char *const what = tl_svd_is(head) ? NULL
                             : head.n        ? tl_file_kind_no_program(tl_file_kind(head))
                                             : "is empty (0 bytes)";
    return what ? tl_fail_set(fail, TL_BAD, "%.120s: %s", m->file, what) : TL_OK;
}

/* Map an image. If it is a complete ELF file, it is mapped according to its headers. */
static int map_image(struct tl_image *image, const struct tl_setup_image *m, struct tl_bytes bytes,
                     struct tl_fail *fail)
{
    if (m->anchor)
        return map_anchored(image, m, bytes, fail);
    if (bytes.n >= 4 && !memcmp(bytes.p, "\177ELF", 4) && m->offset == 0 && m->length == UINT64_MAX)
        return map_elf(image, m, bytes, fail);
    if (tl_svd_is(bytes) && m->address == 0)
        return tl_image_add_svd(image, bytes, m->file, fail);
    if (m->offset > bytes.n ||
        (m->length != UINT64_MAX && m->length > bytes.n - m->offset && !m->path))
        return tl_fail_set(fail, TL_BAD, "%.120s: has %zu bytes, offset and length ask for more",
                           m->file, bytes.n);
    const uint64_t there = bytes.n - m->offset;
    return map_part(image, m, bytes, m->offset, m->length > there ? there : m->length, fail);
}

/* The last file taken from the file system; others may name it again. */
struct file {
    const char *name; /* NULL: none yet */
    struct tl_bytes content;
};

static int take_file(struct tl_image *image, struct file *file, const char *name,
                     struct tl_bytes *bytes, struct tl_fail *fail)
{
    if (!file->name || strcmp(file->name, name) != 0) {
        file->name = NULL;
        const int rc = tl_image_file(image, name, &file->content, fail);
        if (rc < 0)
            return rc;
        file->name = name;
    }
    *bytes = file->content;
    return TL_OK;
}

/* One core's vector table stands for all: sources of one processor tell the same. */
static void take_table(const struct tl_setup *setup, struct tl_image *image)
{
    for (size_t i = 0; i < setup->n_sources; i++) {
        const uint64_t table = tl_source_reg(&setup->sources[i], "VTOR", UINT64_MAX);
        if (table == UINT64_MAX)
            continue;
        tl_image_use_table(image, table);
        return;
    }
}

int tl_setup_load_images(const struct tl_setup *setup, struct tl_image *image,
                         tl_setup_resolver *resolve, void *context, struct tl_fail *fail)
{
    struct file file = {0};
    int rc = TL_OK;
    take_table(setup, image);
    for (size_t i = 0; rc == TL_OK && i < setup->n_images; i++) {
        const struct tl_setup_image *const m = &setup->images[i];
        struct tl_bytes bytes = {0};
        if (m->path && !resolve && tl_setup_is_stored(m->file))
            continue; /* not available */
        rc = tl_image_bind(image, &m->context);
        if (rc < 0) {
            rc = tl_fail_set(fail, (enum tl_err)rc, "%.120s: %s", m->file,
                             rc == TL_LIMIT ? "too many contexts with images" : "out of memory");
            break;
        }
        tl_image_set_period(image, m->span);
        rc = tl_image_add_again(image, m->address, m->space, m->file, m->offset, m->length, fail);
        if (rc != TL_NOTFOUND)
            continue;
        const struct tl_buf *const made = tl_setup_made(setup, m->file);
        if (made)
            bytes = (struct tl_bytes){made->p, made->n};
        rc = made      ? TL_OK
             : resolve ? resolve(context, m->file, &bytes, fail)
                       : take_file(image, &file, m->file, &bytes, fail);
        if (rc == TL_OK && !made && !resolve)
            rc = tl_setup_check_image(m, bytes, fail);
        if (rc == TL_OK)
            rc = map_image(image, m, bytes, fail);
        else if (rc == TL_NOTFOUND && m->path)
            rc = TL_OK;
    }
    tl_image_set_period(image, (struct tl_image_span){0});
    if (rc == TL_OK)
        rc = tl_image_bind(image, NULL);
    return rc;
}
