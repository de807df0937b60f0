/* SPDX-License-Identifier: MIT */
/*
 * Source files: stored as images with special names (lake.h). A path in debug information is
 * resolved to the stored file that shares most of its last components, among those uploaded for its
 * image if there are any, otherwise among those for all images.
 */
#include "lake_insns.h"
#include "query/debuginfo.h"
#include "query/query.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX  (4u << 20)
#define PARTS_MAX 64

/* Last components of a path, with "." removed and ".." resolved. */
struct parts {
    struct tl_bytes v[PARTS_MAX];
    size_t n;
};

static void split(const char *path, struct parts *out)
{
    out->n = 0;
    while (*path) {
        const size_t n = strcspn(path, "/\\");
        const bool up = n == 2 && path[0] == '.' && path[1] == '.';
        if (up && out->n > 0) {
            out->n--;
        } else if (n > 0 && !(n == 1 && path[0] == '.') && !up) {
            if (out->n == PARTS_MAX)
                memmove(out->v, out->v + 1, --out->n * sizeof *out->v);
            out->v[out->n++] = (struct tl_bytes){(const uint8_t *)path, n};
        }
        path += n + (path[n] != '\0');
    }
}

/* Number of equal components at the ends. */
static size_t alike(const struct parts *a, const struct parts *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->v[a->n - 1 - n].n == b->v[b->n - 1 - n].n &&
           !memcmp(a->v[a->n - 1 - n].p, b->v[b->n - 1 - n].p, a->v[a->n - 1 - n].n))
        n++;
    return n;
}

struct search {
    struct parts wanted;
    const char *image; /* hash of the image built from it */
    size_t best;
    char hash[72];
};

/* Among equal matches the newest wins. */
static int match(void *context, const struct tl_catalog_image *image)
{
    struct search *const search = context;
    struct parts parts;
    if (!tl_is_source(image->name))
        return TL_OK;
    const char *path = image->name + strlen(TL_SOURCE_PREFIX);
    const bool of_one =
        strspn(path, "0123456789abcdef") == TL_SOURCE_IMAGE && path[TL_SOURCE_IMAGE] == ':';
    if (of_one && strncmp(path, search->image + 7, TL_SOURCE_IMAGE) != 0)
        return TL_OK;
    split(path + (of_one ? TL_SOURCE_IMAGE + 1 : 0), &parts);
    size_t n = alike(&search->wanted, &parts);
    if (n > 0 && of_one)
        n += PARTS_MAX;
    if (n == 0 || n < search->best)
        return TL_OK;
    search->best = n;
    snprintf(search->hash, sizeof search->hash, "%s", image->hash);
    return TL_OK;
}

/* Get the text of the file that matches a path. TL_NOTFOUND: none was uploaded. */
static int read_text(struct tl_lake *lake, const char *image, const char *path, struct tl_buf *text,
                     struct tl_fail *fail)
{
    struct search search = {.image = image};
    char key[128];
    split(path, &search.wanted);
    int r = lake->catalog->ops->images(lake->catalog, match, &search, fail);
    if (r >= 0 && search.best == 0)
        return TL_NOTFOUND;
    snprintf(key, sizeof key, "i/%s", search.hash + (r >= 0 ? 7 : 0));
    if (r >= 0)
        r = tl_backend_get_all(lake->backend, key, text, fail);
    if (r < 0)
        return r;
    const uint8_t *const end = text->n ? memchr(text->p, '\n', text->n) : NULL;
    tl_buf_drop(text, end ? (size_t)(end + 1 - text->p) : text->n);
    return text->n > TEXT_MAX ? TL_LIMIT : TL_OK;
}

struct asked {
    struct tl_source_file *out;
    uint32_t frame;
    char image[72];
};

static int keep(void *context, const struct tl_insn_row *row)
{
    struct asked *const asked = context;
    struct tl_source_file *const out = asked->out;
    const size_t n = row->n_inlined;
    const char *file = row->file;
    out->line = row->line;
    if (asked->frame > n)
        return TL_NOTFOUND;
    if (asked->frame > 0) {
        const struct tl_insn_inlined *const inlined = &row->inlined[n - asked->frame];
        file = inlined->file;
        out->line = inlined->line;
    }
    snprintf(out->why, sizeof out->why, "%s",
             *file         ? ""
             : *row->lacks ? row->lacks
                           : "there is no instruction, or no image has it");
    snprintf(asked->image, sizeof asked->image, "%s", row->image);
    out->file = strdup(file);
    return out->file ? TL_OK : TL_NOMEM;
}

int tl_lake_source(struct tl_lake *lake, const char *trace, const char *stream, uint64_t insn,
                   uint32_t frame, struct tl_source_file *out, struct tl_fail *fail)
{
    *out = (struct tl_source_file){0};
    struct asked asked = {.out = out, .frame = frame};
    int r = tl_lake_insns(lake, trace, stream, insn, 1, keep, &asked, fail);
    if (r == TL_NOTFOUND && frame > 0 && (!fail || !fail->text[0]))
        return tl_fail_set(fail, r, "fewer than %u functions are inlined there", frame);
    if (r >= 0 && !out->file)
        return tl_fail_set(fail, TL_NOTFOUND, "instruction %llu is not there",
                           (unsigned long long)insn);
    if (r < 0 || !out->file[0])
        return r;
    r = read_text(lake, asked.image, out->file, &out->text, fail);
    if (r == TL_NOTFOUND || r == TL_LIMIT) {
        snprintf(out->why, sizeof out->why, "%s",
                 r == TL_LIMIT ? "the source file is larger than 4 MiB"
                               : "the source file was not given: tracelake images --source DIR");
        tl_buf_reset(&out->text);
        return TL_OK;
    }
    out->has_text = r >= 0;
    return r;
}

void tl_source_file_fini(struct tl_source_file *source)
{
    free(source->file);
    tl_buf_fini(&source->text);
    *source = (struct tl_source_file){0};
}
