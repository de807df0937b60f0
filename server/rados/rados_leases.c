/* SPDX-License-Identifier: MIT */
/*
 * Leases: an exclusive lock of the cluster shows who is alive, an epoch in the index who may write.
 * The lock may be lost at any time; the epoch, which each change compares, is authoritative.
 */
#include "rados/rados_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCK_NAME "owner"
#define RENEWALS  3       /* during the lifetime of a lock */
#define ASKED     "asked" /* key of a lock's object: another process has asked for the lease */

static char *lock_object(char oid[static 80], const char *name)
{
    snprintf(oid, 80, "lease.%s", name);
    return oid;
}

static int lock(const struct tl_rados_lease *lease, uint8_t flags)
{
    char oid[80];
    struct timeval duration = {.tv_sec = (time_t)lease->r->lease_s};
    return tl_librados.lock_exclusive(lease->r->io, lock_object(oid, lease->name), LOCK_NAME,
                                      lease->cookie, "tracelake", &duration, flags);
}

static int64_t renewal_ms(const struct tl_rados *r)
{
    return (int64_t)r->lease_s * 1000 / RENEWALS;
}

/* Increment the epoch at `key` of an object; returns it in `*epoch`. */
static int raise_epoch(struct tl_rados *r, const char *oid, const char *key, uint64_t *epoch,
                       struct tl_fail *fail)
{
    for (;;) {
        struct tl_buf before = {0};
        char text[TL_EPOCH_TEXT + 1] = "";
        int rc = tl_omap_get(r, oid, key, &before, fail);
        if (rc < 0 && rc != TL_NOTFOUND) {
            tl_buf_fini(&before);
            return rc;
        }
        memcpy(text, before.p ? (const char *)before.p : "",
               before.n < TL_EPOCH_TEXT ? before.n : TL_EPOCH_TEXT);
        *epoch = strtoull(text, NULL, 16) + 1;
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_op_compare(op, key, LIBRADOS_CMPXATTR_OP_EQ, (struct tl_bytes){before.p, before.n});
        tl_op_set(op, key, tl_epoch_value(text, *epoch));
        rc = tl_rados_write(r, oid, op);
        tl_buf_fini(&before);
        if (rc != -ECANCELED)
            return rc < 0 ? tl_rados_refused(fail, rc, "take a lease in", oid) : TL_OK;
    }
}

/* Write the epoch to every index object; one with a higher epoch shows that the lease is lost. */
static int spread_epoch(struct tl_rados *r, uint64_t epoch, struct tl_fail *fail)
{
    struct tl_flight flight = {0};
    char text[TL_EPOCH_TEXT + 1];
    const struct tl_bytes value = tl_epoch_value(text, epoch);
    for (unsigned i = 0; i < r->n_index; i++) {
        char oid[24];
        const rados_write_op_t op = tl_librados.create_write_op();
        tl_op_compare(op, "e", LIBRADOS_CMPXATTR_OP_LT, value);
        tl_op_set(op, "e", value);
        tl_flight_write(&flight, r, tl_index_at(oid, i), op);
    }
    const int rc = tl_flight_land(&flight);
    return rc == -ECANCELED ? tl_fail_set(fail, TL_DENIED, "another process took the lease")
           : rc < 0         ? tl_rados_refused(fail, rc, "take the lease of", "the store")
                            : TL_OK;
}

static bool is_whole(const struct tl_rados_lease *lease)
{
    return strcmp(lease->name, TL_LEASE_ALL) == 0;
}

/* Find where a lease's epoch is stored. */
static void find_epoch(const struct tl_rados_lease *lease, char oid[static 24],
                       char key[static TL_EPOCH_KEY])
{
    if (is_whole(lease)) {
        snprintf(oid, 24, TL_ROOT);
        snprintf(key, TL_EPOCH_KEY, "e");
        return;
    }
    tl_index_of(oid, lease->r, tl_text(lease->name));
    tl_epoch_key(key, tl_text(lease->name));
}

