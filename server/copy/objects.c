/* SPDX-License-Identifier: MIT */
/*
 * Copies objects and logs from one store to another. What is there already is compared byte for
 * byte and never replaced, so that an interrupted copy can be repeated.
 */
#include "copy/copy.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH_BYTES = 32 << 20, BATCH = 64 };

/* Unpacked raw segments are logs. Everything else is an object. */
static bool is_log(const char *key)
{
    const size_t n = strlen(key);
    return n > 4 && strcmp(key + n - 4, ".seg") == 0;
}

static int read_whole(struct tl_backend *backend, const char *key, struct tl_buf *out,
                      struct tl_fail *fail)
{
    struct tl_log *log;
    uint64_t size;
    if (!is_log(key))
        return tl_backend_get_all(backend, key, out, fail);
    int r = backend->ops->log_open(backend, key, false, &log, &size, fail);
    if (r < 0)
        return r;
    const size_t before = out->n;
    r = backend->ops->log_read(log, 0, (size_t)size, out, fail);
    if (r >= 0 && out->n - before != size)
        r = tl_fail_set(fail, TL_IO, "%s: %zu of %llu bytes could be read", key, out->n - before,
                        (unsigned long long)size);
    backend->ops->log_close(log);
    return r;
}

static int write_log(struct tl_backend *backend, const char *key, struct tl_bytes bytes,
                     struct tl_fail *fail)
{
    struct tl_log *log;
    uint64_t size;
    int r = backend->ops->log_open(backend, key, true, &log, &size, fail);
    if (r < 0)
        return r;
    if (size > 0)
        r = backend->ops->log_truncate(log, 0, fail);
    if (r >= 0)
        r = backend->ops->log_write(log, 0, &bytes, 1, fail);
    if (r >= 0)
        r = backend->ops->log_sync(log, fail);
    backend->ops->log_close(log);
    return r;
}

/* Does the store have exactly these bytes? */
static int has(struct tl_backend *backend, const char *key, struct tl_bytes bytes, bool *same,
               struct tl_fail *fail)
{
    struct tl_buf there = {0};
    uint64_t size;
    *same = false;
    int r = backend->ops->size(backend, key, &size, fail);
    if (r >= 0 && size == bytes.n)
        r = read_whole(backend, key, &there, fail);
    if (r >= 0)
        *same = size == bytes.n && there.n == bytes.n &&
                (bytes.n == 0 || memcmp(there.p, bytes.p, bytes.n) == 0);
    tl_buf_fini(&there);
    return r == TL_NOTFOUND ? TL_OK : r;
}

static int compare(struct tl_backend *backend, const char *key, struct tl_bytes bytes,
                   struct tl_fail *fail)
{
    bool same;
    const int r = has(backend, key, bytes, &same, fail);
    if (r >= 0 && !same)
        return tl_fail_set(fail, TL_IO, "%s was stored, and reads back as something else", key);
    return r;
}

static int report(const struct tl_copier *c, uint64_t bytes)
{
    return c->moved ? c->moved(c->context, bytes) : TL_OK;
}

int tl_copier_flush(struct tl_copier *c, struct tl_fail *fail)
{
    const char *key = (const char *)c->keys.p;
    const uint8_t *bytes = c->bytes.p;
    for (size_t i = 0; i < c->n; i++) {
        c->objects[i] = (struct tl_object){key, {bytes, c->sizes[i]}};
        key += strlen(key) + 1;
        bytes += c->sizes[i];
    }
    int r = c->n ? c->to->ops->put_all(c->to, c->objects, c->n, fail) : TL_OK;
    for (size_t i = 0; i < c->n && r >= 0; i++) {
        r = compare(c->to, c->objects[i].key, c->objects[i].bytes, fail);
        if (r >= 0)
            r = report(c, c->sizes[i]);
    }
    c->n = 0;
    tl_buf_reset(&c->keys);
    tl_buf_reset(&c->bytes);
    return r;
}

static int add_log(struct tl_copier *c, const char *key, struct tl_bytes bytes,
                   struct tl_fail *fail)
{
    int r = write_log(c->to, key, bytes, fail);
    if (r >= 0)
        r = compare(c->to, key, bytes, fail);
    return r < 0 ? r : report(c, bytes.n);
}

int tl_copier_add(struct tl_copier *c, const char *key, uint64_t size, struct tl_fail *fail)
{
    if (c->n == BATCH || (c->n > 0 && c->bytes.n + size > BATCH_BYTES)) {
        const int flushed = tl_copier_flush(c, fail);
        if (flushed < 0)
            return flushed;
    }
    const size_t before = c->bytes.n;
    int r = read_whole(c->from, key, &c->bytes, fail);
    if (r < 0) {
        c->bytes.n = before;
        return r;
    }
    const struct tl_bytes bytes = {c->bytes.p + before, c->bytes.n - before};
    bool same;
    r = has(c->to, key, bytes, &same, fail);
    if (r >= 0 && !same && !is_log(key)) {
        if (tl_grow(&c->objects, &c->cap_objects, c->n + 1, sizeof *c->objects) < 0 ||
            tl_grow(&c->sizes, &c->cap_sizes, c->n + 1, sizeof *c->sizes) < 0 ||
            tl_buf_add(&c->keys, key, strlen(key) + 1) < 0)
            return tl_fail_set(fail, TL_NOMEM, "no memory");
        c->sizes[c->n++] = bytes.n;
        return TL_OK;
    }
    if (r >= 0 && same)
        r = report(c, bytes.n);
    else if (r >= 0)
        r = add_log(c, key, bytes, fail);
    c->bytes.n = before;
    return r;
}

void tl_copier_fini(struct tl_copier *c)
{
    tl_buf_fini(&c->keys);
    tl_buf_fini(&c->bytes);
    free(c->objects);
    free(c->sizes);
}
