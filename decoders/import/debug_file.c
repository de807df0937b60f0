/* SPDX-License-Identifier: MIT */
#include "import/debug_file.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- ELF files in memory ----------------------------------------------------------------------
 */

/* Its section headers. */
struct table {
    struct tl_bytes file;
    Elf64_Ehdr header;
    const uint8_t *sections; /* header.e_shnum of them */
};

static bool read_table(struct table *t, struct tl_bytes file)
{
    static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
    if (file.n < sizeof t->header || memcmp(file.p, magic, sizeof magic) != 0)
        return false;
    memcpy(&t->header, file.p, sizeof t->header);
    const uint64_t at = t->header.e_shoff, n = t->header.e_shnum;
    t->file = file;
    t->sections = file.p + at;
    return t->header.e_shentsize == sizeof(Elf64_Shdr) && at <= file.n &&
           n <= (file.n - at) / sizeof(Elf64_Shdr) && t->header.e_shstrndx < n;
}

static Elf64_Shdr section(const struct table *t, unsigned i)
{
    Elf64_Shdr s;
    memcpy(&s, t->sections + i * sizeof s, sizeof s);
    return s;
}

/* What it has in the file. */
static struct tl_bytes content(const struct table *t, const Elf64_Shdr *s)
{
    const bool there = s->sh_type != SHT_NOBITS && s->sh_offset <= t->file.n &&
                       s->sh_size <= t->file.n - s->sh_offset;
    return there ? (struct tl_bytes){t->file.p + s->sh_offset, (size_t)s->sh_size}
                 : (struct tl_bytes){0};
}

static const char *name_of(const struct table *t, const Elf64_Shdr *s)
{
    const Elf64_Shdr names = section(t, t->header.e_shstrndx);
    const struct tl_bytes text = content(t, &names);
    return s->sh_name < text.n && memchr(text.p + s->sh_name, 0, text.n - s->sh_name)
               ? (const char *)text.p + s->sh_name
               : "";
}

static bool find_section(const struct table *t, const char *name, Elf64_Shdr *out)
{
    for (unsigned i = 1; i < t->header.e_shnum; i++) {
        *out = section(t, i);
        if (!strcmp(name_of(t, out), name))
            return true;
    }
    return false;
}

/* ---- putting together -------------------------------------------------------------------------
 */

/* Bytes at a multiple of 8 behind all. */
static int add_behind(struct tl_buf *out, struct tl_bytes bytes, uint64_t *at)
{
    static const uint8_t zeros[8];
    int r = tl_buf_add(out, zeros, (8 - out->n % 8) % 8);
    *at = out->n;
    return r < 0 ? r : tl_buf_add(out, bytes.p, bytes.n);
}

/*
 * Sections are numbered as in the other file, since its symbols name them so. Those that have no
 * bytes there have those of the program.
 */
int tl_debug_file_join(struct tl_bytes program, struct tl_bytes debug, struct tl_buf *out)
{
    struct table code, names;
    struct tl_buf sections = {0};
    if (!read_table(&code, program) || !read_table(&names, debug) ||
        code.header.e_machine != names.header.e_machine)
        return TL_BAD;
    int r = tl_buf_add(out, program.p, program.n);
    for (unsigned i = 0; r >= 0 && i < names.header.e_shnum; i++) {
        Elf64_Shdr s = section(&names, i), its;
        const struct tl_bytes bytes = content(&names, &s);
        if (s.sh_type == SHT_NOBITS && find_section(&code, name_of(&names, &s), &its) &&
            its.sh_addr == s.sh_addr) {
            s.sh_type = its.sh_type;
            s.sh_offset = its.sh_offset;
            s.sh_size = its.sh_size;
        } else if (bytes.n > 0) {
            r = add_behind(out, bytes, &s.sh_offset);
        }
        if (r >= 0)
            r = tl_buf_add(&sections, &s, sizeof s);
    }
    Elf64_Ehdr header = code.header;
    header.e_shnum = names.header.e_shnum;
    header.e_shstrndx = names.header.e_shstrndx;
    if (r >= 0)
        r = add_behind(out, (struct tl_bytes){sections.p, sections.n}, &header.e_shoff);
    if (r >= 0)
        memcpy(out->p, &header, sizeof header);
    tl_buf_fini(&sections);
    return r;
}

