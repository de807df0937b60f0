/* SPDX-License-Identifier: MIT */
/*
 * Checks keys, and builds common operations from those of a backend. Keys become paths, so that
 * none may leave the store's folder or name a hidden file.
 */
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

void tl_backend_free(struct tl_backend *backend)
{
    if (backend)
        backend->ops->destroy(backend);
}

static bool key_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool tl_key_valid(const char *key)
{
    if (!*key || strlen(key) > 512)
        return false;
    for (const char *p = key;; p++) {
        if (!key_char(*p) || *p == '.')
            return false;
        while (key_char(*p))
            p++;
        if (!*p)
            return true;
        if (*p != '/')
            return false;
    }
}

struct tl_bytes tl_key_owner(const char *key)
{
    const char *const slash = strchr(key, '/');
    const char *const owner = slash ? slash + 1 : key;
    return (struct tl_bytes){(const uint8_t *)owner, strcspn(owner, "/")};
}

bool tl_lease_guards(const char *name, const char *key)
{
    const struct tl_bytes owner = tl_key_owner(key);
    return strcmp(name, TL_LEASE_ALL) == 0 ||
           (strlen(name) == owner.n && memcmp(name, owner.p, owner.n) == 0);
}

int tl_backend_get_all(struct tl_backend *backend, const char *key, struct tl_buf *out,
                       struct tl_fail *fail)
{
    uint64_t size;
    const int r = backend->ops->size(backend, key, &size, fail);
    if (r < 0)
        return r;
    const size_t before = out->n;
    const int got = backend->ops->get(backend, key, 0, size, out, fail);
    if (got < 0)
        return got;
    if (out->n - before != size)
        return tl_fail_set(fail, TL_IO, "%s: %zu of %llu bytes could be read", key, out->n - before,
                           (unsigned long long)size);
    return TL_OK;
}

struct key_list {
    struct tl_buf keys; /* NUL-terminated, concatenated */
};

static int collect(void *context, const char *key, uint64_t size)
{
    struct key_list *list = context;
    (void)size;
    return tl_buf_add(&list->keys, key, strlen(key) + 1);
}

bool tl_key_of_trace(const char *key)
{
    return *key && strchr("rtcm", *key) && key[1] == '/';
}

int tl_backend_remove_all(struct tl_backend *backend, const char *prefix, struct tl_fail *fail)
{
    struct key_list list = {0};
    int r = backend->ops->list(backend, prefix, collect, &list, fail);
    for (size_t at = 0; r >= 0 && at < list.keys.n;) {
        const char *key = (const char *)list.keys.p + at;
        r = backend->ops->remove(backend, key, fail);
        at += strlen(key) + 1;
    }
    tl_buf_fini(&list.keys);
    return r;
}
