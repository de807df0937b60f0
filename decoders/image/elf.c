/* SPDX-License-Identifier: MIT */
/*
 * Executable segments of an ELF file, and where its functions go: by address, or by file part.
 *
 * The file may be malicious: everything that libelf returns is checked against the file's size
 * before use, and the total size of mapped segments is limited relative to the file's size, because
 * many headers may refer to the same bytes.
 */
#include "base/buf.h"
#include "base/search.h"
#include "image/elf_load.h"
#include "image/elf_places.h"

#include <gelf.h>
#include <stdlib.h>

#define MAPPED_PER_BYTE 4 /* limit of mapped bytes per file byte; segments may overlap in pages */

/* Does it tell the names of a kernel's memory, and nothing of what is in it? */
static bool has_names_alone(Elf *elf, size_t n_segments)
{
    GElf_Ehdr header;
    return n_segments == 0 && gelf_getehdr(elf, &header) && header.e_type == ET_CORE;
}

/* Of a file that is cut off, what is there is mapped. */
static int map_segments(const struct tl_elf_load *load, Elf *elf)
{
    size_t n = 0, mapped = 0, executable = 0;
    uint64_t beyond = 0; /* file offset of a segment that is not there */
    if (elf_getphdrnum(elf, &n) != 0)
        n = 0;
    if (has_names_alone(elf, n))
        return TL_OK;
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph))
            return tl_fail_set(load->fail, TL_BAD, "%s: its program headers are cut off",
                               load->name);
        if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || ph.p_filesz == 0)
            continue;
        executable++;
        if (ph.p_offset >= load->bytes.n) {
            beyond = ph.p_offset;
            continue;
        }
        const uint64_t there = load->bytes.n - ph.p_offset;
        const struct tl_bytes piece = {load->bytes.p + ph.p_offset,
                                       ph.p_filesz < there ? ph.p_filesz : there};
        if (piece.n > load->bytes.n * MAPPED_PER_BYTE - mapped)
            return tl_fail_set(load->fail, TL_BAD, "%s: its segments overlap each other",
                               load->name);
        mapped += piece.n;
        int rc = tl_image_add_bytes(load->image, ph.p_vaddr + load->bias, piece, load->space,
                                    load->name, load->fail);
        if (rc >= 0 && tl_elfs_add(load->image, ph.p_vaddr + load->bias, piece.n) < 0)
            rc = tl_fail_set(load->fail, TL_NOMEM, "%s: out of memory", load->name);
        if (rc < 0)
            return rc;
    }
    if (executable == 0)
        return tl_fail_set(load->fail, TL_UNSUPPORTED,
                           "%s: has no executable segment; give the linked program", load->name);
    if (mapped == 0)
        return tl_fail_at(load->fail, TL_BAD, beyond,
                          "%s: the file ends before its executable segments", load->name);
    return TL_OK;
}

/* Is it a 32-bit big-endian OpenRISC file? OpenRISC has no other kind. */
static bool is_openrisc(struct tl_bytes bytes)
{
    return bytes.n >= sizeof(Elf32_Ehdr) && bytes.p[EI_DATA] == ELFDATA2MSB &&
           bytes.p[EI_CLASS] == ELFCLASS32 &&
           tl_be16(bytes.p + offsetof(Elf32_Ehdr, e_machine)) == EM_OPENRISC;
}

