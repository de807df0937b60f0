/* SPDX-License-Identifier: MIT */
/*
 * Each log knows how much of it has been synced. When the power is cut, writes, syncs and commits
 * are refused; at the next boot each log keeps what was synced and a random part of the rest. The
 * catalog is in SQLite's memory file system, held open here so that it outlives the lake.
 */
#include "store/backend_memory.h"

#include "base/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct entry {
    char *key;
    struct tl_buf bytes;
    uint64_t synced; /* logs: durable length; objects: always all */
    unsigned logs;   /* open on it: it is freed when the last is closed */
    bool removed;
    bool leased;
    uint64_t epoch; /* of a lease's last grant */
};

/* What is stored; several backend objects may share it. */
struct memory {
    unsigned handles; /* under the lock */
    pthread_mutex_t lock;
    struct entry **entries; /* sorted by key */
    size_t n, cap;
    uint64_t used, limit;
    struct entry **leases;
    size_t n_leases, cap_leases;
    atomic_bool cut;
    bool planned; /* tl_backend_memory_refuse() */
    uint64_t pass, refuse;
    enum tl_err code;
    bool no_commits; /* tl_backend_memory_refuse_commits() */
    char uri[64];
    sqlite3 *keep;
    int turns; /* a file */
};

/* A backend object. */
struct handle {
    struct tl_backend base;
    struct memory *m;
    struct memory_lease *held; /* protected by the memory's lock */
};

struct memory_log {
    struct tl_log base;
    struct handle *h;
    struct memory *m;
    struct entry *entry;
};

struct memory_lease {
    struct tl_lease base;
    struct handle *h;
    struct memory_lease *next; /* the next one held by the same object */
    struct memory *m;
    struct entry *entry;
};

static struct handle *handle_of(struct tl_backend *backend)
{
    return (struct handle *)backend;
}

static struct memory *memory_of(struct tl_backend *backend)
{
    return handle_of(backend)->m;
}

/* May this object change `key`? It may not if it lost a lease that guards it. */
static int fenced_locked(const struct handle *h, const char *key, struct tl_fail *fail)
{
    for (const struct memory_lease *l = h->held; l; l = l->next)
        if (tl_lease_guards(l->entry->key, key) &&
            (!l->entry->leased || l->entry->epoch != l->base.epoch))
            return tl_fail_set(fail, TL_DENIED, "the lease \"%s\" was lost", l->entry->key);
    return TL_OK;
}

static int power_is_cut(struct tl_fail *fail)
{
    errno = EIO;
    return tl_fail_set(fail, TL_IO, "the medium does not answer");
}

/* Called before every change: may it happen? */
static int allowed_locked(struct memory *m, struct tl_fail *fail)
{
    if (atomic_load(&m->cut))
        return power_is_cut(fail);
    if (!m->planned)
        return TL_OK;
    if (m->pass > 0) {
        m->pass--;
        return TL_OK;
    }
    if (m->code == TL_OK) {
        m->planned = false;
        atomic_store(&m->cut, true);
        return power_is_cut(fail);
    }
    m->planned = --m->refuse > 0;
    errno = m->code == TL_NOSPACE ? ENOSPC : EIO;
    return tl_fail_set(fail, m->code, "the medium refuses");
}

