/* SPDX-License-Identifier: MIT */
/*
 * Puts, binds, fetches and removes program images. Images come: each is stored once, by its hash,
 * and traces that were decoded without it are decoded again with it, so that the order in which
 * programs and traces arrive does not matter.
 */
#include "lake/lakeint.h"
#include "share/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int tl_lake_put_image(struct tl_lake *lake, const char *name, struct tl_bytes content,
                      struct tl_image_row *row, struct tl_fail *fail)
{
    struct tl_backend *backend = lake->backend;
    char key[96], name_key[96];
    int r = tl_image_describe(name, content, row);
    if (r < 0)
        return tl_fail_set(fail, (enum tl_err)r, "cannot hash an image");
    tl_lake_want_image(lake, row->hash);
    bool announced;
    r = tl_image_is_announced(lake, row->hash, &announced, fail);
    if (r < 0)
        return r;
    const bool there = tl_lake_has_image(lake, row->hash);
    const bool known = there && tl_image_is_intact(lake, row->hash);
    if (known && announced)
        return TL_OK;
    tl_image_key(key, row->hash);
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
        r = redecode_users(lake, row, there && announced, fail);
    return r < 0 ? r : lake->catalog->ops->announce_image(lake->catalog, row->hash, fail);
}

/* The setup with the image, as text that ends in NUL. */
static int add_image(const char *setup_text, const struct tl_lake_binding *binding, unsigned space,
                     struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_setup setup;
    tl_setup_init(&setup);
    int r = tl_setup_parse(&setup, setup_text, strlen(setup_text), fail);
    if (r >= 0)
        r = tl_grow(&setup.images, &setup.cap_images, setup.n_images + 1, sizeof(*setup.images));
    if (r >= 0) {
        struct tl_setup_image *image = &setup.images[setup.n_images++];
        *image = (struct tl_setup_image){.file = strdup(binding->hash),
                                         .address = binding->address,
                                         .offset = binding->offset,
                                         .length = binding->length ? binding->length : UINT64_MAX,
                                         .space = space,
                                         .context = binding->context,
                                         .span = binding->span};
        r = image->file ? tl_setup_write(&setup, out) : TL_NOMEM;
    }
    if (r >= 0)
        r = tl_buf_add(out, "", 1);
    tl_setup_fini(&setup);
    return r;
}

/* Returns 1 if it is to be tried again: another image has come meanwhile, for example. */
static int try_to_bind(struct tl_trace *trace, const struct tl_lake_binding *binding,
                       unsigned space, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    pthread_mutex_lock(&trace->lock);
    char *const from = strdup(trace->setup);
    pthread_mutex_unlock(&trace->lock);
    int r = from ? add_image(from, binding, space, &text, fail) : TL_NOMEM;
    if (r >= 0)
        r = tl_trace_redecode(trace, from, (const char *)text.p, fail);
    if (r == TL_AGAIN) {
        pthread_mutex_lock(&trace->lock);
        r = strcmp(from, trace->setup) != 0 ? 1 : r;
        pthread_mutex_unlock(&trace->lock);
    }
    tl_buf_fini(&text);
    free(from);
    return r;
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
    int r = tl_trace_pin(trace, TL_PIN_ASK, fail);
    if (r >= 0) {
        while ((r = try_to_bind(trace, binding, (unsigned)bits, fail)) > 0)
            ;
        tl_trace_unpin(trace);
    }
    tl_trace_put(trace);
    return r;
}
