/* SPDX-License-Identifier: MIT */
/*
 * The kernel's memory has code but no names, and its list of symbols has names but no code. Both
 * are written into one ELF file, which then is an image like any other, here and on a server.
 */
#include "import/kernel_core.h"

#include "base/search.h"
#include "base/whole.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 4096u
#define MAX_WHOLE    ((uint64_t)128 << 20) /* bytes of a segment that is taken as it is */
#define MAX_FILE     ((uint64_t)512 << 20)
#define PAGE         UINT64_C(4096)

struct function {
    uint64_t address, size;
    uint32_t name; /* offset in `names` */
    bool is_global;
};

struct core {
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr *segments; /* of the core; then those of the file */
    size_t n_segments;
    struct function *functions; /* by address */
    size_t n, cap;
    struct tl_buf names;
};

bool tl_kernel_symbols_beside(const char *kcore, char out[static 4096])
{
    const char *const slash = strrchr(kcore, '/');
    const int folder = slash ? (int)(slash + 1 - kcore) : 0;
    const int n = snprintf(out, 4096, "%.*skallsyms", folder, kcore);
    return n > 0 && n < 4096 && access(out, R_OK) == 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

static int add_function(struct core *c, uint64_t address, char type, const char *name)
{
    if (address == 0 || !strchr("tTwW", type))
        return TL_OK;
    if (c->names.n > UINT32_MAX / 2 ||
        tl_grow(&c->functions, &c->cap, c->n + 1, sizeof *c->functions) < 0)
        return TL_NOMEM;
    c->functions[c->n++] = (struct function){
        .address = address, .name = (uint32_t)c->names.n, .is_global = type == 'T' || type == 'W'};
    return tl_buf_add(&c->names, name, strlen(name) + 1);
}

static int by_address(const void *a, const void *b)
{
    const struct function *const x = a, *const y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* "ffffffff81000000 T _text", and "\t[module]" behind those of modules. */
static int read_functions(struct core *c, const char *path)
{
    char line[1024], name[512], type;
    uint64_t address;
    FILE *const f = fopen(path, "re");
    if (!f)
        return TL_IO;
    int rc = tl_buf_add(&c->names, "", 1);
    while (rc >= 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) == 3)
            rc = add_function(c, address, type, name);
    if (rc >= 0 && ferror(f))
        rc = TL_IO;
    fclose(f);
    if (c->n > 1)
        qsort(c->functions, c->n, sizeof *c->functions, by_address);
    return rc < 0 ? rc : TL_OK;
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
    return tl_count_below(TL_KEYS(c->functions, address), c->n, address);
}

/* Reduce a segment to what is taken of it; none: p_filesz 0. Its functions get their sizes. */
static void choose(struct core *c, Elf64_Phdr *s)
{
    uint64_t end = s->p_vaddr + s->p_filesz;
    const size_t first = first_from(c, s->p_vaddr), behind = first_from(c, end);
    if (s->p_type != PT_LOAD || end < s->p_vaddr || first == behind) {
        s->p_filesz = 0;
        return;
    }
    if (s->p_filesz > MAX_WHOLE) {
        const uint64_t low = c->functions[first].address / PAGE * PAGE;
        const uint64_t last = c->functions[behind - 1].address / PAGE * PAGE;
        const uint64_t from = low > s->p_vaddr ? low - s->p_vaddr : 0;
        s->p_vaddr += from;
        s->p_offset += from;
        end = end - last > 2 * PAGE ? last + 2 * PAGE : end;
        s->p_filesz = end - s->p_vaddr;
    }
    for (size_t i = first; i < behind; i++) {
        size_t next = i + 1;
        while (next < behind && c->functions[next].address == c->functions[i].address)
            next++;
        c->functions[i].size =
            (next < behind ? c->functions[next].address : end) - c->functions[i].address;
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

/* Zeros up to a multiple of 8; then *at is where the next byte is in the file. */
static int align(struct tl_buf *out, size_t start, uint64_t *at)
{
    static const uint8_t zeros[8];
    const int rc = tl_buf_add(out, zeros, (8 - (out->n - start) % 8) % 8);
    *at = out->n - start;
    return rc;
}

static int write_symbols(const struct core *c, struct tl_buf *out)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct function *const f = &c->functions[i];
        const Elf64_Sym symbol = {
            .st_name = f->name,
            .st_info = ELF64_ST_INFO(f->is_global ? STB_GLOBAL : STB_LOCAL, STT_FUNC),
            .st_shndx = SHN_ABS,
            .st_value = f->address,
            .st_size = f->size,
        };
        const int rc = f->size > 0 ? tl_buf_add(out, &symbol, sizeof symbol) : TL_OK;
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

static int write_file(struct core *c, struct tl_buf *out)
{
    enum { NONE, SYMBOLS, NAMES, SECTIONS };
    const size_t start = out->n;
    Elf64_Shdr sections[SECTIONS] = {
        [SYMBOLS] = {.sh_type = SHT_SYMTAB, .sh_link = NAMES, .sh_entsize = sizeof(Elf64_Sym)},
        [NAMES] = {.sh_type = SHT_STRTAB, .sh_size = c->names.n},
    };
    int rc = write_segments(c, out);
    if (rc >= 0)
        rc = align(out, start, &sections[SYMBOLS].sh_offset);
    if (rc >= 0)
        rc = write_symbols(c, out);
    sections[NAMES].sh_offset = out->n - start;
    sections[SYMBOLS].sh_size = sections[NAMES].sh_offset - sections[SYMBOLS].sh_offset;
    if (rc >= 0)
        rc = tl_buf_add(out, c->names.p, c->names.n);
    if (rc >= 0)
        rc = align(out, start, &c->header.e_shoff);
    if (rc >= 0)
        rc = tl_buf_add(out, sections, sizeof sections);
    if (rc < 0)
        return rc;
    c->header.e_phoff = sizeof c->header;
    c->header.e_phnum = (uint16_t)c->n_segments;
    c->header.e_shnum = SECTIONS;
    c->header.e_shentsize = sizeof *sections;
    c->header.e_shstrndx = NAMES;
    memcpy(out->p + start, &c->header, sizeof c->header);
    return TL_OK;
}

int tl_kernel_core_file(const char *kcore, const char *kallsyms, struct tl_buf *out)
{
    struct core c = {.fd = open(kcore, O_RDONLY | O_CLOEXEC)};
    int rc = c.fd >= 0 ? read_functions(&c, kallsyms) : TL_IO;
    if (rc >= 0)
        rc = read_segments(&c);
    if (rc >= 0)
        rc = choose_segments(&c);
    if (rc >= 0)
        rc = write_file(&c, out);
    if (c.fd >= 0)
        close(c.fd);
    free(c.segments);
    free(c.functions);
    tl_buf_fini(&c.names);
    return rc;
}