/* The index of `key`, or where it would be inserted. */
static size_t place(struct entry **entries, size_t n, const char *key, bool *found)
{
    size_t low = 0, high = n;
    *found = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(entries[middle]->key, key);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find_in(struct entry ***entries, size_t *n, size_t *cap, const char *key,
                             bool create)
{
    bool found;
    const size_t at = place(*entries, *n, key, &found);
    if (found)
        return (*entries)[at];
    if (!create || tl_grow(entries, cap, *n + 1, sizeof(**entries)) < 0)
        return NULL;
    struct entry *e = calloc(1, sizeof(*e));
    if (!e || !(e->key = strdup(key))) {
        free(e);
        return NULL;
    }
    memmove(*entries + at + 1, *entries + at, (*n - at) * sizeof(**entries));
    (*entries)[at] = e;
    (*n)++;
    return e;
}

static struct entry *find(struct memory *m, const char *key, bool create)
{
    return find_in(&m->entries, &m->n, &m->cap, key, create);
}

static void entry_free(struct entry *e)
{
    tl_buf_fini(&e->bytes);
    free(e->key);
    free(e);
}

static int not_there(struct tl_fail *fail, const char *key)
{
    return tl_fail_set(fail, TL_NOTFOUND, "%s is not in the store", key);
}

static int full(struct tl_fail *fail, const char *key)
{
    errno = ENOSPC;
    return tl_fail_set(fail, TL_NOSPACE, "cannot write %s: no space left", key);
}

static int put_locked(struct memory *m, const char *key, struct tl_bytes bytes,
                      struct tl_fail *fail)
{
    const int r = allowed_locked(m, fail);
    if (r < 0)
        return r;
    bool found;
    const size_t at = place(m->entries, m->n, key, &found);
    const uint64_t before = found ? m->entries[at]->bytes.n : 0;
    if (bytes.n > m->limit - (m->used - before < m->limit ? m->used - before : m->limit))
        return full(fail, key);
    struct tl_buf copy = {0};
    if (tl_buf_add(&copy, bytes.p, bytes.n) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    struct entry *e = find(m, key, true);
    if (!e) {
        tl_buf_fini(&copy);
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    }
    m->used += bytes.n - before;
    tl_buf_fini(&e->bytes);
    e->bytes = copy;
    e->synced = bytes.n;
    return TL_OK;
}

static int memory_put_all(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                          struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    for (size_t i = 0; i < n; i++)
        if (!tl_key_valid(objects[i].key))
            return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not a key", objects[i].key);
    pthread_mutex_lock(&m->lock);
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        r = fenced_locked(handle_of(backend), objects[i].key, fail);
        if (r >= 0)
            r = put_locked(m, objects[i].key, objects[i].bytes, fail);
    }
    pthread_mutex_unlock(&m->lock);
    return r;
}

static int read_locked(const struct entry *e, uint64_t offset, size_t n, struct tl_buf *out)
{
    if (offset >= e->bytes.n)
        return TL_OK;
    const size_t there = e->bytes.n - (size_t)offset;
    return tl_buf_add(out, e->bytes.p + offset, n < there ? n : there);
}

static int memory_get(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
                      struct tl_buf *out, struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    const struct entry *e = find(m, key, false);
    const int r = e ? read_locked(e, offset, n, out) : not_there(fail, key);
    pthread_mutex_unlock(&m->lock);
    return r;
}

static int memory_size(struct tl_backend *backend, const char *key, uint64_t *out,
                       struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    const struct entry *e = find(m, key, false);
    if (e)
        *out = e->bytes.n;
    pthread_mutex_unlock(&m->lock);
    return e ? TL_OK : not_there(fail, key);
}

static int memory_remove(struct tl_backend *backend, const char *key, struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    int r = fenced_locked(handle_of(backend), key, fail);
    if (r >= 0)
        r = allowed_locked(m, fail);
    bool found = false;
    const size_t at = r < 0 ? 0 : place(m->entries, m->n, key, &found);
    if (found) {
        m->used -= m->entries[at]->bytes.n;
        if (m->entries[at]->logs > 0)
            m->entries[at]->removed = true;
        else
            entry_free(m->entries[at]);
        memmove(m->entries + at, m->entries + at + 1, (m->n - at - 1) * sizeof(*m->entries));
        m->n--;
    }
    pthread_mutex_unlock(&m->lock);
    return r;
}

static bool below(const char *key, const char *prefix)
{
    const size_t n = strlen(prefix);
    return n == 0 || (strncmp(key, prefix, n) == 0 && (key[n] == '\0' || key[n] == '/'));
}

static int memory_list(struct tl_backend *backend, const char *prefix,
                       int (*each)(void *context, const char *key, uint64_t size), void *context,
                       struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    struct tl_buf found = {0}; /* sizes, each followed by its key and a NUL */
    int r = TL_OK;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; r >= 0 && i < m->n; i++) {
        const struct entry *const entry = m->entries[i];
        const uint64_t size = entry->bytes.n;
        if (!below(entry->key, prefix))
            continue;
        r = tl_buf_add(&found, &size, sizeof size);
        if (r >= 0)
            r = tl_buf_add(&found, entry->key, strlen(entry->key) + 1);
    }
    pthread_mutex_unlock(&m->lock);
    if (r < 0)
        r = tl_fail_set(fail, r, "no memory");
    /* The listener may take any lock. */
    for (size_t at = 0; r == TL_OK && at < found.n;) {
        uint64_t size;
        memcpy(&size, found.p + at, sizeof size);
        const char *const key = (const char *)found.p + at + sizeof size;
        at += sizeof size + strlen(key) + 1;
        r = each(context, key, size);
    }
    tl_buf_fini(&found);
    return r;
}