static int take_epoch(struct tl_rados_lease *lease, struct tl_fail *fail)
{
    char oid[24], key[TL_EPOCH_KEY];
    find_epoch(lease, oid, key);
    const int rc = raise_epoch(lease->r, oid, key, &lease->base.epoch, fail);
    return rc < 0 || !is_whole(lease) ? rc : spread_epoch(lease->r, lease->base.epoch, fail);
}

/*
 * Clear requests for it, since it was acquired. If that fails, it is released once unnecessarily.
 */
static void answer(const struct tl_rados_lease *lease)
{
    const rados_write_op_t op = tl_librados.create_write_op();
    char oid[80];
    tl_op_remove(op, ASKED);
    (void)!tl_rados_write(lease->r, lock_object(oid, lease->name), op);
}

int tl_rados_lease(struct tl_backend *backend, const char *name, struct tl_lease **out,
                   struct tl_fail *fail)
{
    struct tl_rados *const r = tl_rados_of(backend);
    if (!tl_key_valid(name) || strchr(name, '/') || strlen(name) >= 64)
        return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not the name of a lease", name);
    struct tl_rados_lease *const lease = calloc(1, sizeof(*lease));
    if (!lease)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    lease->base.ops = backend->ops;
    lease->r = r;
    snprintf(lease->name, sizeof lease->name, "%s", name);
    snprintf(lease->cookie, sizeof lease->cookie, "%llx.%lx", (unsigned long long)r->session,
             atomic_fetch_add(&r->serial, 1));
    const int locked = lock(lease, 0);
    int rc = TL_OK;
    if (locked == -EBUSY || locked == -EEXIST)
        rc = tl_fail_set(fail, TL_DENIED, "another process holds the store's lease \"%s\"", name);
    else if (locked < 0)
        rc = tl_rados_refused(fail, locked, "take the lease", name);
    if (rc < 0) {
        free(lease);
        return rc;
    }
    rc = take_epoch(lease, fail);
    if (rc < 0) {
        char oid[80];
        tl_librados.unlock(r->io, lock_object(oid, name), LOCK_NAME, lease->cookie);
        free(lease);
        return rc;
    }
    answer(lease);
    tl_rados_forget(r, NULL); /* from here on, changes by its last holder are visible */
    lease->due_ms = tl_monotonic_ms() + renewal_ms(r);
    pthread_mutex_lock(&r->lock);
    lease->next = r->held;
    r->held = lease;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    *out = &lease->base;
    return TL_OK;
}

int tl_rados_lease_state(struct tl_lease *base, uint64_t *asked)
{
    const struct tl_rados_lease *const lease = (const struct tl_rados_lease *)base;
    pthread_mutex_lock(&lease->r->lock);
    const int state = lease->lost ? TL_DENIED : TL_OK;
    *asked = lease->asked;
    pthread_mutex_unlock(&lease->r->lock);
    return state;
}

int tl_rados_lease_ask(struct tl_backend *backend, const char *name, uint64_t number,
                       struct tl_fail *fail)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, number);
    const rados_write_op_t op = tl_librados.create_write_op();
    char oid[80];
    tl_op_set(op, ASKED, (struct tl_bytes){bytes, sizeof bytes});
    const int rc = tl_rados_write(tl_rados_of(backend), lock_object(oid, name), op);
    if (rc < 0)
        return tl_rados_refused(fail, rc, "ask for the lease", name);
    tl_rados_say(tl_rados_of(backend), TL_NEWS_ASKED, number, name);
    return TL_OK;
}

bool tl_rados_asked(struct tl_rados *r, const char *name, uint64_t number)
{
    bool is_held = false;
    pthread_mutex_lock(&r->lock);
    for (struct tl_rados_lease *l = r->held; l; l = l->next)
        if (strcmp(l->name, name) == 0) {
            l->asked = number;
            is_held = true;
        }
    pthread_mutex_unlock(&r->lock);
    return is_held;
}

