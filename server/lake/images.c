/* SPDX-License-Identifier: MIT */
/*
 * Program images: stored once by the hash of their content, found by hash or build ID. Traces name
 * them by hash, so that no upload can change what a trace was decoded with.
 */
#include "lake/lakeint.h"
#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tl_image_key(char out[static 96], const char *hash)
{
    snprintf(out, 96, "i/%.64s", hash + 7);
}

struct build_id_search {
    const char *build_id;
    char *hash;
};

static int match_build_id(void *context, const struct tl_catalog_image *image)
{
    struct build_id_search *search = context;
    if (strcmp(image->build_id, search->build_id) == 0)
        snprintf(search->hash, 72, "%s", image->hash); /* the newest one wins */
    return TL_OK;
}

int tl_lake_image_hash(struct tl_lake *lake, const char *name, char out[static 72])
{
    char key[96];
    uint64_t size;
    out[0] = '\0';
    if (strncmp(name, "build-id:", 9) == 0 && name[9]) {
        struct build_id_search search = {name + 9, out};
        const int r = lake->catalog->ops->images(lake->catalog, match_build_id, &search, NULL);
        if (r < 0)
            return r;
    } else if (tl_hash_valid(name)) {
        snprintf(out, 72, "%s", name);
    }
    if (!out[0])
        return TL_NOTFOUND;
    tl_image_key(key, out);
    return lake->backend->ops->size(lake->backend, key, &size, NULL);
}

/* What is wrong with an image, and what mends it. */
static int complain(struct tl_lake *lake, const char *hash, enum tl_err err, struct tl_fail *fail)
{
    struct tl_image_row *rows = NULL;
    const char *name = "FILE";
    size_t n = 0;
    const int r = tl_lake_images(lake, &rows, &n);
    for (size_t i = 0; i < n && r >= 0; i++)
        if (strcmp(rows[i].hash, hash) == 0 && rows[i].name[0])
            name = rows[i].name;
    tl_fail_set(fail, err,
                "image %.80s is %s; `tracelake images %.80s` with the same file mends it", hash,
                err == TL_BAD ? "damaged in the store" : "not there", name);
    free(rows);
    return (int)err;
}

int tl_lake_image_content(struct tl_lake *lake, const char *hash, struct tl_buf *out,
                          struct tl_fail *fail)
{
    char key[96], found[TL_HASH_TEXT];
    const size_t before = out->n;
    tl_image_key(key, hash);
    int r = tl_backend_get_all(lake->backend, key, out, fail);
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){out->p + before, out->n - before}, found);
    if (r >= 0 && strcmp(found, hash) != 0)
        r = TL_BAD;
    return r == TL_BAD || r == TL_NOTFOUND ? complain(lake, hash, (enum tl_err)r, fail) : r;
}

int tl_lake_image_need(struct tl_lake *lake, const char *hash, struct tl_fail *fail)
{
    char found[72];
    const int r = tl_lake_image_hash(lake, hash, found);
    return r == TL_NOTFOUND ? complain(lake, hash, TL_NOTFOUND, fail) : r;
}

int tl_lake_get_image(struct tl_lake *lake, const char *name, struct tl_image_row *row,
                      struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_image_row *rows = NULL;
    char hash[72];
    size_t n = 0;
    int r = tl_lake_image_hash(lake, name, hash);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "there is no image %.80s", name);
    r = tl_lake_images(lake, &rows, &n);
    for (size_t i = 0; i < n && r >= 0; i++)
        if (strcmp(rows[i].hash, hash) == 0)
            *row = rows[i];
    free(rows);
    return r < 0 ? r : tl_lake_image_content(lake, hash, out, fail);
}

bool tl_lake_has_image(struct tl_lake *lake, const char *name)
{
    char hash[72];
    return tl_lake_image_hash(lake, name, hash) >= 0;
}

struct announced_search {
    const char *hash;
    bool announced;
};

static int find_announced(void *context, const struct tl_catalog_image *image)
{
    struct announced_search *search = context;
    if (strcmp(image->hash, search->hash) == 0)
        search->announced = image->announced;
    return TL_OK;
}

/* Is the stored content the one with this hash? A damaged image cannot be told from its size. */
bool tl_image_is_intact(struct tl_lake *lake, const char *hash)
{
    struct tl_buf content = {0};
    const int r = tl_lake_image_content(lake, hash, &content, NULL);
    tl_buf_fini(&content);
    return r != TL_BAD && r != TL_NOTFOUND;
}