/* ---- logs -------------------------------------------------------------------------------- */

static int memory_log_open(struct tl_backend *backend, const char *key, bool create,
                           struct tl_log **out, uint64_t *size, struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    if (!tl_key_valid(key))
        return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not a key", key);
    struct memory_log *log = calloc(1, sizeof(*log));
    if (!log)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    log->base.ops = backend->ops;
    log->h = handle_of(backend);
    log->m = m;
    pthread_mutex_lock(&m->lock);
    int r = create ? fenced_locked(log->h, key, fail) : TL_OK;
    if (r >= 0 && create)
        r = allowed_locked(m, fail);
    log->entry = r < 0 ? NULL : find(m, key, create);
    if (log->entry) {
        *size = log->entry->bytes.n;
        log->entry->logs++;
    } else if (r >= 0) {
        r = create ? tl_fail_set(fail, TL_NOMEM, "no memory") : not_there(fail, key);
    }
    pthread_mutex_unlock(&m->lock);
    if (r < 0) {
        free(log);
        return r;
    }
    *out = &log->base;
    return TL_OK;
}

static int write_part_locked(struct memory_log *log, uint64_t offset, struct tl_bytes part,
                             struct tl_fail *fail)
{
    struct memory *m = log->m;
    struct entry *e = log->entry;
    if (offset > e->bytes.n)
        return tl_fail_set(fail, TL_USAGE, "%s: a write would leave a hole", e->key);
    const uint64_t end = offset + part.n;
    const uint64_t more = end > e->bytes.n ? end - e->bytes.n : 0;
    if (more > m->limit - (m->used < m->limit ? m->used : m->limit))
        return full(fail, e->key);
    if (tl_buf_reserve(&e->bytes, more) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    memcpy(e->bytes.p + offset, part.p, part.n);
    e->bytes.n += more;
    m->used += more;
    /* An overwrite in the middle changes only its own bytes. */
    if (e->synced > offset && end > e->synced)
        e->synced = offset;
    return TL_OK;
}

static int write_locked(struct memory_log *log, uint64_t offset, const struct tl_bytes *parts,
                        size_t n_parts, struct tl_fail *fail)
{
    for (size_t i = 0; i < n_parts; i++) {
        int r = allowed_locked(log->m, fail);
        if (r < 0 && !atomic_load(&log->m->cut)) {
            /* A short write. */
            const struct tl_bytes half = {parts[i].p, parts[i].n / 2};
            if (write_part_locked(log, offset, half, NULL) < 0)
                return r;
        }
        if (r >= 0)
            r = write_part_locked(log, offset, parts[i], fail);
        if (r < 0)
            return r;
        offset += parts[i].n;
    }
    return TL_OK;
}

static int memory_log_write(struct tl_log *base, uint64_t offset, const struct tl_bytes *parts,
                            size_t n_parts, struct tl_fail *fail)
{
    struct memory_log *log = (struct memory_log *)base;
    pthread_mutex_lock(&log->m->lock);
    int r = fenced_locked(log->h, log->entry->key, fail);
    if (r >= 0)
        r = write_locked(log, offset, parts, n_parts, fail);
    pthread_mutex_unlock(&log->m->lock);
    return r;
}

static int memory_log_read(struct tl_log *base, uint64_t offset, size_t n, struct tl_buf *out,
                           struct tl_fail *fail)
{
    struct memory_log *log = (struct memory_log *)base;
    (void)fail;
    pthread_mutex_lock(&log->m->lock);
    const int r = read_locked(log->entry, offset, n, out);
    pthread_mutex_unlock(&log->m->lock);
    return r;
}

static int memory_log_sync(struct tl_log *base, struct tl_fail *fail)
{
    struct memory_log *log = (struct memory_log *)base;
    pthread_mutex_lock(&log->m->lock);
    int r = fenced_locked(log->h, log->entry->key, fail);
    if (r >= 0)
        r = allowed_locked(log->m, fail);
    if (r >= 0)
        log->entry->synced = log->entry->bytes.n;
    pthread_mutex_unlock(&log->m->lock);
    return r;
}

static int memory_log_truncate(struct tl_log *base, uint64_t size, struct tl_fail *fail)
{
    struct memory_log *log = (struct memory_log *)base;
    pthread_mutex_lock(&log->m->lock);
    struct entry *e = log->entry;
    int r = fenced_locked(log->h, log->entry->key, fail);
    if (r >= 0)
        r = allowed_locked(log->m, fail);
    if (r >= 0 && size < e->bytes.n) {
        log->m->used -= e->bytes.n - size;
        e->bytes.n = size;
    }
    if (r >= 0 && e->synced > size)
        e->synced = size;
    pthread_mutex_unlock(&log->m->lock);
    return r;
}

static void memory_log_close(struct tl_log *base)
{
    if (!base)
        return;
    struct memory_log *log = (struct memory_log *)base;
    pthread_mutex_lock(&log->m->lock);
    if (--log->entry->logs == 0 && log->entry->removed)
        entry_free(log->entry);
    pthread_mutex_unlock(&log->m->lock);
    free(log);
}

/* ---- power ------------------------------------------------------------------------------- */

void tl_backend_memory_cut(struct tl_backend *backend)
{
    atomic_store(&memory_of(backend)->cut, true);
}

void tl_backend_memory_refuse(struct tl_backend *backend, uint64_t after, uint64_t count,
                              enum tl_err code)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    m->planned = count > 0;
    m->pass = after;
    m->refuse = count;
    m->code = code;
    pthread_mutex_unlock(&m->lock);
}

