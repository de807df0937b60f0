/* SPDX-License-Identifier: MIT */
#include "model.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/now.h"
#include "base/search.h"

#include <errno.h>
#include <pthread.h>
#include <rados/librados.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 1024

struct pair {
    struct tl_buf key, value;
};

struct object {
    struct object *next;
    char *oid;
    struct tl_buf bytes;
    struct pair *pairs; /* sorted by key */
    size_t n_pairs, cap_pairs;
    uint64_t version;
    bool locked;
    uint64_t lock_client;
    char lock_cookie[64];
    int64_t lock_until_ms; /* 0: unlimited */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by it: */
static struct object *buckets[BUCKETS];
static uint64_t versions, used, limit = UINT64_MAX;
static int64_t advanced_ms;

static void need(bool there)
{
    if (!there)
        abort(); /* out of memory: the test would be meaningless */
}

static struct object **place_of(const char *oid)
{
    struct object **p = &buckets[tl_fnv_text(oid) % BUCKETS];
    while (*p && strcmp((*p)->oid, oid) != 0)
        p = &(*p)->next;
    return p;
}

static struct object *make(const char *oid)
{
    struct object **const p = place_of(oid);
    if (!*p) {
        *p = calloc(1, sizeof **p);
        need(*p && ((*p)->oid = strdup(oid)));
    }
    return *p;
}

static void drop(struct object **p)
{
    struct object *const o = *p;
    *p = o->next;
    used -= o->bytes.n;
    for (size_t i = 0; i < o->n_pairs; i++) {
        tl_buf_fini(&o->pairs[i].key);
        tl_buf_fini(&o->pairs[i].value);
    }
    free(o->pairs);
    tl_buf_fini(&o->bytes);
    free(o->oid);
    free(o);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static int order(const void *a, size_t a_n, const void *b, size_t b_n)
{
    const size_t n = a_n < b_n ? a_n : b_n;
    const int d = n ? memcmp(a, b, n) : 0;
    return d ? d : (a_n > b_n) - (a_n < b_n);
}

static bool is_before(const void *pair, const void *key)
{
    const struct pair *const p = pair;
    const struct tl_bytes *const k = key;
    return order(p->key.p, p->key.n, k->p, k->n) < 0;
}

/* The index of the first pair whose key is not less than `key`. */
static size_t find(const struct object *o, const void *key, size_t n)
{
    const struct tl_bytes wanted = {key, n};
    return tl_count_before(o->pairs, sizeof *o->pairs, o->n_pairs, is_before, &wanted);
}

static bool has(const struct object *o, size_t i, const struct tl_buf *key)
{
    return i < o->n_pairs && order(o->pairs[i].key.p, o->pairs[i].key.n, key->p, key->n) == 0;
}

static void copy(struct tl_buf *to, const struct tl_buf *from)
{
    tl_buf_reset(to);
    need(tl_buf_add(to, from->p, from->n) >= 0);
}

static void set(struct object *o, const struct tl_buf *key, const struct tl_buf *value)
{
    const size_t i = find(o, key->p, key->n);
    if (!has(o, i, key)) {
        need(tl_grow(&o->pairs, &o->cap_pairs, o->n_pairs + 1, sizeof *o->pairs) >= 0);
        memmove(&o->pairs[i + 1], &o->pairs[i], (o->n_pairs - i) * sizeof *o->pairs);
        o->pairs[i] = (struct pair){{0}, {0}};
        o->n_pairs++;
        copy(&o->pairs[i].key, key);
    }
    copy(&o->pairs[i].value, value);
}

/* Remove pairs [from, to). */
static void unset(struct object *o, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        tl_buf_fini(&o->pairs[i].key);
        tl_buf_fini(&o->pairs[i].value);
    }
    if (from < to)
        memmove(&o->pairs[from], &o->pairs[to], (o->n_pairs - to) * sizeof *o->pairs);
    o->n_pairs -= to - from;
}

/* ---- operations ----------------------------------------------------------------------------- */

static bool compares(const struct object *o, const struct model_step *s)
{
    const size_t i = find(o, s->key.p, s->key.n);
    const struct tl_buf none = {0};
    const struct tl_buf *const value = has(o, i, &s->key) ? &o->pairs[i].value : &none;
    const int d = order(value->p, value->n, s->value.p, s->value.n);
    return s->comparison == LIBRADOS_CMPXATTR_OP_EQ   ? d == 0
           : s->comparison == LIBRADOS_CMPXATTR_OP_LT ? d < 0
                                                      : d > 0;
}

/* Is the step allowed? `*exists` and `*grows` reflect the object after the steps so far. */
static int check(const struct object *o, const struct model_step *s, bool *exists, uint64_t *grows)
{
    const uint64_t size = o ? o->bytes.n : 0;
    switch (s->kind) {
    case MODEL_COMPARE:
        return !o ? -ENOENT : compares(o, s) ? 0 : -ECANCELED;
    case MODEL_CREATE:
        if (*exists && s->exclusive)
            return -EEXIST;
        break;
    case MODEL_WRITE:
        if (s->offset + s->value.n > size + *grows)
            *grows = s->offset + s->value.n - size;
        break;
    case MODEL_SET:
        break;
    case MODEL_REMOVE:
    case MODEL_UNSET:
    case MODEL_UNSET_RANGE:
        if (!*exists)
            return -ENOENT;
        *exists = s->kind != MODEL_REMOVE;
        return 0;
    }
    *exists = true;
    return 0;
}

static void apply(struct object *o, const struct model_step *s)
{
    size_t i;
    switch (s->kind) {
    case MODEL_WRITE:
        if (s->offset + s->value.n > o->bytes.n) {
            const size_t more = (size_t)(s->offset + s->value.n - o->bytes.n);
            need(tl_buf_reserve(&o->bytes, more) >= 0);
            memset(o->bytes.p + o->bytes.n, 0, more);
            o->bytes.n += more;
            used += more;
        }
        if (s->value.n)
            memcpy(o->bytes.p + s->offset, s->value.p, s->value.n);
        break;
    case MODEL_SET:
        set(o, &s->key, &s->value);
        break;
    case MODEL_UNSET:
        i = find(o, s->key.p, s->key.n);
        unset(o, i, i + has(o, i, &s->key));
        break;
    case MODEL_UNSET_RANGE:
        i = find(o, s->key.p, s->key.n);
        unset(o, i, find(o, s->value.p, s->value.n));
        break;
    case MODEL_COMPARE:
    case MODEL_CREATE:
    case MODEL_REMOVE:
        break;
    }
}

int model_write(const char *oid, const struct model_step *steps, size_t n)
{
    pthread_mutex_lock(&lock);
    struct object *const there = *place_of(oid);
    bool exists = there != NULL;
    uint64_t grows = 0;
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < n; i++)
        rc = check(there, &steps[i], &exists, &grows);
    const bool adds = grows > 0 || (exists && !there);
    if (rc >= 0 && adds && (used >= limit || grows > limit - used))
        rc = -EDQUOT;
    for (size_t i = 0; rc >= 0 && i < n; i++) {
        if (steps[i].kind == MODEL_REMOVE)
            drop(place_of(oid));
        else
            apply(make(oid), &steps[i]);
    }
    if (rc >= 0 && *place_of(oid))
        (*place_of(oid))->version = ++versions;
    pthread_mutex_unlock(&lock);
    return rc;
}

