/* SPDX-License-Identifier: MIT */
#include "import/code_files.h"

#include "image/elf_places.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *tl_build_id_text(const struct tl_build_id *id, char out[static 2 * TL_BUILD_ID_MAX + 1])
{
    out[0] = 0;
    for (unsigned i = 0; i < id->n && i < TL_BUILD_ID_MAX; i++)
        snprintf(out + 2 * i, 3, "%02x", id->v[i]);
    return out;
}

bool tl_code_is_anonymous(const char *name)
{
    static const char *const beginnings[] = {
        "//anon", "/anon_hugepage", "/memfd:", "/dev/zero", "/SYSV", "anon_inode:"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
            return true;
    const bool is_kernel = !strncmp(name, "[kernel", 7) || !strncmp(name, "[guest.kernel", 13);
    const bool is_heap = !strncmp(name, "[heap", 5) || !strncmp(name, "[stack", 6) ||
                         !strncmp(name, "[vsyscall", 9) || !strncmp(name, "[uprobes", 8) ||
                         !strncmp(name, "[anon", 5);
    return name[0] == 0 || (!is_kernel && is_heap);
}

/* ---- ELF ------------------------------------------------------------------------------------- */

static void find_id(Elf *elf, struct tl_build_id *id)
{
    size_t n = 0;
    if (elf_getphdrnum(elf, &n) != 0)
        n = 0;
    for (size_t i = 0; i < n && id->n == 0; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE)
            continue;
        Elf_Data *const data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
                                                    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
        GElf_Nhdr note;
        size_t name, desc;
        for (size_t at = 0; data && (at = gelf_getnote(data, at, &note, &name, &desc)) > 0;) {
            const char *const base = data->d_buf;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                !memcmp(base + name, "GNU", 4) && note.n_descsz <= TL_BUILD_ID_MAX) {
                id->n = (uint8_t)note.n_descsz;
                memcpy(id->v, base + desc, id->n);
                break;
            }
        }
    }
}

/* What there is to know of the file at out->path. False: there is no such file, or it has another
 * build ID than `id`. */
static bool look_at(struct tl_code_file *out, enum tl_code_kind kind, const struct tl_build_id *id,
                    const char *symbol)
{
    struct stat st;
    const int fd = open(out->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    struct tl_build_id its = {0};
    out->is_elf = false;
    out->size = (uint64_t)st.st_size;
    Elf *const elf =
        elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        GElf_Ehdr header;
        out->is_elf = true;
        find_id(elf, &its);
        if (kind == TL_CODE_MODULE)
            (void)tl_elf_section(elf, ".text", &out->text_offset, &out->text_size);
        if (kind == TL_CODE_KERNEL && symbol)
            out->has_reference = tl_elf_symbol(elf, symbol, &out->reference);
        if (gelf_getehdr(elf, &header))
            out->is_core = header.e_type == ET_CORE;
    }
    if (elf)
        elf_end(elf);
    close(fd);
    if (kind != TL_CODE_FILE && !out->is_elf)
        return false;
    const bool other =
        id->n > 0 && its.n > 0 && (its.n != id->n || memcmp(its.v, id->v, id->n) != 0);
    return !other && (kind != TL_CODE_MODULE || out->text_size > 0);
}

/* ---- places ---------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static bool set_path(struct tl_code_file *out,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out->path, sizeof out->path, format, args);
    va_end(args);
    return n > 0 && (size_t)n < sizeof out->path;
}

/*
 * Where copies of a cache come from systems without symbolic links, a small file has what the link
 * said: the path relative to its folder. Replaces out->path by where it leads. False: it is no such
 * file.
 */