void tl_rados_lease_release(struct tl_lease *base)
{
    if (!base)
        return;
    struct tl_rados_lease *const lease = (struct tl_rados_lease *)base;
    struct tl_rados *const r = lease->r;
    char oid[80];
    pthread_mutex_lock(&r->lock);
    while (lease->busy)
        pthread_cond_wait(&r->idle, &r->lock);
    struct tl_rados_lease **p = &r->held;
    while (*p != lease)
        p = &(*p)->next;
    *p = lease->next;
    pthread_mutex_unlock(&r->lock);
    tl_librados.unlock(r->io, lock_object(oid, lease->name), LOCK_NAME, lease->cookie);
    free(lease);
}

void tl_rados_require_leases(struct tl_backend *backend)
{
    tl_rados_of(backend)->needs_leases = true;
}

int tl_rados_guard(struct tl_rados *r, struct tl_bytes owner, uint64_t *all, uint64_t *own,
                   struct tl_fail *fail)
{
    int rc = TL_OK;
    *all = *own = 0;
    pthread_mutex_lock(&r->lock);
    for (const struct tl_rados_lease *l = r->held; l && rc >= 0; l = l->next) {
        const bool whole = is_whole(l);
        if (!whole && (strlen(l->name) != owner.n || memcmp(l->name, owner.p, owner.n) != 0))
            continue;
        *(whole ? all : own) = l->base.epoch;
        if (l->lost)
            rc = tl_fail_set(fail, TL_DENIED, "the lease \"%s\" was lost; stop this process",
                             l->name);
    }
    pthread_mutex_unlock(&r->lock);
    return rc;
}

void tl_rados_lose(struct tl_rados *r, struct tl_bytes name, uint64_t epoch)
{
    pthread_mutex_lock(&r->lock);
    for (struct tl_rados_lease *l = r->held; l; l = l->next)
        if (strlen(l->name) == name.n && memcmp(l->name, name.p, name.n) == 0 &&
            l->base.epoch == epoch)
            l->lost = true;
    pthread_mutex_unlock(&r->lock);
}

/* ---- sessions ------------------------------------------------------------------------------- */

#define LIFE_S 60 /* a session without a sign of life for this long has ended */

static char *life_object(char oid[static 40], uint64_t session)
{
    snprintf(oid, 40, "live.%llx", (unsigned long long)session);
    return oid;
}

/* A session that was declared dead cannot return: its announced pieces may be gone. */
static int lock_life(struct tl_rados *r, uint64_t session, uint8_t flags)
{
    char oid[40];
    struct timeval duration = {.tv_sec = LIFE_S};
    return tl_librados.lock_exclusive(r->io, life_object(oid, session), LOCK_NAME, "life",
                                      "tracelake", &duration, flags);
}

/* For tl_backend_ops.usable. */
static void ask_life(struct tl_rados *r)
{
    struct tl_buf none = {0};
    char oid[40];
    (void)!tl_omap_get(r, life_object(oid, r->session), "", &none, NULL);
    tl_buf_fini(&none);
}

int tl_rados_is_over(struct tl_rados *r, uint64_t session)
{
    const int rc = lock_life(r, session, 0);
    return rc >= 0 ? 1 : rc == -EBUSY || rc == -EEXIST ? 0 : rc;
}

void tl_rados_bury(struct tl_rados *r, uint64_t session)
{
    char oid[40];
    (void)!tl_librados.remove(r->io, life_object(oid, session));
}

/* ---- keepers -------------------------------------------------------------------------------- */

/* Several threads renew leases: if a part of the cluster does not respond, the other leases still
 * do not expire. */

/* What a keeper found out about a lease. */
struct found {
    bool lost;
    uint64_t asked;
};

/* Has nobody acquired the lease since we did? If that cannot be read, assume so. */
static bool is_last_epoch(const struct tl_rados_lease *lease)
{
    struct tl_buf now = {0};
    char mine[TL_EPOCH_TEXT + 1], oid[24], key[TL_EPOCH_KEY];
    tl_epoch_value(mine, lease->base.epoch);
    find_epoch(lease, oid, key);
    const int rc = tl_omap_get(lease->r, oid, key, &now, NULL);
    const bool other =
        rc >= 0 && (now.n != TL_EPOCH_TEXT || memcmp(now.p, mine, TL_EPOCH_TEXT) != 0);
    tl_buf_fini(&now);
    return !other;
}

