/* SPDX-License-Identifier: MIT */
/*
 * The kernel's memory has code but no names, and its list of symbols has names but no code. Both
 * are written into one ELF file, which then is an image like any other, here and on a server.
 */
#include "import/kernel_core.h"

#include "base/search.h"
#include "base/whole.h"
#include "import/kernel_names.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 4096u
#define MAX_WHOLE    ((uint64_t)128 << 20) /* bytes of a segment that is taken as it is */
#define MAX_FILE     ((uint64_t)512 << 20)
#define PAGE         UINT64_C(4096)

struct core {
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr *segments; /* of the core; then those of the file */
    size_t n_segments;
    struct tl_kernel_names names;
};

bool tl_kernel_symbols_beside(const char *kcore, char out[static 4096])
{
    const char *const slash = strrchr(kcore, '/');
    const int folder = slash ? (int)(slash + 1 - kcore) : 0;
    const int n = snprintf(out, 4096, "%.*skallsyms", folder, kcore);
    return n > 0 && n < 4096 && access(out, R_OK) == 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

static int read_at(const struct core *c, void *p, size_t n, uint64_t offset)
{
    const int rc = tl_read_at(c->fd, p, n, offset);
    return rc == TL_EOF ? TL_BAD : rc;
}

static int read_segments(struct core *c)
{
    int rc = read_at(c, &c->header, sizeof c->header, 0);
    const Elf64_Ehdr *const h = &c->header;
    if (rc < 0)
        return rc;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_phentsize != sizeof *c->segments ||
        h->e_phnum > MAX_SEGMENTS)
        return TL_BAD;
    c->segments = calloc((size_t)h->e_phnum + 1, sizeof *c->segments);
    if (!c->segments)
        return TL_NOMEM;
    c->n_segments = h->e_phnum;
    return read_at(c, c->segments, c->n_segments * sizeof *c->segments, h->e_phoff);
}

static size_t first_from(const struct core *c, uint64_t address)
{
    return tl_count_below(TL_KEYS(c->names.functions, address), c->names.n, address);
}

/* Reduce a segment to what is taken of it; none: p_filesz 0. Its functions get their sizes. */
static void choose(struct core *c, Elf64_Phdr *s)
{
    struct tl_kernel_function *const functions = c->names.functions;
    uint64_t end = s->p_vaddr + s->p_filesz;
    const size_t first = first_from(c, s->p_vaddr), behind = first_from(c, end);
    if (s->p_type != PT_LOAD || end < s->p_vaddr || first == behind) {
        s->p_filesz = 0;
        return;
    }
    if (s->p_filesz > MAX_WHOLE) {
        const uint64_t low = functions[first].address / PAGE * PAGE;
        const uint64_t last = functions[behind - 1].address / PAGE * PAGE;
        const uint64_t from = low > s->p_vaddr ? low - s->p_vaddr : 0;
        s->p_vaddr += from;
        s->p_offset += from;
        end = end - last > 2 * PAGE ? last + 2 * PAGE : end;
        s->p_filesz = end - s->p_vaddr;
    }
    for (size_t i = first; i < behind; i++) {
        size_t next = i + 1;
        while (next < behind && functions[next].address == functions[i].address)
            next++;
        functions[i].size = (next < behind ? functions[next].address : end) - functions[i].address;
    }
}

/* Keep the segments that have code. */
static int choose_segments(struct core *c)
{
    size_t n = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->n_segments; i++) {
        Elf64_Phdr s = c->segments[i];
        choose(c, &s);
        if (s.p_filesz == 0)
            continue;
        if (s.p_filesz > MAX_FILE - bytes)
            return TL_LIMIT;
        bytes += s.p_filesz;
        s.p_flags |= PF_X;
        s.p_memsz = s.p_filesz;
        c->segments[n++] = s;
    }
    c->n_segments = n;
    return n > 0 ? TL_OK : TL_BAD;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int write_segments(struct core *c, struct tl_buf *out)
{
    const size_t start = out->n, table = c->n_segments * sizeof *c->segments;
    int rc = tl_buf_reserve(out, sizeof c->header + table);
    if (rc < 0)
        return rc;
    out->n += sizeof c->header + table; /* written last, when offsets are known */
    for (size_t i = 0; rc >= 0 && i < c->n_segments; i++) {
        Elf64_Phdr *const s = &c->segments[i];
        rc = tl_buf_reserve(out, s->p_filesz);
        if (rc >= 0)
            rc = read_at(c, out->p + out->n, s->p_filesz, s->p_offset);
        s->p_offset = out->n - start;
        out->n += rc >= 0 ? s->p_filesz : 0;
    }
    if (rc >= 0)
        memcpy(out->p + start + sizeof c->header, c->segments, table);
    return rc;
}

static int write_file(struct core *c, struct tl_buf *out)
{
    const size_t start = out->n;
    int rc = write_segments(c, out);
    if (rc >= 0)
        rc = tl_kernel_names_sections(&c->names, start, &c->header, out);
    if (rc < 0)
        return rc;
    c->header.e_phoff = sizeof c->header;
    c->header.e_phnum = (uint16_t)c->n_segments;
    memcpy(out->p + start, &c->header, sizeof c->header);
    return TL_OK;
}

int tl_kernel_core_file(const char *kcore, const char *kallsyms, struct tl_buf *out)
{
    struct core c = {.fd = open(kcore, O_RDONLY | O_CLOEXEC)};
    int rc = c.fd >= 0 ? tl_kernel_names_read(&c.names, kallsyms) : TL_IO;
    if (rc >= 0)
        rc = read_segments(&c);
    if (rc >= 0)
        rc = choose_segments(&c);
    if (rc >= 0)
        rc = write_file(&c, out);
    if (c.fd >= 0)
        close(c.fd);
    free(c.segments);
    tl_kernel_names_fini(&c.names);
    return rc;
}
