/* SPDX-License-Identifier: MIT */
/*
 * Places are tried from the most certain to the least: files given explicitly, perf's cache by
 * build ID, then names. The kernel, and modules without a path, are taken by name alone only below
 * the folder of the traced machine, since this machine's are rarely the traced ones.
 */
#include "import/code_files.h"

#include "image/elf_places.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

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

/* An open ELF file. Kernel modules may be compressed. */
struct opened {
    Elf *elf; /* NULL: not an ELF file */
    bool is_packed;
    struct tl_buf unpacked; /* memory of `elf`; unused if libdw decompresses */
};

enum { UNPACKED_MAX = 256 << 20 };

/* Decompress to o->unpacked. False: not a complete frame, or out of memory. */
static bool unpack_zstd(struct opened *o, int fd)
{
    uint8_t in[16 << 10];
    ZSTD_DStream *const zstd = ZSTD_createDStream();
    ZSTD_inBuffer from = {in, 0, 0};
    ZSTD_outBuffer to = {0};
    size_t rest = zstd ? 1 : 0;
    bool ok = zstd != NULL;
    off_t at = 0;
    while (ok && rest > 0) {
        if (from.pos == from.size && to.pos < to.size + (to.size == 0)) {
            const ssize_t n = pread(fd, in, sizeof in, at);
            ok = n > 0;
            from = (ZSTD_inBuffer){in, ok ? (size_t)n : 0, 0};
            at += ok ? n : 0;
        }
        ok = ok && o->unpacked.n <= UNPACKED_MAX && tl_buf_reserve(&o->unpacked, sizeof in) >= 0;
        if (!ok)
            break;
        to = (ZSTD_outBuffer){o->unpacked.p + o->unpacked.n, sizeof in, 0};
        rest = ZSTD_decompressStream(zstd, &to, &from);
        ok = !ZSTD_isError(rest);
        o->unpacked.n += ok ? to.pos : 0;
    }
    ZSTD_freeDStream(zstd);
    return ok;
}

static void open_elf(struct opened *o, int fd, enum tl_code_kind kind)
{
    static const uint8_t zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
    uint8_t magic[4] = {0};
    *o = (struct opened){0};
    if (fd < 0 || elf_version(EV_CURRENT) == EV_NONE)
        return;
    if (kind == TL_CODE_MODULE && pread(fd, magic, sizeof magic, 0) == sizeof magic)
        o->is_packed = memcmp(magic, ELFMAG, SELFMAG) != 0;
    if (!o->is_packed)
        o->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    else if (memcmp(magic, zstd, sizeof zstd) != 0)
        o->elf = dwelf_elf_begin(fd);
    else if (unpack_zstd(o, fd)) /* not supported by every libdw */
        o->elf = elf_memory((char *)o->unpacked.p, o->unpacked.n);
}

static void close_elf(struct opened *o)
{
    if (o->elf)
        elf_end(o->elf);
    tl_buf_fini(&o->unpacked);
}

/* Examine the file at out->path and fill in `out`. False: no such file, or its build ID differs
 * from `id`. */
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
    out->is_elf = out->is_packed = false;
    out->size = (uint64_t)st.st_size;
    struct opened opened;
    open_elf(&opened, fd, kind);
    Elf *const elf = opened.elf;
    if (elf && elf_kind(elf) == ELF_K_ELF) {
        GElf_Ehdr header;
        size_t size = 0;
        out->is_elf = true;
        out->is_packed = opened.is_packed && elf_rawfile(elf, &size);
        out->size = out->is_packed ? size : out->size;
        find_id(elf, &its);
        if (kind == TL_CODE_MODULE)
            (void)tl_elf_section(elf, ".text", &out->text_offset, &out->text_size);
        if (kind == TL_CODE_KERNEL && symbol)
            out->has_reference = tl_elf_symbol(elf, symbol, &out->reference);
        if (gelf_getehdr(elf, &header))
            out->is_core = header.e_type == ET_CORE;
    }
    close_elf(&opened);
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
 * In cache copies from systems without symbolic links, a small file contains the link's target,
 * relative to its folder. Replace out->path by the target. False: not such a file.
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

/* Find the file of the cache entry at out->path: the entry is a folder, or the file itself. */
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

