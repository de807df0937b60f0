/* SPDX-License-Identifier: MIT */
/* Program images: stored by the hash of their content, found by hash or build ID. */
#include "lake/lakeint.h"
#include "share/share.h"
#include "store/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void image_key(char out[static 96], const char *hash)
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
    image_key(key, out);
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
    image_key(key, hash);
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

/* Is the stored content the one with this hash? A damaged image cannot be told from its size. */
static bool is_intact(struct tl_lake *lake, const char *hash)
{
    struct tl_buf content = {0};
    const int r = tl_lake_image_content(lake, hash, &content, NULL);
    tl_buf_fini(&content);
    return r != TL_BAD && r != TL_NOTFOUND;
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

bool tl_lake_keeps_image(struct tl_lake *lake, const char *hash)
{
    struct announced_search search = {hash, false};
    const int r = lake->catalog->ops->images(lake->catalog, find_announced, &search, NULL);
    return r >= 0 && search.announced && is_intact(lake, hash);
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

struct users {
    const char *hash, *build_id; /* build_id may be NULL */
    bool failed;                 /* only of failed traces */
    struct tl_buf names;         /* of traces whose setup names the image, NUL-terminated */
};

static int find_user(void *context, const struct tl_catalog_trace *row)
{
    struct users *const users = context;
    if (users->failed && row->state != TL_TRACE_FAILED)
        return TL_OK;
    return strstr(row->setup, users->hash) ||
                   (users->build_id && strstr(row->setup, users->build_id))
               ? tl_buf_add(&users->names, row->id, strlen(row->id) + 1)
               : TL_OK;
}

/* Does another server receive the trace? That one is told then, and decodes it again itself. */
static bool is_pushed_elsewhere(struct tl_trace *trace)
{
    struct tl_backend *const backend = trace->lake->backend;
    pthread_mutex_lock(&trace->lock);
    const bool live = trace->state == TL_TRACE_LIVE && !tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    if (!live)
        return false;
    const int r = tl_trace_pin(trace, TL_PIN_TRY, NULL);
    if (r >= 0)
        tl_trace_unpin(trace);
    else if (r == TL_AGAIN)
        backend->ops->report(backend, TL_NEWS_IMAGE, trace->id);
    return r == TL_AGAIN;
}

/* A deleted trace, or another server's, is left unchanged; one that the store cannot return now is
 * to be tried again. */
static int redecode_user(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace) {
        const int r = tl_no_trace(lake, fail, id);
        return r == TL_NOTFOUND ? TL_OK
               : r == TL_AGAIN
                   ? tl_fail_set(fail, TL_UNREACHABLE, "the store did not tell of trace %.64s", id)
                   : r;
    }
    const int r = is_pushed_elsewhere(trace) ? TL_OK : tl_lake_redecode(lake, id, NULL, fail);
    tl_trace_put(trace);
    return r == TL_DENIED || r == TL_NOTFOUND || r == TL_BAD || r == TL_USAGE || r == TL_AGAIN
               ? TL_OK
               : r;
}

/* Decode traces again that were decoded without this image; `failed`: those that could not be. */
static int redecode_users(struct tl_lake *lake, const struct tl_image_row *image, bool failed,
                          struct tl_fail *fail)
{
    char build_id[80];
    snprintf(build_id, sizeof(build_id), "build-id:%s", image->build_id);
    struct users users = {
        .hash = image->hash, .build_id = image->build_id[0] ? build_id : NULL, .failed = failed};
    int r = lake->catalog->ops->traces(lake->catalog, find_user, &users, fail);
    for (size_t at = 0; r >= 0 && at < users.names.n;) {
        const char *const id = (const char *)users.names.p + at;
        at += strlen(id) + 1;
        r = redecode_user(lake, id, fail);
    }
    tl_buf_fini(&users.names);
    return r;
}

int tl_image_describe(const char *name, struct tl_bytes content, struct tl_image_row *row)
{
    *row = (struct tl_image_row){.size = content.n};
    snprintf(row->name, sizeof(row->name), "%s", name ? name : "");
    find_build_id(content, row->build_id);
    return tl_hash_text(content, row->hash);
}

int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                      struct tl_image_row *row, struct tl_fail *fail)
{
    struct tl_backend *backend = lake->backend;
    char key[96], name_key[96];
    int r = tl_image_describe(name, content, row);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "cannot hash an image");
    tl_lake_want_image(lake, row->hash);
    struct announced_search search = {row->hash, false};
    r = lake->catalog->ops->images(lake->catalog, find_announced, &search, fail);
    if (r < 0)
        return r;
    const bool there = tl_lake_has_image(lake, row->hash);
    const bool known = there && is_intact(lake, row->hash);
    if (known && search.announced)
        return TL_OK;
    image_key(key, row->hash);
    snprintf(name_key, sizeof(name_key), "n/%s", key + 2);
    const struct tl_bytes text = {(const uint8_t *)row->name, strlen(row->name)};
    r = tl_backend_put(backend, name_key, text, fail);
    if (r >= 0 && !known)
        r = tl_backend_put(backend, key, content, fail);
    if (r < 0)
        return r;
    const struct tl_catalog_image image = {
        .hash = row->hash, .name = row->name, .build_id = row->build_id, .size = row->size};
    r = lake->catalog->ops->add_image(lake->catalog, &image, fail);
    if (r >= 0 && !tl_is_source(row->name))
        r = redecode_users(lake, row, there && search.announced, fail);
    return r < 0 ? r : lake->catalog->ops->announce_image(lake->catalog, row->hash, fail);
}

