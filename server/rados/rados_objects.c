/* SPDX-License-Identifier: MIT */
/*
 * Objects: their bytes are in pieces or, if short, in the index. Entries are cached, since each
 * read would otherwise take two round trips.
 */
#include "base/hash.h"
#include "rados/rados_int.h"

#include <stdio.h>
#include <stdlib.h>

#define INLINE_BYTES 4096 /* maximum size of an object stored in its entry */
#define TRIES        1000 /* attempts for an entry that others keep changing */

#define KEPT_MS 100 /* time during which a cached entry is considered current */

/* ---- cached entries -------------------------------------------------------------------------- */

/*
 * Cache an entry: reading a range of an object then takes one round trip to the cluster instead of
 * two. An entry that was read a moment ago is used as it is: if the object was replaced in between,
 * its state of a moment before is read, or, if its pieces are gone, it is read again. An older one
 * is read anew together with the bytes (tl_pieces_read_known()).
 */
static struct tl_rados_kept *place_of(struct tl_rados *r, const char *key)
{
    return &r->kept[tl_fnv(TL_FNV, key, strlen(key)) % TL_ENTRIES_KEPT];
}

static void keep(struct tl_rados *r, const char *key, const struct tl_buf *value)
{
    struct tl_rados_kept *const k = place_of(r, key);
    if (strlen(key) >= TL_KEPT_KEY)
        return;
    pthread_mutex_lock(&r->kept_lock);
    snprintf(k->key, sizeof k->key, "%s", key);
    tl_buf_reset(&k->value);
    k->read_ms = tl_monotonic_ms();
    if (tl_buf_add(&k->value, value->p, value->n) < 0)
        k->key[0] = '\0';
    pthread_mutex_unlock(&r->kept_lock);
}

/* Get a cached entry, and its value; `*current`: it was read a moment ago. */
static bool recall(struct tl_rados *r, const char *key, struct tl_buf *value,
                   struct tl_entry *entry, bool *current)
{
    struct tl_rados_kept *const k = place_of(r, key);
    tl_buf_reset(value);
    tl_entry_fini(entry);
    pthread_mutex_lock(&r->kept_lock);
    const bool found = strcmp(k->key, key) == 0 && tl_buf_add(value, k->value.p, k->value.n) >= 0;
    *current = tl_monotonic_ms() - k->read_ms <= KEPT_MS;
    pthread_mutex_unlock(&r->kept_lock);
    return found && tl_entry_parse(entry, (struct tl_bytes){value->p, value->n}) >= 0;
}

void tl_rados_forget(struct tl_rados *r, const char *key)
{
    pthread_mutex_lock(&r->kept_lock);
    if (key && strcmp(place_of(r, key)->key, key) == 0)
        place_of(r, key)->key[0] = '\0';
    for (size_t i = 0; !key && i < TL_ENTRIES_KEPT; i++)
        r->kept[i].key[0] = '\0';
    pthread_mutex_unlock(&r->kept_lock);
}

/* Like tl_entry_get(), and cache it. */
static int entry_of(struct tl_rados *r, const char *key, struct tl_buf *value,
                    struct tl_entry *entry, struct tl_fail *fail)
{
    const int rc = tl_entry_get(r, key, value, entry, fail);
    if (rc >= 0 && entry->kind == 'O')
        keep(r, key, value);
    return rc;
}

/* ---- objects -------------------------------------------------------------------------------- */

static int bad_key(struct tl_fail *fail, const char *key)
{
    return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not a key", key);
}

/* Replace a key's entry with `next` (NULL: remove it), whose intent is removed by this. The pieces
 * of the previous entry are removed. */