void tl_backend_memory_refuse_commits(struct tl_backend *backend, bool refuse)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    m->no_commits = refuse;
    pthread_mutex_unlock(&m->lock);
}

void tl_backend_memory_limit(struct tl_backend *backend, uint64_t bytes)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    m->limit = bytes;
    pthread_mutex_unlock(&m->lock);
}

/* A disk writes sectors in any order: unsynced data may be present, truncated, or garbage. */
static void lose(struct entry *e, uint64_t *random)
{
    const uint64_t loose = e->bytes.n - e->synced;
    if (loose == 0)
        return;
    e->bytes.n = e->synced + tl_random64(random) % (loose + 1);
    for (uint64_t at = e->synced; at < e->bytes.n; at += 512) {
        const uint64_t n = e->bytes.n - at < 512 ? e->bytes.n - at : 512;
        if (tl_random64(random) % 4 == 0)
            memset(e->bytes.p + at, 0, n);
    }
    e->synced = e->bytes.n;
}

void tl_backend_memory_boot(struct tl_backend *backend, uint64_t seed)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    m->used = 0;
    for (size_t i = 0; i < m->n; i++) {
        lose(m->entries[i], &seed);
        m->used += m->entries[i]->bytes.n;
    }
    for (size_t i = 0; i < m->n_leases; i++)
        m->leases[i]->leased = false;
    m->planned = false;
    atomic_store(&m->cut, false);
    pthread_mutex_unlock(&m->lock);
}

/* ---- leases, space, creating and freeing -------------------------------------------------- */

static int memory_lease(struct tl_backend *backend, const char *name, struct tl_lease **out,
                        struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    struct memory_lease *lease = calloc(1, sizeof(*lease));
    if (!lease)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    lease->base.ops = backend->ops;
    lease->h = handle_of(backend);
    lease->m = m;
    pthread_mutex_lock(&m->lock);
    struct entry *e = find_in(&m->leases, &m->n_leases, &m->cap_leases, name, true);
    const int r = !e ? TL_NOMEM : e->leased ? TL_DENIED : TL_OK;
    if (r == TL_OK) {
        e->leased = true;
        lease->entry = e;
        lease->base.epoch = ++e->epoch;
        lease->next = lease->h->held;
        lease->h->held = lease;
    }
    pthread_mutex_unlock(&m->lock);
    if (r < 0) {
        free(lease);
        return tl_fail_set(fail, r, "the lease \"%s\" is held", name);
    }
    *out = &lease->base;
    return TL_OK;
}

static void memory_lease_release(struct tl_lease *base)
{
    if (!base)
        return;
    struct memory_lease *lease = (struct memory_lease *)base;
    pthread_mutex_lock(&lease->m->lock);
    if (lease->entry->epoch == lease->base.epoch)
        lease->entry->leased = false;
    struct memory_lease **p = &lease->h->held;
    while (*p != lease)
        p = &(*p)->next;
    *p = lease->next;
    pthread_mutex_unlock(&lease->m->lock);
    free(lease);
}

void tl_backend_memory_expire(struct tl_backend *backend, const char *name)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    struct entry *e = find_in(&m->leases, &m->n_leases, &m->cap_leases, name, false);
    if (e)
        e->leased = false;
    pthread_mutex_unlock(&m->lock);
}

static int memory_scratch(struct tl_backend *backend, struct tl_fail *fail)
{
    (void)backend;
    const int fd = memfd_create("scratch", MFD_CLOEXEC);
    return fd >= 0 ? fd : tl_fail_set(fail, TL_IO, "cannot make a scratch file");
}