int tl_image_is_announced(struct tl_lake *lake, const char *hash, bool *is, struct tl_fail *fail)
{
    struct announced_search search = {hash, false};
    const int r = lake->catalog->ops->images(lake->catalog, find_announced, &search, fail);
    *is = search.announced;
    return r;
}

bool tl_lake_keeps_image(struct tl_lake *lake, const char *hash)
{
    bool announced;
    return tl_image_is_announced(lake, hash, &announced, NULL) >= 0 && announced &&
           tl_image_is_intact(lake, hash);
}

/* Find the build ID note of an ELF file, in hex, by searching for its header. */
static void find_build_id(struct tl_bytes elf, char out[static 64])
{
    static const uint8_t note[] = {3, 0, 0, 0, 'G', 'N', 'U', 0};
    out[0] = '\0';
    if (elf.n < 24 || memcmp(elf.p, "\177ELF", 4) != 0)
        return;
    const uint8_t *p = elf.p + 8;
    while ((p = memmem(p, (size_t)(elf.p + elf.n - p), note, sizeof(note)))) {
        const uint32_t name = tl_le32(p - 8), size = tl_le32(p - 4);
        const size_t left = (size_t)(elf.p + elf.n - p) - sizeof(note);
        if (name == 4 && size > 0 && size <= 31 && size <= left) {
            for (uint32_t i = 0; i < size; i++)
                snprintf(out + 2 * i, 3, "%02x", p[8 + i]);
            return;
        }
        p++;
    }
}

int tl_image_describe(const char *name, struct tl_bytes content, struct tl_image_row *row)
{
    *row = (struct tl_image_row){.size = content.n};
    snprintf(row->name, sizeof(row->name), "%s", name ? name : "");
    find_build_id(content, row->build_id);
    return tl_hash_text(content, row->hash);
}

struct image_list {
    struct tl_image_row *rows;
    size_t n, cap;
};

static int add_image_row(void *context, const struct tl_catalog_image *image)
{
    struct image_list *list = context;
    const int r = tl_grow(&list->rows, &list->cap, list->n + 1, sizeof(*list->rows));
    if (r < 0)
        return r;
    struct tl_image_row *row = &list->rows[list->n++];
    *row = (struct tl_image_row){.size = image->size};
    snprintf(row->hash, sizeof(row->hash), "%s", image->hash);
    snprintf(row->name, sizeof(row->name), "%s", image->name);
    snprintf(row->build_id, sizeof(row->build_id), "%s", image->build_id);
    return TL_OK;
}

int tl_lake_images(struct tl_lake *lake, struct tl_image_row **rows, size_t *n)
{
    struct image_list list = {0};
    const int r = lake->catalog->ops->images(lake->catalog, add_image_row, &list, NULL);
    if (r < 0) {
        free(list.rows);
        return r;
    }
    *rows = list.rows;
    *n = list.n;
    return TL_OK;
}

int tl_lake_trace_images(struct tl_lake *lake, const char *trace, struct tl_trace_images *out,
                         struct tl_fail *fail)
{
    struct tl_buf text = {0};
    *out = (struct tl_trace_images){0};
    tl_setup_init(&out->setup);
    int r = tl_lake_setup(lake, trace, &text, fail);
    if (r >= 0)
        r = tl_setup_parse(&out->setup, (const char *)text.p, text.n - 1, fail);
    tl_buf_fini(&text);
    out->there = r >= 0 ? calloc(out->setup.n_images + 1, sizeof *out->there) : NULL;
    if (r >= 0 && !out->there)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    for (size_t i = 0; r >= 0 && i < out->setup.n_images; i++) {
        const bool again =
            i > 0 && strcmp(out->setup.images[i].file, out->setup.images[i - 1].file) == 0;
        out->there[i] =
            again ? out->there[i - 1] : tl_lake_has_image(lake, out->setup.images[i].file);
    }
    return r;
}

void tl_trace_images_fini(struct tl_trace_images *images)
{
    tl_setup_fini(&images->setup);
    free(images->there);
    images->there = NULL;
}

bool tl_is_source(const char *name)
{
    return strncmp(name, TL_SOURCE_PREFIX, strlen(TL_SOURCE_PREFIX)) == 0;
}

/* The row last: until then it can be tried again. */
int tl_image_discard(struct tl_lake *lake, const char *hash, struct tl_fail *fail)
{
    struct tl_backend *const backend = lake->backend;
    char key[96];
    tl_image_key(key, hash);
    int r = backend->ops->remove(backend, key, fail);
    key[0] = 'n';
    if (r >= 0)
        r = backend->ops->remove(backend, key, fail);
    return r < 0 ? r : lake->catalog->ops->remove_image(lake->catalog, hash, fail);
}