static int replace(struct tl_rados *r, const char *key, const struct tl_entry *next,
                   struct tl_fail *fail)
{
    const struct tl_bytes owner = tl_key_owner(key);
    struct tl_buf value = {0}, before = {0};
    struct tl_entry old = {0};
    char name[TL_ENTRY_KEY];
    tl_entry_key(name, key);
    int rc = next && tl_entry_write(next, &value) < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory")
                                                      : TL_AGAIN;
    for (int tries = 0; rc == TL_AGAIN && tries < TRIES; tries++) {
        struct tl_change change;
        rc = tl_entry_get(r, key, &before, &old, fail);
        if (rc < 0 && rc != TL_NOTFOUND)
            break;
        rc = tl_change_begin_key(&change, r, key, fail);
        if (rc < 0)
            break;
        tl_change_expect(&change, name, (struct tl_bytes){before.p, before.n});
        if (next)
            tl_change_set(&change, name, (struct tl_bytes){value.p, value.n});
        else
            tl_change_remove(&change, name);
        for (size_t i = 0; next && i < next->n; i++) {
            tl_intent_expect(&change, &next->extents[i]);
            tl_intent_remove(&change, &next->extents[i]);
        }
        tl_pieces_drop(&change, &old, next);
        rc = tl_change_commit(&change, fail);
        if (rc == TL_AGAIN && next && next->n > 0 && tl_intent_gone(r, owner, &next->extents[0]))
            rc = tl_fail_set(fail, TL_IO,
                             "%s: this process did not answer for so long that its "
                             "bytes were removed; try again",
                             key);
    }
    if (rc == TL_AGAIN)
        rc = tl_fail_set(fail, TL_IO, "%s is changed by others all the time", key);
    tl_rados_forget(r, key);
    if (rc >= 0)
        tl_pieces_discard(r, owner, &old, next);
    tl_entry_fini(&old);
    tl_buf_fini(&before);
    tl_buf_fini(&value);
    return rc;
}

/* Number of consecutive objects from `i` on with the same owner. */
static size_t run_of(const struct tl_object *objects, size_t n, size_t i)
{
    const struct tl_bytes owner = tl_key_owner(objects[i].key);
    size_t end = i + 1;
    for (; end < n; end++) {
        const struct tl_bytes other = tl_key_owner(objects[end].key);
        if (other.n != owner.n || memcmp(other.p, owner.p, owner.n) != 0)
            break;
    }
    return end - i;
}

static bool is_inline(const struct tl_object *object)
{
    return object->bytes.n <= INLINE_BYTES;
}

/* Announce the pieces of all objects. */
static int announce(struct tl_rados *r, const struct tl_object *objects, struct tl_extent *extents,
                    size_t n, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0, run; rc >= 0 && i < n; i += run) {
        struct tl_change change;
        bool any = false;
        run = run_of(objects, n, i);
        for (size_t j = i; j < i + run; j++)
            any = any || !is_inline(&objects[j]);
        rc = any ? tl_change_begin_key(&change, r, objects[i].key, fail) : TL_OK;
        if (rc < 0 || !any)
            continue;
        for (size_t j = i; j < i + run; j++)
            if (!is_inline(&objects[j])) {
                extents[j] = tl_piece_new(r, 0, objects[j].bytes.n);
                tl_intent_set(&change, &extents[j]);
            }
        rc = tl_change_commit(&change, fail);
    }
    return rc;
}

int tl_rados_put_all(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                     struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct tl_flight flight = {0};
    for (size_t i = 0; i < n; i++)
        if (!tl_key_valid(objects[i].key))
            return bad_key(fail, objects[i].key);
    if (n == 0)
        return TL_OK;
    struct tl_extent *const extents = calloc(n, sizeof(*extents));
    if (!extents)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    int rc = announce(r, objects, extents, n, fail);
    for (size_t i = 0; rc >= 0 && i < n; i++)
        if (!is_inline(&objects[i]))
            tl_pieces_write(&flight, r, &extents[i], 0, &objects[i].bytes, 1);
    const int landed = tl_flight_land(&flight);
    if (rc >= 0 && landed < 0)
        rc = tl_rados_refused(fail, landed, "store", objects[0].key);
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        const struct tl_entry entry = {.kind = is_inline(&objects[i]) ? 'I' : 'O',
                                       .size = objects[i].bytes.n,
                                       .extents = &extents[i],
                                       .n = is_inline(&objects[i]) ? 0 : 1,
                                       .content = objects[i].bytes};
        rc = replace(r, objects[i].key, &entry, fail);
    }
    free(extents);
    return rc < 0 ? rc : TL_OK;
}

/* Bytes of an entry from `offset` on, `n` at most. */
static size_t some_of(const struct tl_entry *entry, uint64_t offset, size_t n)
{
    const uint64_t there = offset < entry->size ? entry->size - offset : 0;
    return n < there ? n : (size_t)there;
}