int tl_image_add_elf(struct tl_image *image, struct tl_bytes bytes, uint64_t bias, unsigned space,
                     const char *name, struct tl_fail *fail)
{
    if (!name)
        name = "image";
    if (bytes.n < EI_NIDENT || memcmp(bytes.p, ELFMAG, SELFMAG) != 0)
        return tl_fail_set(fail, TL_BAD, "%s: is no ELF file", name);
    if (bytes.p[EI_DATA] != ELFDATA2LSB && !is_openrisc(bytes))
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "%s: is big-endian, which is supported for OpenRISC only", name);
    if (image->frozen)
        return tl_fail_set(fail, TL_USAGE, "%s: the image takes no more", name);

    struct tl_elf elf;
    int rc = tl_elf_init(&elf, bytes);
    if (rc == TL_NOMEM)
        return tl_fail_set(fail, TL_NOMEM, "%s: out of memory for %zu bytes", name, bytes.n);
    if (rc < 0)
        return tl_fail_set(fail, TL_BAD, "%s: is damaged: %s", name, elf_errmsg(-1));
    const struct tl_elf_load load = {image, bytes, bias, space, name, fail, NULL};
    tl_elf_attributes(&load, elf.elf);
    rc = tl_elfs_begin(image, name);
    if (rc == TL_OK)
        rc = map_segments(&load, elf.elf);
    if (rc == TL_OK)
        rc = tl_elf_symbols(&load, elf.elf);
    if (rc == TL_OK)
        rc = tl_elf_vectors(&load, elf.elf);
    tl_elf_fini(&elf);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct tl_part_symbol *const x = a, *const y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static int read_symbols(struct tl_image *image, struct tl_file_symbols *out, struct tl_bytes file)
{
    if (file.n < EI_NIDENT || memcmp(file.p, ELFMAG, SELFMAG) != 0 ||
        file.p[EI_DATA] != ELFDATA2LSB)
        return TL_OK;
    struct tl_elf elf;
    int rc = tl_elf_init(&elf, file);
    if (rc < 0)
        return rc == TL_NOMEM ? rc : TL_OK;
    const struct tl_elf_load load = {.image = image, .bytes = file, .name = out->file, .file = out};
    tl_elf_attributes(&load, elf.elf);
    rc = tl_elf_symbols(&load, elf.elf);
    tl_elf_fini(&elf);
    if (out->n > 1)
        qsort(out->v, out->n, sizeof *out->v, by_place);
    return rc;
}

/* The functions of a file, which is read only once regardless of how many parts are mapped. */
static int symbols_of(struct tl_image *image, const char *name, struct tl_bytes file,
                      const struct tl_file_symbols **out)
{
    const int64_t known = tl_known_file(image, name);
    *out = known < 0 ? NULL : &image->files[known];
    if (known >= 0)
        return TL_OK;
    if (tl_grow(&image->files, &image->cap_files, image->n_files + 1, sizeof *image->files) < 0 ||
        tl_known_add_file(image, name, image->n_files) < 0)
        return TL_NOMEM;
    struct tl_file_symbols *const symbols = &image->files[image->n_files++];
    *symbols = (struct tl_file_symbols){.file = name};
    *out = symbols;
    return read_symbols(image, symbols, file);
}

int tl_elf_part_symbols(struct tl_image *image, struct tl_image_part *part, struct tl_bytes file)
{
    const struct tl_file_symbols *symbols;
    if (image->frozen)
        return TL_OK;
    const int rc = symbols_of(image, part->name, file, &symbols);
    if (rc < 0)
        return rc;
    const size_t first = tl_count_below(TL_KEYS(symbols->v, offset), symbols->n, part->offset);
    size_t n = 0;
    while (n < symbols->n - first && symbols->v[first + n].offset - part->offset < part->bytes.n)
        n++;
    if (n == 0)
        return TL_OK;
    if (tl_grow(&part->symbols, &part->cap_symbols, n, sizeof *part->symbols) < 0)
        return TL_NOMEM;
    memcpy(part->symbols, symbols->v + first, n * sizeof *part->symbols);
    for (size_t i = 0; i < n; i++) {
        struct tl_part_symbol *const s = &part->symbols[i];
        s->offset -= part->offset;
        /* Behind the part there may be another file. */
        if (s->size == 0 && s->max_size > part->bytes.n - s->offset)
            s->max_size = part->bytes.n - s->offset;
    }
    part->n_symbols = n;
    return TL_OK;
}