/* An expired lock is acquired again if it had no other holder since. `looks`: also check whether
 * someone has asked for it, which news reports sooner. */
static struct found renew(const struct tl_rados_lease *lease, bool looks)
{
    struct tl_buf asked = {0};
    struct found found = {0};
    char oid[80];
    int rc = lock(lease, LIBRADOS_LOCK_FLAG_MUST_RENEW);
    if (rc == -ENOENT) {
        rc = lock(lease, 0);
        if (rc >= 0 && !is_last_epoch(lease)) {
            tl_librados.unlock(lease->r->io, lock_object(oid, lease->name), LOCK_NAME,
                               lease->cookie);
            rc = -EBUSY;
        }
    }
    found.lost = rc == -EBUSY || rc == -EEXIST;
    if (!found.lost && looks &&
        tl_omap_get(lease->r, lock_object(oid, lease->name), ASKED, &asked, NULL) >= 0 &&
        asked.n == 8)
        found.asked = tl_le64(asked.p);
    tl_buf_fini(&asked);
    return found;
}

/* A lease that is due for renewal; otherwise `*next` is lowered to the earliest due time. */
static struct tl_rados_lease *due_locked(const struct tl_rados *r, int64_t now, int64_t *next)
{
    for (struct tl_rados_lease *l = r->held; l; l = l->next) {
        if (l->lost || l->busy)
            continue;
        if (l->due_ms <= now)
            return l;
        *next = l->due_ms < *next ? l->due_ms : *next;
    }
    return NULL;
}

static void renew_locked(struct tl_rados *r, struct tl_rados_lease *l, int64_t now)
{
    const bool looks = ++l->renewals % RENEWALS == 0;
    l->due_ms = now + renewal_ms(r);
    l->busy = true;
    pthread_mutex_unlock(&r->lock);
    const struct found found = renew(l, looks);
    pthread_mutex_lock(&r->lock);
    l->lost = l->lost || found.lost;
    if (looks)
        l->asked = found.asked;
    l->busy = false;
    pthread_cond_broadcast(&r->idle);
}

static void wait_locked(struct tl_rados *r, int64_t ms)
{
    (void)tl_cond_wait_until(&r->wake, &r->lock, tl_monotonic_ns() + ms * TL_NS_PER_MS);
}

static void *keep(void *context)
{
    struct tl_rados *const r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->closing) {
        const int64_t now = tl_monotonic_ms();
        int64_t next = now + renewal_ms(r);
        struct tl_rados_lease *l;
        if (r->life_due_ms <= now) {
            r->life_due_ms = next;
            pthread_mutex_unlock(&r->lock);
            (void)!lock_life(r, r->session, LIBRADOS_LOCK_FLAG_MUST_RENEW);
            ask_life(r);
            pthread_mutex_lock(&r->lock);
        } else if ((l = due_locked(r, now, &next))) {
            renew_locked(r, l, now);
        } else {
            wait_locked(r, (r->life_due_ms < next ? r->life_due_ms : next) - now);
        }
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static int start_keepers(struct tl_rados *r, struct tl_fail *fail)
{
    for (; r->n_keepers < TL_KEEPERS; r->n_keepers++)
        if (pthread_create(&r->keepers[r->n_keepers], NULL, keep, r) != 0)
            return tl_fail_set(fail, TL_IO, "cannot start a thread");
    return TL_OK;
}

int tl_rados_live(struct tl_rados *r, struct tl_fail *fail)
{
    const int rc = lock_life(r, r->session, 0);
    if (rc < 0)
        return tl_rados_refused(fail, rc, "begin a session in", "the store");
    r->lives = true;
    return start_keepers(r, fail);
}

void tl_rados_keep_end(struct tl_rados *r)
{
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_broadcast(&r->wake);
    pthread_mutex_unlock(&r->lock);
    while (r->n_keepers > 0)
        pthread_join(r->keepers[--r->n_keepers], NULL);
    if (r->lives)
        tl_rados_bury(r, r->session);
}