/* ---- places ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool is_file(char out[static 4096], const char *format,
                                                          ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out, 4096, format, args);
    va_end(args);
    FILE *const f = n > 0 && n < 4096 ? fopen(out, "re") : NULL;
    if (f)
        fclose(f);
    return f != NULL;
}

/* By a build ID its name is right; by .gnu_debuglink its checksum tells. */
static bool by_id(char out[static 4096], const struct tl_code_places *places,
                  const struct tl_build_id *id)
{
    char text[2 * TL_BUILD_ID_MAX + 1];
    const char *const home = getenv("HOME");
    if (id->n < 2)
        return false;
    tl_build_id_text(id, text);
    return (places->buildid_dir
                ? is_file(out, "%s/.build-id/%.2s/%s/debug", places->buildid_dir, text, text + 2)
                : is_file(out, "%s/.debug/.build-id/%.2s/%s/debug", home ? home : "", text,
                          text + 2)) ||
           is_file(out, "%s/usr/lib/debug/.build-id/%.2s/%s.debug",
                   places->symfs ? places->symfs : "", text, text + 2);
}

static bool has_checksum(const char *path, uint32_t wanted)
{
    struct tl_buf bytes = {0};
    const bool read = tl_buf_read_file(&bytes, path, TL_DEBUG_FILE_MOST, NULL) >= 0;
    const bool same = read && crc32_z(0, bytes.p, bytes.n) == wanted;
    tl_buf_fini(&bytes);
    return same;
}

/* The section: a name, its end, padding to a multiple of 4, and the CRC32 of the file. */
static bool by_link(char out[static 4096], const struct tl_code_file *program,
                    const struct tl_code_places *places, struct tl_bytes link)
{
    const char *const name = (const char *)link.p;
    const char *const slash = strrchr(program->path, '/');
    const int folder = slash ? (int)(slash - program->path) : 0;
    if (link.n < 8 || !memchr(link.p, 0, link.n - 4) || !name[0] || strchr(name, '/'))
        return false;
    const uint32_t sum = tl_le32(link.p + link.n - 4);
    const char *const root = places->symfs ? places->symfs : "";
    const size_t n = strlen(root);
    const size_t inside = !strncmp(program->path, root, n) ? n : 0;
    return (is_file(out, "%.*s/%s", folder, program->path, name) && has_checksum(out, sum)) ||
           (is_file(out, "%.*s/.debug/%s", folder, program->path, name) &&
            has_checksum(out, sum)) ||
           (is_file(out, "%s/usr/lib/debug%.*s/%s", root, folder - (int)inside,
                    program->path + inside, name) &&
            has_checksum(out, sum));
}

bool tl_debug_file_find(char out[static 4096], const struct tl_code_file *program,
                        const struct tl_code_places *places, const struct tl_build_id *id)
{
    struct tl_buf bytes = {0};
    struct table t;
    Elf64_Shdr s;
    bool found = false;
    out[0] = 0;
    if (program->is_elf && program->size <= TL_DEBUG_FILE_MOST &&
        tl_buf_read_file(&bytes, program->path, TL_DEBUG_FILE_MOST, NULL) >= 0 &&
        read_table(&t, (struct tl_bytes){bytes.p, bytes.n}) && !find_section(&t, ".symtab", &s))
        found = by_id(out, places, id) || (find_section(&t, ".gnu_debuglink", &s) &&
                                           by_link(out, program, places, content(&t, &s)));
    tl_buf_fini(&bytes);
    if (!found)
        out[0] = 0;
    return found;
}