int model_keys(const char *oid, const char *after, const char *prefix, uint64_t most,
               void (*each)(void *context, const struct tl_buf *key, const struct tl_buf *value),
               void *context)
{
    const size_t prefix_n = strlen(prefix), after_n = strlen(after);
    pthread_mutex_lock(&lock);
    const struct object *const o = *place_of(oid);
    int rc = o ? 0 : -ENOENT;
    /* The first key after `after` that is not less than `prefix`. */
    size_t i = o ? find(o, prefix, prefix_n) : 0;
    if (o && order(after, after_n, prefix, prefix_n) >= 0) {
        i = find(o, after, after_n);
        i += i < o->n_pairs && order(o->pairs[i].key.p, o->pairs[i].key.n, after, after_n) == 0;
    }
    for (; o && i < o->n_pairs; i++) {
        const struct pair *const pair = &o->pairs[i];
        if (pair->key.n < prefix_n || memcmp(pair->key.p, prefix, prefix_n) != 0)
            break;
        if (most-- == 0) {
            rc = 1;
            break;
        }
        each(context, &pair->key, &pair->value);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

ssize_t model_read(const char *oid, uint64_t offset, size_t n, char *out)
{
    pthread_mutex_lock(&lock);
    const struct object *const o = *place_of(oid);
    ssize_t rc = o ? 0 : -ENOENT;
    if (o && offset < o->bytes.n) {
        rc = (ssize_t)(o->bytes.n - offset < n ? o->bytes.n - offset : n);
        memcpy(out, o->bytes.p + offset, (size_t)rc);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int model_version(const char *oid, uint64_t *version)
{
    pthread_mutex_lock(&lock);
    const struct object *const o = *place_of(oid);
    *version = o ? o->version : 0;
    pthread_mutex_unlock(&lock);
    return o ? 0 : -ENOENT;
}

/* ---- locks ---------------------------------------------------------------------------------- */

static int64_t now_ms_locked(void)
{
    return tl_monotonic_ms() + advanced_ms;
}

static bool holds(const struct object *o, uint64_t client, const char *cookie)
{
    return o->locked && o->lock_client == client && strcmp(o->lock_cookie, cookie) == 0;
}

static void expire_locked(struct object *o)
{
    if (o->locked && o->lock_until_ms && o->lock_until_ms <= now_ms_locked())
        o->locked = false;
}

int model_lock(const char *oid, uint64_t client, const char *cookie, int64_t duration_ms,
               unsigned flags)
{
    const bool must = flags & LIBRADOS_LOCK_FLAG_MUST_RENEW;
    const bool may = must || (flags & LIBRADOS_LOCK_FLAG_MAY_RENEW);
    int rc = 0;
    pthread_mutex_lock(&lock);
    struct object *o = *place_of(oid);
    if (o)
        expire_locked(o);
    if (o && holds(o, client, cookie))
        rc = may ? 0 : -EEXIST;
    else if (must)
        rc = -ENOENT;
    else if (o && o->locked)
        rc = -EBUSY;
    if (rc == 0) {
        o = make(oid);
        o->locked = true;
        o->lock_client = client;
        strncpy(o->lock_cookie, cookie, sizeof o->lock_cookie - 1);
        o->lock_until_ms = duration_ms ? now_ms_locked() + duration_ms : 0;
        o->version = ++versions;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

int model_unlock(const char *oid, uint64_t client, const char *cookie)
{
    pthread_mutex_lock(&lock);
    struct object *const o = *place_of(oid);
    if (o)
        expire_locked(o);
    const bool held = o && holds(o, client, cookie);
    if (held) {
        o->locked = false;
        o->version = ++versions;
    }
    pthread_mutex_unlock(&lock);
    return held ? 0 : -ENOENT;
}

/* ---- watching ------------------------------------------------------------------------------- */

struct watch {
    struct watch *next;
    uint64_t number;
    char *oid;
    model_told *reported;
    void *context;
};

/* Held while a watcher is notified. */
static pthread_mutex_t reporting = PTHREAD_MUTEX_INITIALIZER;
static struct watch *watches;

int64_t model_watch(const char *oid, model_told *reported, void *context)
{
    uint64_t version;
    const int rc = model_version(oid, &version);
    if (rc < 0)
        return rc;
    struct watch *const w = calloc(1, sizeof *w);
    need(w && (w->oid = strdup(oid)));
    w->reported = reported;
    w->context = context;
    pthread_mutex_lock(&reporting);
    static uint64_t last;
    w->number = ++last;
    w->next = watches;
    watches = w;
    pthread_mutex_unlock(&reporting);
    return (int64_t)w->number;
}

void model_unwatch(uint64_t number)
{
    pthread_mutex_lock(&reporting);
    struct watch **p = &watches;
    while (*p && (*p)->number != number)
        p = &(*p)->next;
    struct watch *const w = *p;
    if (w)
        *p = w->next;
    pthread_mutex_unlock(&reporting);
    if (w)
        free(w->oid);
    free(w);
}

int model_notify(const char *oid, const void *data, size_t n)
{
    uint64_t version;
    const int rc = model_version(oid, &version);
    pthread_mutex_lock(&reporting);
    for (const struct watch *w = watches; rc >= 0 && w; w = w->next)
        if (strcmp(w->oid, oid) == 0)
            w->reported(w->context, w->number, data, n);
    pthread_mutex_unlock(&reporting);
    return rc;
}

/* ---- the whole pool ------------------------------------------------------------------------- */

void model_advance(int64_t ms)
{
    pthread_mutex_lock(&lock);
    advanced_ms += ms;
    pthread_mutex_unlock(&lock);
}

void model_limit(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    limit = bytes;
    pthread_mutex_unlock(&lock);
}

void model_clear(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < BUCKETS; i++)
        while (buckets[i])
            drop(&buckets[i]);
    limit = UINT64_MAX;
    pthread_mutex_unlock(&lock);
}
