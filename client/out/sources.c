/* SPDX-License-Identifier: MIT */
/*
 * Finds source lines of instructions in several ELF files, each at its load address. Separate from
 * symbols, so that output without lines does not read any debug information.
 */
#include "out/sources.h"

#include "dwarf/dwarf.h"
#include "out/codetext.h"
#include "terminal/plain.h"
#include "terminal/say.h"

#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)1 << 30)

struct file {
    struct tl_dwarf *dwarf;
    uint64_t bias;
};

struct tl_sources {
    struct file *files;
    size_t n, cap;
    const char *const *maps; /* "A=B" */
    size_t n_maps;
};

int tl_sources_new(struct tl_sources **out, const char *const *files, size_t n,
                   struct tl_fail *fail)
{
    struct tl_sources *const s = calloc(1, sizeof *s);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    int r = TL_OK;
    for (size_t i = 0; i < n && r >= 0; i++) {
        char path[TL_CODETEXT_PATH];
        uint64_t bias;
        tl_codetext_file(files[i], path, &bias);
        r = tl_sources_add(s, path, bias, fail);
    }
    if (r < 0)
        tl_sources_free(s);
    else
        *out = s;
    return r;
}

int tl_sources_add(struct tl_sources *s, const char *path, uint64_t bias, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    struct tl_dwarf *dwarf = NULL;
    int r = tl_grow(&s->files, &s->cap, s->n + 1, sizeof *s->files);
    if (r >= 0)
        r = tl_buf_read_file(&bytes, path, FILE_MAX, fail);
    if (r >= 0)
        r = tl_dwarf_open(&dwarf, (struct tl_bytes){bytes.p, bytes.n}, fail);
    tl_buf_fini(&bytes);
    if (r == TL_NOMEM)
        tl_fail_set(fail, r, "out of memory");
    if (r < 0)
        return r;
    if (*tl_dwarf_lacks(dwarf))
        tl_cli_warn(path, "%s", tl_dwarf_lacks(dwarf));
    s->files[s->n++] = (struct file){dwarf, bias};
    return TL_OK;
}

void tl_sources_free(struct tl_sources *sources)
{
    if (!sources)
        return;
    for (size_t i = 0; i < sources->n; i++)
        tl_dwarf_close(sources->files[i].dwarf);
    free(sources->files);
    free(sources);
}

bool tl_sources_is_map(const char *map)
{
    const char *const sign = strchr(map, '=');
    return sign && sign > map;
}

void tl_sources_map(struct tl_sources *sources, const char *const *maps, size_t n)
{
    if (!sources)
        return;
    sources->maps = maps;
    sources->n_maps = n;
}

/* Append a file's path, in the folder that it is mapped to. */
static int add_path(const struct tl_sources *s, struct tl_buf *out, const char *path)
{
    size_t longest = 0;
    const char *to = NULL;
    for (size_t i = 0; i < s->n_maps; i++) {
        const char *const sign = strchr(s->maps[i], '=');
        size_t n = (size_t)(sign - s->maps[i]);
        n -= n > 1 && s->maps[i][n - 1] == '/';
        if (n < longest || strncmp(path, s->maps[i], n) != 0 || (path[n] && path[n] != '/'))
            continue;
        longest = n;
        to = sign + 1;
    }
    int r = TL_OK;
    if (to) {
        const size_t n = strlen(to);
        char *const folder = strndup(to, n > 1 && to[n - 1] == '/' ? n - 1 : n);
        r = folder ? tl_plain_append(out, folder) : TL_NOMEM;
        free(folder);
    }
    return r == TL_OK ? tl_plain_append(out, path + longest) : r;
}

static int add_place(const struct tl_sources *s, struct tl_buf *out,
                     const struct tl_dwarf_place *place)
{
    int r = tl_buf_add(out, " ", 1);
    if (r == TL_OK)
        r = add_path(s, out, place->file);
    return r == TL_OK ? tl_buf_printf(out, ":%u", place->line) : r;
}

int tl_sources_place(struct tl_sources *s, uint64_t pc, struct tl_buf *out)
{
    struct tl_dwarf_place place;
    for (size_t i = 0; s && i < s->n; i++) {
        const struct file *const f = &s->files[i];
        if (!tl_dwarf_covers(f->dwarf, pc - f->bias))
            continue;
        const int r = tl_dwarf_at(f->dwarf, pc - f->bias, &place);
        if (r == TL_OK && *place.file && place.line)
            return add_place(s, out, &place);
        if (r < 0 && r != TL_NOTFOUND)
            return r;
    }
    return TL_OK;
}