static bool follow_text(struct tl_code_file *out)
{
    char text[1024];
    const int fd = open(out->path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    char *const slash = strrchr(out->path, '/');
    if (fd >= 0)
        close(fd);
    if (n <= 3 || n == (ssize_t)sizeof text || !slash || memcmp(text, "../", 3) != 0 ||
        memchr(text, 0, (size_t)n))
        return false;
    const size_t folder = (size_t)(slash + 1 - out->path);
    if (folder + (size_t)n >= sizeof out->path)
        return false;
    memcpy(out->path + folder, text, (size_t)n);
    out->path[folder + (size_t)n] = 0;
    return true;
}

/* The file that a cache's entry at out->path holds: the entry is a folder, or the file itself. */
static bool in_entry(struct tl_code_file *out, enum tl_code_kind kind, const struct tl_build_id *id,
                     const char *symbol)
{
    static const char *const names[] = {"/elf", "/vdso", "/kcore", "/vmlinux", ""};
    const size_t n = strlen(out->path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(out->path + n, sizeof out->path - n, "%s", names[i]);
        if (look_at(out, kind, id, symbol) && out->is_elf)
            return true;
    }
    return false;
}

/* Files of the cache are named by their build ID: a copy of the kernel's core has none in it. */
static bool in_cache(struct tl_code_file *out, const struct tl_code_places *places,
                     enum tl_code_kind kind, const struct tl_build_id *id, const char *symbol)
{
    char text[2 * TL_BUILD_ID_MAX + 1], home[2048];
    const char *dir = places->buildid_dir;
    if (id->n < 2)
        return false;
    if (!dir) {
        const char *const at = getenv("HOME");
        snprintf(home, sizeof home, "%s/.debug", at ? at : "");
        dir = home;
    }
    tl_build_id_text(id, text);
    return set_path(out, "%s/.build-id/%.2s/%s", dir, text, text + 2) &&
           (in_entry(out, kind, id, symbol) ||
            (follow_text(out) && in_entry(out, kind, id, symbol)));
}

static bool by_name(struct tl_code_file *out, const struct tl_code_places *places,
                    enum tl_code_kind kind, const char *name, const struct tl_build_id *id)
{
    static const char deleted[] = " (deleted)";
    const size_t n = strlen(name), end = sizeof deleted - 1;
    const bool is_deleted = n > end && !strcmp(name + n - end, deleted);
    if (name[0] != '/' || (is_deleted && id->n == 0))
        return false;
    return set_path(out, "%s%.*s", places->symfs ? places->symfs : "",
                    (int)(is_deleted ? n - end : n), name) &&
           look_at(out, kind, id, NULL);
}

/* A given file counts, whatever its build ID: who names it knows. */
static bool given(struct tl_code_file *out, const char *path, const char *symbol)
{
    const struct tl_build_id any = {0};
    return path &&
           ((set_path(out, "%s", path) && look_at(out, TL_CODE_KERNEL, &any, symbol)) ||
            (set_path(out, "%s/kcore", path) && look_at(out, TL_CODE_KERNEL, &any, symbol)));
}

static bool find_kernel(struct tl_code_file *out, const struct tl_code_places *places,
                        const struct tl_build_id *id, const char *symbol, const char *release)
{
    static const char *const forms[] = {"%s/boot/vmlinux-%s", "%s/usr/lib/debug/boot/vmlinux-%s",
                                        "%s/lib/modules/%s/build/vmlinux",
                                        "%s/usr/lib/debug/lib/modules/%s/vmlinux"};
    if (given(out, places->kcore, symbol) || given(out, places->vmlinux, symbol) ||
        in_cache(out, places, TL_CODE_KERNEL, id, symbol))
        return true;
    /* By name alone only with its build ID: this machine's kernel is seldom the one that ran. */
    if (!release[0] || (!places->symfs && id->n == 0))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const int n = snprintf(out->path, sizeof out->path, forms[i],
                               places->symfs ? places->symfs : "", release);
        if (n > 0 && (size_t)n < sizeof out->path && look_at(out, TL_CODE_KERNEL, id, symbol))
            return true;
    }
    return false;
}

static bool is_compressed(const char *name)
{
    const char *const end = strrchr(name, '.');
    return end && (!strcmp(end, ".xz") || !strcmp(end, ".gz") || !strcmp(end, ".zst"));
}

int tl_code_find(struct tl_code_file *out, const struct tl_code_places *places,
                 enum tl_code_kind kind, const char *name, const struct tl_build_id *id,
                 const char *symbol, const char *release)
{
    *out = (struct tl_code_file){0};
    if (kind == TL_CODE_KERNEL)
        return find_kernel(out, places, id, symbol, release) ? TL_OK : TL_NOTFOUND;
    if (in_cache(out, places, kind, id, NULL) || by_name(out, places, kind, name, id))
        return TL_OK;
    return kind == TL_CODE_MODULE && is_compressed(name) ? TL_UNSUPPORTED : TL_NOTFOUND;
}