/* Read by the cached entry. False: there is none, or it is out of date. */
static bool get_kept(struct tl_rados *r, const char *key, uint64_t offset, size_t n,
                     struct tl_buf *value, struct tl_entry *entry, struct tl_buf *out)
{
    bool current;
    if (!recall(r, key, value, entry, &current))
        return false;
    const size_t some = some_of(entry, offset, n);
    if (current)
        return some == 0 || tl_pieces_read(r, entry, offset, some, out, key, NULL) >= 0;
    if (!tl_pieces_read_known(r, key, value, entry, offset, some, out))
        return false;
    keep(r, key, value);
    return true;
}

int tl_rados_get(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
                 struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct tl_buf value = {0};
    struct tl_entry entry = {0};
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    int rc = get_kept(r, key, offset, n, &value, &entry, out) ? TL_OK : TL_NOTFOUND;
    /* Its pieces may be replaced after the entry was read. */
    for (int tries = 0; rc == TL_NOTFOUND && tries < TRIES; tries++) {
        rc = entry_of(r, key, &value, &entry, fail);
        if (rc < 0)
            break;
        const size_t some = some_of(&entry, offset, n);
        if (some > 0 && entry.kind == 'I')
            rc = tl_buf_add(out, entry.content.p + offset, some) < 0
                     ? tl_fail_set(fail, TL_NOMEM, "no memory")
                     : TL_OK;
        else if (some > 0)
            rc = tl_pieces_read(r, &entry, offset, some, out, key, fail);
    }
    tl_entry_fini(&entry);
    tl_buf_fini(&value);
    return rc;
}

int tl_rados_size(struct tl_backend *backend, const char *key, uint64_t *out, struct tl_fail *fail)
{
    struct tl_buf value = {0};
    struct tl_entry entry = {0};
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    const int rc = entry_of(tl_rados_of(backend), key, &value, &entry, fail);
    if (rc >= 0)
        *out = entry.size;
    tl_entry_fini(&entry);
    tl_buf_fini(&value);
    return rc;
}

int tl_rados_remove(struct tl_backend *backend, const char *key, struct tl_fail *fail)
{
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    return replace(tl_rados_of(backend), key, NULL, fail);
}

/* ---- listing -------------------------------------------------------------------------------- */

struct listing {
    const char *prefix;
    struct tl_buf rows; /* size (8 bytes), key and NUL, concatenated */
    size_t n;
};

static int take_key(void *context, const char *name, struct tl_bytes value)
{
    struct listing *l = context;
    struct tl_entry entry = {0};
    const char *const key = name + 2;
    const size_t n = strlen(l->prefix);
    if (n > 0 && key[n] != '\0' && key[n] != '/')
        return TL_OK;
    int r = tl_entry_parse(&entry, value);
    const uint64_t size = entry.size;
    tl_entry_fini(&entry);
    if (r == TL_NOMEM)
        return r;
    r = tl_buf_add(&l->rows, &size, sizeof size);
    l->n++;
    return r < 0 ? r : tl_buf_add(&l->rows, key, strlen(key) + 1);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a + 8, *(const char *const *)b + 8);
}

int tl_rados_list(struct tl_backend *backend, const char *prefix,
                  int (*each)(void *context, const char *key, uint64_t size), void *context,
                  struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    struct listing l = {.prefix = prefix};
    char name[TL_ENTRY_KEY];
    if (*prefix && !tl_key_valid(prefix))
        return bad_key(fail, prefix);
    tl_entry_key(name, prefix);
    /* Two parts of the prefix identify the owner. */
    int rc = strchr(prefix, '/')
                 ? tl_index_scan(r, tl_key_owner(prefix), name, "", take_key, &l, fail)
                 : tl_index_scan_all(r, name, take_key, &l, fail);
    const char **const sorted = rc < 0 ? NULL : calloc(l.n + 1, sizeof(*sorted));
    if (rc >= 0 && !sorted)
        rc = tl_fail_set(fail, TL_NOMEM, "no memory");
    const char *p = (const char *)l.rows.p;
    for (size_t i = 0; sorted && i < l.n; i++) {
        sorted[i] = p;
        p += 8 + strlen(p + 8) + 1;
    }
    if (sorted)
        qsort(sorted, l.n, sizeof(*sorted), by_key);
    for (size_t i = 0; rc == TL_OK && i < l.n; i++) {
        uint64_t size;
        memcpy(&size, sorted[i], sizeof size);
        rc = each(context, sorted[i] + 8, size);
    }
    free(sorted);
    tl_buf_fini(&l.rows);
    return rc;
}
