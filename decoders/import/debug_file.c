/* SPDX-License-Identifier: MIT */
/*
 * The joined file is the program's bytes with the debug file's sections behind them: offsets of
 * code stay as they are, so that mappings fit both. Its section numbers are those of the debug
 * file, since symbols refer to sections by number.
 */
#include "import/debug_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/* ---- 64-bit little-endian ELF files ---------------------------------------------------------- */

struct file {
    int fd;
    Elf *elf;           /* NULL: not an ELF file */
    Elf64_Ehdr *header; /* of `elf` */
    size_t n_sections, names;
};

static void close_file(struct file *f)
{
    if (f->elf)
        elf_end(f->elf);
    if (f->fd >= 0)
        close(f->fd);
    *f = (struct file){.fd = -1};
}

static bool open_file(struct file *f, const char *path)
{
    *f = (struct file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f->fd >= 0 && elf_version(EV_CURRENT) != EV_NONE)
        f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
    f->header = f->elf ? elf64_getehdr(f->elf) : NULL;
    if (f->header && f->header->e_ident[EI_DATA] == ELFDATA2LSB &&
        elf_getshdrnum(f->elf, &f->n_sections) == 0 && elf_getshdrstrndx(f->elf, &f->names) == 0)
        return true;
    close_file(f);
    return false;
}

static const char *name_of(const struct file *f, const Elf64_Shdr *s)
{
    const char *const name = elf_strptr(f->elf, f->names, s->sh_name);
    return name ? name : "";
}

/* Find a section by name; NULL: there is none. */
static const Elf64_Shdr *find_section(const struct file *f, const char *name)
{
    for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
        const Elf64_Shdr *const s = elf64_getshdr(scn);
        if (s && !strcmp(name_of(f, s), name))
            return s;
    }
    return NULL;
}

/* ---- joining ------------------------------------------------------------------------------- */

/* Append bytes at a multiple of 8. */
static int add_after(struct tl_buf *out, const void *p, size_t n, uint64_t *at)
{
    static const uint8_t zeros[8];
    const int r = tl_buf_add(out, zeros, (8 - out->n % 8) % 8);
    *at = out->n;
    return r < 0 ? r : tl_buf_add(out, p, n);
}

/* Append the bytes of the debug file's section `i` to `out`, and its header to `headers`. A section
 * without contents there gets the program's. */
static int add_section(const struct file *program, const struct file *debug, size_t i,
                       struct tl_buf *out, struct tl_buf *headers)
{
    Elf_Scn *const scn = elf_getscn(debug->elf, i);
    const Elf64_Shdr *const there = scn ? elf64_getshdr(scn) : NULL;
    if (!there)
        return TL_BAD;
    Elf64_Shdr s = *there;
    const Elf64_Shdr *const own =
        s.sh_type == SHT_NOBITS ? find_section(program, name_of(debug, &s)) : NULL;
    const Elf_Data *const data = s.sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL);
    int r = TL_OK;
    if (own && own->sh_addr == s.sh_addr) {
        s.sh_type = own->sh_type;
        s.sh_offset = own->sh_offset;
        s.sh_size = own->sh_size;
    } else if (data && data->d_buf) {
        r = add_after(out, data->d_buf, data->d_size, &s.sh_offset);
    }
    return r < 0 ? r : tl_buf_add(headers, &s, sizeof s);
}

/* Sections are numbered as in the debug file, since its symbols refer to those numbers. */
static int join(const struct file *program, const struct file *debug, struct tl_buf *out)
{
    struct tl_buf headers = {0};
    size_t n = 0;
    const char *const bytes = elf_rawfile(program->elf, &n);
    if (!bytes || n > TL_DEBUG_FILE_MAX || debug->n_sections >= SHN_LORESERVE ||
        program->header->e_machine != debug->header->e_machine)
        return TL_BAD;
    int r = tl_buf_add(out, bytes, n);
    for (size_t i = 0; r >= 0 && i < debug->n_sections; i++)
        r = out->n <= 2 * TL_DEBUG_FILE_MAX ? add_section(program, debug, i, out, &headers)
                                            : TL_BAD;
    Elf64_Ehdr header = *program->header;
    header.e_shnum = debug->header->e_shnum;
    header.e_shstrndx = debug->header->e_shstrndx;
    header.e_shentsize = sizeof(Elf64_Shdr);
    if (r >= 0)
        r = add_after(out, headers.p, headers.n, &header.e_shoff);
    if (r >= 0)
        memcpy(out->p, &header, sizeof header);
    tl_buf_fini(&headers);
    return r;
}

int tl_debug_file_join(const char *program, const char *debug, struct tl_buf *out)
{
    struct file code, names;
    int r = TL_BAD;
    if (!open_file(&code, program))
        return TL_BAD;
    if (open_file(&names, debug)) {
        r = join(&code, &names, out);
        close_file(&names);
    }
    close_file(&code);
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

/*
 * A file named by build ID is the right one; one named by .gnu_debuglink is verified by checksum.
 */
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
    const bool read = tl_buf_read_file(&bytes, path, TL_DEBUG_FILE_MAX, NULL) >= 0;
    const bool same = read && crc32_z(0, bytes.p, bytes.n) == wanted;
    tl_buf_fini(&bytes);
    return same;
}

/* Find a debug file by the name and CRC32 from .gnu_debuglink. */
static bool by_link(char out[static 4096], const struct tl_code_file *program,
                    const struct tl_code_places *places, const char *name, uint32_t sum)
{
    const char *const slash = strrchr(program->path, '/');
    const int folder = slash ? (int)(slash - program->path) : 0;
    if (!name[0] || strchr(name, '/'))
        return false;
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
    struct file f;
    GElf_Word sum;
    bool found = false;
    out[0] = 0;
    if (program->is_elf && program->size <= TL_DEBUG_FILE_MAX && open_file(&f, program->path)) {
        if (!find_section(&f, ".symtab")) {
            const char *const name = dwelf_elf_gnu_debuglink(f.elf, &sum);
            found = by_id(out, places, id) || (name && by_link(out, program, places, name, sum));
        }
        close_file(&f);
    }
    if (!found)
        out[0] = 0;
    return found;
}