/* ---- removing ---------------------------------------------------------------------------- */

/* The row last: until then it can be tried again. */
int tl_image_discard(struct tl_lake *lake, const char *hash, struct tl_fail *fail)
{
    struct tl_backend *const backend = lake->backend;
    char key[96];
    image_key(key, hash);
    int r = backend->ops->remove(backend, key, fail);
    key[0] = 'n';
    if (r >= 0)
        r = backend->ops->remove(backend, key, fail);
    return r < 0 ? r : lake->catalog->ops->remove_image(lake->catalog, hash, fail);
}

/* Is it what a user named so? */
static bool is_named(const struct tl_image_row *row, const char *name)
{
    enum { SHORTEST = 7 + 8 }; /* of the beginning of a hash */
    const size_t n = strlen(name);
    if (strncmp(name, "sha256:", 7) == 0)
        return n >= SHORTEST && strncmp(row->hash, name, n) == 0;
    return strncmp(name, "build-id:", 9) == 0 ? strcmp(row->build_id, name + 9) == 0
                                              : *name && strcmp(row->name, name) == 0;
}

/* The only image of this name. */
static int find_named(const struct tl_image_uses *uses, const char *name,
                      const struct tl_image_use **out, struct tl_fail *fail)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < uses->n; i++) {
        if (!is_named(&uses->v[i].row, name))
            continue;
        if (n++ == 0)
            *out = &uses->v[i];
    }
    if (n == 0)
        return tl_fail_set(fail, TL_NOTFOUND,
                           "there is no image %.80s; `tracelake images` lists them", name);
    return n == 1 ? TL_OK
                  : tl_fail_set(fail, TL_USAGE,
                                "%zu images are named %.64s; give the sha256:… of one", n, name);
}

static int remove_named(struct tl_lake *lake, const struct tl_image_use *use, bool force,
                        struct tl_fail *fail)
{
    const bool is_source = tl_is_source(use->row.name); /* of which only the timeline's text is */
    if (use->traces > 0 && !force && !is_source)
        return tl_fail_set(fail, TL_DENIED,
                           "%zu trace%s with it, %.64s%s; remove %s first, or give --force: until "
                           "it is uploaded again decoding has gaps",
                           use->traces, use->traces == 1 ? " is decoded" : "s are decoded",
                           use->trace, use->traces == 1 ? "" : " for one",
                           use->traces == 1 ? "that trace" : "them");
    pthread_mutex_lock(&lake->images_lock);
    const int r = tl_image_discard(lake, use->row.hash, fail);
    pthread_mutex_unlock(&lake->images_lock);
    if (r >= 0)
        tl_lake_want_image(lake, use->row.hash); /* not in the list of unused ones any more */
    return r;
}

int tl_lake_remove_image(struct tl_lake *lake, const char *name, bool force,
                         struct tl_image_row *row, struct tl_fail *fail)
{
    struct tl_image_uses uses;
    const struct tl_image_use *use;
    int r = tl_image_uses_read(&uses, lake, fail);
    if (r >= 0)
        r = find_named(&uses, name, &use, fail);
    if (r >= 0)
        *row = use->row;
    if (r >= 0)
        r = remove_named(lake, use, force, fail);
    free(uses.v);
    return r < 0 ? r : TL_OK;
}

/* ---- lists ------------------------------------------------------------------------------- */

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

int tl_lake_bind_image(struct tl_lake *lake, const char *id, const struct tl_lake_binding *binding,
                       struct tl_fail *fail)
{
    const char *const hash = binding->hash, *const space = binding->space;
    if (!tl_lake_has_image(lake, hash))
        return tl_fail_set(fail, TL_NOTFOUND, "image %.80s is not there; upload it first", hash);
    const int bits = space && *space ? tl_space_parse(space) : TL_SPACE_ANY;
    if (bits < 0)
        return tl_fail_set(fail, TL_USAGE, "\"%.32s\" is no memory space", space);
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    struct tl_setup setup;
    struct tl_buf text = {0};
    tl_setup_init(&setup);
    pthread_mutex_lock(&trace->lock);
    int r = tl_setup_parse(&setup, trace->setup, strlen(trace->setup), fail);
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    if (r >= 0)
        r = tl_grow(&setup.images, &setup.cap_images, setup.n_images + 1, sizeof(*setup.images));
    if (r >= 0) {
        struct tl_setup_image *image = &setup.images[setup.n_images++];
        *image = (struct tl_setup_image){.file = strdup(hash),
                                         .address = binding->address,
                                         .offset = binding->offset,
                                         .length = binding->length ? binding->length : UINT64_MAX,
                                         .space = (unsigned)bits,
                                         .context = binding->context,
                                         .span = binding->span};
        r = image->file ? tl_setup_write(&setup, &text) : TL_NOMEM;
    }
    if (r >= 0)
        r = tl_buf_add(&text, "", 1);
    if (r >= 0)
        r = tl_lake_redecode(lake, id, (const char *)text.p, fail);
    tl_buf_fini(&text);
    tl_setup_fini(&setup);
    return r;
}