static int memory_turns(struct tl_backend *backend, struct tl_fail *fail)
{
    const int fd = fcntl(memory_of(backend)->turns, F_DUPFD_CLOEXEC, 0);
    return fd >= 0 ? fd : tl_fail_set(fail, TL_IO, "cannot open the turns");
}

static uint64_t memory_free_bytes(struct tl_backend *backend)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    const uint64_t left = m->used < m->limit ? m->limit - m->used : 0;
    pthread_mutex_unlock(&m->lock);
    return left;
}

static const char *memory_catalog_uri(struct tl_backend *backend)
{
    return memory_of(backend)->uri;
}

static int open_catalog(struct memory *m)
{
    static atomic_uint serial;
    snprintf(m->uri, sizeof(m->uri), "file:/tl-memory-%u?vfs=memdb", atomic_fetch_add(&serial, 1));
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI;
    return sqlite3_open_v2(m->uri, &m->keep, flags, NULL) == SQLITE_OK ? TL_OK : TL_NOMEM;
}

static int memory_catalog_reset(struct tl_backend *backend, struct tl_fail *fail)
{
    struct memory *m = memory_of(backend);
    sqlite3_close(m->keep);
    m->keep = NULL;
    return open_catalog(m) < 0 ? tl_fail_set(fail, TL_NOMEM, "no memory") : TL_OK;
}

static bool memory_may_commit(struct tl_backend *backend)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    const bool may = fenced_locked(handle_of(backend), TL_LEASE_ALL, NULL) >= 0 &&
                     allowed_locked(m, NULL) >= 0 && !m->no_commits;
    pthread_mutex_unlock(&m->lock);
    return may;
}

static int memory_usable(struct tl_backend *backend, struct tl_fail *fail)
{
    return memory_may_commit(backend) ? TL_OK
                                      : tl_fail_set(fail, TL_IO, "the medium does not answer");
}

static void memory_free(struct memory *m)
{
    for (size_t i = 0; i < m->n; i++)
        entry_free(m->entries[i]);
    for (size_t i = 0; i < m->n_leases; i++)
        entry_free(m->leases[i]);
    free(m->entries);
    free(m->leases);
    sqlite3_close(m->keep);
    if (m->turns >= 0)
        close(m->turns);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static void memory_destroy(struct tl_backend *backend)
{
    struct memory *m = memory_of(backend);
    pthread_mutex_lock(&m->lock);
    const bool last = --m->handles == 0;
    pthread_mutex_unlock(&m->lock);
    if (last)
        memory_free(m);
    free(backend);
}

static const struct tl_backend_ops memory_ops = {
    .name = "memory",
    .destroy = memory_destroy,
    .put_all = memory_put_all,
    .get = memory_get,
    .size = memory_size,
    .remove = memory_remove,
    .list = memory_list,
    .log_open = memory_log_open,
    .log_write = memory_log_write,
    .log_read = memory_log_read,
    .log_sync = memory_log_sync,
    .log_truncate = memory_log_truncate,
    .log_close = memory_log_close,
    .lease = memory_lease,
    .lease_release = memory_lease_release,
    .scratch = memory_scratch,
    .turns = memory_turns,
    .free_bytes = memory_free_bytes,
    .catalog_uri = memory_catalog_uri,
    .catalog_reset = memory_catalog_reset,
    .usable = memory_usable,
    .may_commit = memory_may_commit,
};

static int attach(struct memory *m, struct tl_backend **out)
{
    struct handle *h = calloc(1, sizeof(*h));
    if (!h)
        return TL_NOMEM;
    h->base.ops = &memory_ops;
    h->m = m;
    pthread_mutex_lock(&m->lock);
    m->handles++;
    pthread_mutex_unlock(&m->lock);
    *out = &h->base;
    return TL_OK;
}

int tl_backend_memory_attach(struct tl_backend *backend, struct tl_backend **out)
{
    return attach(memory_of(backend), out);
}

int tl_backend_memory(struct tl_backend **out)
{
    struct memory *m = calloc(1, sizeof(*m));
    if (!m)
        return TL_NOMEM;
    m->limit = UINT64_MAX;
    m->turns = memfd_create("turns", MFD_CLOEXEC);
    pthread_mutex_init(&m->lock, NULL);
    int r = open_catalog(m);
    if (r >= 0)
        r = attach(m, out);
    if (r < 0)
        memory_free(m);
    return r;
}