/* Search the cache. Its files are named by build ID, since a copy of the kernel's core contains
 * none. */
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

/* An explicitly given file is used regardless of its build ID. */
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
    /* By name only with its build ID: this machine's kernel is rarely the traced one. */
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

/* File name suffixes of compressed modules. */
static const char *const packed_ends[] = {".xz", ".gz", ".zst"};

/* Find a module, compressed or not, by either form of its name. */
static bool module_by_name(struct tl_code_file *out, const struct tl_code_places *places,
                           const char *name, const struct tl_build_id *id)
{
    char other[4096];
    size_t n = strlen(name);
    if (n + 8 > sizeof other)
        return false;
    if (by_name(out, places, TL_CODE_MODULE, name, id))
        return true;
    for (size_t i = 0; i < sizeof packed_ends / sizeof *packed_ends; i++) {
        const size_t end = strlen(packed_ends[i]);
        if (n > end && !strcmp(name + n - end, packed_ends[i])) {
            n -= end;
            break;
        }
    }
    memcpy(other, name, n);
    other[n] = 0;
    if (by_name(out, places, TL_CODE_MODULE, other, id))
        return true;
    for (size_t i = 0; i < sizeof packed_ends / sizeof *packed_ends; i++) {
        snprintf(other + n, sizeof other - n, "%s", packed_ends[i]);
        if (by_name(out, places, TL_CODE_MODULE, other, id))
            return true;
    }
    return false;
}

/* Is the file at `path`, up to its ".ko", the module of this name? Dashes count as underscores. */
static bool is_module(const char *path, const char *name, size_t n)
{
    const char *const slash = strrchr(path, '/');
    const char *const file = slash ? slash + 1 : path;
    for (size_t i = 0; i < n; i++)
        if (file[i] != name[i] && !(file[i] == '-' && name[i] == '_'))
            return false;
    return !strncmp(file + n, ".ko", 3);
}

/* Find "[name]" in the list depmod makes of a kernel's modules, relative to their folder. Without a
 * build ID this machine's modules are not used. */
static bool module_by_list(struct tl_code_file *out, const struct tl_code_places *places,
                           const char *name, const struct tl_build_id *id, const char *release)
{
    const size_t n = strcspn(name + 1, "]");
    const char *const root = places->symfs ? places->symfs : "";
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    if (name[0] != '[' || !release[0] || (!places->symfs && id->n == 0) ||
        !set_path(out, "%s/lib/modules/%s/modules.dep", root, release))
        return false;
    FILE *const list = fopen(out->path, "re");
    while (list && !found && getline(&line, &cap, list) > 0) {
        line[strcspn(line, ":\n")] = 0;
        found = is_module(line, name + 1, n) &&
                (line[0] == '/' ? set_path(out, "%s%s", root, line)
                                : set_path(out, "%s/lib/modules/%s/%s", root, release, line)) &&
                look_at(out, TL_CODE_MODULE, id, NULL);
    }
    if (list)
        fclose(list);
    free(line);
    return found;
}

int tl_code_find(struct tl_code_file *out, const struct tl_code_places *places,
                 enum tl_code_kind kind, const char *name, const struct tl_build_id *id,
                 const char *symbol, const char *release)
{
    *out = (struct tl_code_file){0};
    if (kind == TL_CODE_KERNEL)
        return find_kernel(out, places, id, symbol, release) ? TL_OK : TL_NOTFOUND;
    const bool found = in_cache(out, places, kind, id, NULL) ||
                       (kind == TL_CODE_MODULE ? module_by_name(out, places, name, id) ||
                                                     module_by_list(out, places, name, id, release)
                                               : by_name(out, places, kind, name, id));
    return found ? TL_OK : TL_NOTFOUND;
}

int tl_code_unpack(const struct tl_code_file *file, struct tl_buf *out)
{
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    struct opened opened;
    size_t n = 0;
    open_elf(&opened, fd, TL_CODE_MODULE);
    const char *const bytes = opened.elf ? elf_rawfile(opened.elf, &n) : NULL;
    const int r = bytes ? tl_buf_add(out, bytes, n) : TL_IO;
    close_elf(&opened);
    if (fd >= 0)
        close(fd);
    return r;
}
