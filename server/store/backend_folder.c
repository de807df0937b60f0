/* SPDX-License-Identifier: MIT */
/*
 * Objects and logs as files below DIR/objects, incomplete ones in DIR/tmp, the catalog in
 * DIR/catalog.db, leases as flock()ed files in DIR/leases, turns in DIR/turns.
 *
 * Durability: a file is synced before it gets its name, and the folder that contains the name is
 * synced afterwards; a log's folders are synced with it the first time. Folders are created on
 * demand and never removed while they may be in use.
 *
 * Space is held back (store/reserve.h). While it is given to the catalog, everything else but
 * copies of its rows is refused as if the disk were full.
 */
#include "base/whole.h"
#include "store/backend.h"
#include "store/files.h"
#include "store/openfiles.h"
#include "store/reserve.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FULL_BYTES (UINT64_C(256) << 10) /* with less free space the disk is full */

struct folder {
    struct tl_backend base;
    int dir;                   /* DIR */
    int objects;               /* DIR/objects */
    int tmp;                   /* DIR/tmp */
    int leases;                /* DIR/leases */
    struct tl_openfiles *open; /* of objects */
    atomic_ulong serial;
    pthread_mutex_t lock;
    struct folder_lease *held; /* guarded by the lock */
    struct tl_reserve reserve;
    atomic_int trouble;  /* errno of the last write if it failed, otherwise 0 */
    char path[PATH_MAX]; /* path of the data folder */
    char uri[PATH_MAX + 32];
};

struct folder_log {
    struct tl_log base;
    struct folder *f;
    int fd;
    bool named; /* its name is durable, and that of its folder */
    char key[544];
};

struct folder_lease {
    struct tl_lease base;
    struct folder *f;
    struct folder_lease *next; /* next one held by the same object */
    int fd;
    char name[64];
};

static struct folder *folder_of(struct tl_backend *backend)
{
    return (struct folder *)backend;
}

/* Convert the error of the last system call to a code and a text. */
static int refused(struct tl_fail *fail, const char *what, const char *key)
{
    const int e = errno;
    if (e == ENOENT)
        return tl_fail_set(fail, TL_NOTFOUND, "%s is not in the store", key);
    const enum tl_err code = e == ENOSPC || e == EDQUOT ? TL_NOSPACE : TL_IO;
    tl_fail_set(fail, code, "cannot %s %s: %s%s", what, key, strerror(e),
                code == TL_NOSPACE ? TL_SPACE_ADVICE : "");
    if (fail)
        fail->sys_errno = e;
    return code;
}

/* The same when creating objects, where only the data folder itself can be missing. */
static int lost(struct tl_fail *fail, const char *what, const char *key)
{
    if (errno == ENOENT)
        errno = EIO;
    return refused(fail, what, key);
}

/* A lease is a lock on the file with its name: is it still the same file? */
static bool is_held(const struct folder_lease *lease)
{
    struct stat named, mine;
    return fstatat(lease->f->leases, lease->name, &named, 0) == 0 && fstat(lease->fd, &mine) == 0 &&
           named.st_ino == mine.st_ino && named.st_dev == mine.st_dev;
}

/* May this object change `key`? Not if it lost a lease that guards it. */
static int fenced(struct folder *f, const char *key, struct tl_fail *fail)
{
    int r = TL_OK;
    pthread_mutex_lock(&f->lock);
    for (const struct folder_lease *l = f->held; l && r == TL_OK; l = l->next)
        if (tl_lease_guards(l->name, key) && !is_held(l))
            r = tl_fail_set(fail, TL_DENIED, "the lease \"%s\" was lost; stop this process",
                            l->name);
    pthread_mutex_unlock(&f->lock);
    return r;
}

static int bad_key(struct tl_fail *fail, const char *key)
{
    return tl_fail_set(fail, TL_USAGE, "\"%.64s\" is not a key", key);
}

static int write_temporary(struct folder *f, const char *name, struct tl_bytes bytes)
{
    const int fd = openat(f->tmp, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    int r = tl_write_at(fd, bytes.p, bytes.n, 0);
    if (r == 0)
        r = fsync(fd);
    const int e = errno;
    close(fd);
    errno = e;
    return r;
}

/* Give a written file its name. Its folder may not exist yet; a concurrent removal may delete an
 * empty one again. */
static int place(struct folder *f, const char *name, const char *key)
{
    for (int tries = 0;; tries++) {
        if (renameat(f->tmp, name, f->objects, key) == 0)
            return 0;
        if (errno != ENOENT || tries == 100 || tl_files_make_parents(f->objects, key) < 0)
            return -1;
    }
}

static int not_stored(struct tl_fail *fail, const char *key)
{
    const int code = lost(fail, "store", key);
    return code == TL_NOTFOUND ? TL_IO : code;
}

/* Write an object under its name, which is not durable yet. */
static int write_object(struct folder *f, const struct tl_object *object, struct tl_fail *fail)
{
    char name[32];
    snprintf(name, sizeof(name), "%lu", atomic_fetch_add(&f->serial, 1));
    if (write_temporary(f, name, object->bytes) == 0 && place(f, name, object->key) == 0)
        return TL_OK;
    const int code = not_stored(fail, object->key);
    unlinkat(f->tmp, name, 0);
    return code;
}

/* Are both keys in the same folder? */
static bool are_together(const char *a, const char *b)
{
    const char *const end_a = strrchr(a, '/'), *const end_b = strrchr(b, '/');
    const size_t n = end_a ? (size_t)(end_a - a) : 0;
    return n == (end_b ? (size_t)(end_b - b) : 0) && memcmp(a, b, n) == 0;
}

static uint64_t folder_free_bytes(struct tl_backend *backend)
{
    return tl_disk_free(folder_of(backend)->dir);
}

/* Note whether a write has succeeded; returns its result. */
static int noted(struct folder *f, int r)
{
    const int trouble = r == TL_NOSPACE ? ENOSPC : r == TL_IO ? EIO : 0;
    if (atomic_load_explicit(&f->trouble, memory_order_relaxed) != trouble &&
        (r >= 0 || trouble != 0))
        atomic_store(&f->trouble, trouble);
    return r;
}

/* May `key` be written, or is what space there is held back? */
static int may_fill(struct folder *f, const char *key, struct tl_fail *fail)
{
    if (strncmp(key, "m/", 2) == 0 || tl_reserve_spares(&f->reserve))
        return TL_OK;
    errno = ENOSPC;
    return noted(f, refused(fail, "write", key));
}

static int folder_put_all(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                          struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    for (size_t i = 0; i < n; i++)
        if (!tl_key_valid(objects[i].key))
            return bad_key(fail, objects[i].key);
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        const char *const key = objects[i].key;
        r = fenced(f, key, fail);
        if (r >= 0)
            r = may_fill(f, key, fail);
        if (r >= 0)
            r = noted(f, write_object(f, &objects[i], fail));
        /* One sync for consecutive names in the same folder. */
        if (r >= 0 && (i + 1 == n || !are_together(key, objects[i + 1].key)) &&
            tl_files_sync_parent(f->objects, key) < 0)
            r = noted(f, not_stored(fail, key));
    }
    return r;
}

/* Open an object for reading, to be given back. */
static int take_file(struct folder *f, const char *key, struct tl_openfile *out,
                     struct tl_fail *fail)
{
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    return tl_openfiles_take(f->open, key, out) < 0 ? refused(fail, "open", key) : TL_OK;
}

static int folder_get(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
                      struct tl_buf *out, struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    struct tl_openfile file;
    int r = take_file(f, key, &file, fail);
    if (r < 0)
        return r;
    n = tl_files_limit_to_size((uint64_t)file.st.st_size, offset, n);
    if (tl_buf_reserve(out, n) < 0)
        r = tl_fail_set(fail, TL_NOMEM, "no memory for %zu bytes of %s", n, key);
    else if (tl_files_read_some(file.fd, offset, n, out) < 0)
        r = refused(fail, "read", key);
    tl_openfiles_give(f->open, &file);
    return r;
}

static int folder_map(struct tl_backend *backend, const char *key, struct tl_bytes *out,
                      struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    struct tl_openfile file;
    int r = take_file(f, key, &file, fail);
    if (r < 0)
        return r;
    const size_t n = (size_t)file.st.st_size;
    void *const p = mmap(NULL, n, PROT_READ, MAP_SHARED, file.fd, 0);
    if (p == MAP_FAILED)
        r = refused(fail, "map", key);
    else
        *out = (struct tl_bytes){p, n};
    tl_openfiles_give(f->open, &file);
    return r;
}

static int folder_size(struct tl_backend *backend, const char *key, uint64_t *out,
                       struct tl_fail *fail)
{
    struct stat st;
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    if (fstatat(folder_of(backend)->objects, key, &st, 0) < 0)
        return refused(fail, "look at", key);
    *out = (uint64_t)st.st_size;
    return TL_OK;
}

static int folder_remove(struct tl_backend *backend, const char *key, struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    const int may = fenced(f, key, fail);
    if (may < 0)
        return may;
    if (unlinkat(f->objects, key, 0) < 0 && errno != ENOENT)
        return refused(fail, "remove", key);
    tl_openfiles_forget(f->open, key);
    /* Remove folders that have become empty; rmdir() fails on others, which ends the loop. The
     * topmost ones are kept: another thread may be about to create something there. */
    char path[544];
    snprintf(path, sizeof(path), "%s", key);
    for (char *slash = strrchr(path, '/'); slash; slash = strrchr(path, '/')) {
        *slash = '\0';
        if (!strchr(path, '/') || unlinkat(f->objects, path, AT_REMOVEDIR) < 0)
            break;
    }
    return TL_OK;
}

struct walk {
    struct folder *f;
    int (*each)(void *context, const char *key, uint64_t size);
    void *context;
    struct tl_fail *fail;
};

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int walk_entry(const struct walk *walk, const char *path, int depth);

static int walk_folder(const struct walk *walk, const char *path, int depth)
{
    struct dirent **names;
    const int n = scandirat(walk->f->objects, *path ? path : ".", &names, visible, alphasort);
    if (n < 0)
        return errno == ENOENT ? TL_OK : refused(walk->fail, "list", path);
    int r = TL_OK;
    for (int i = 0; i < n; i++) {
        char below[1024];
        const int length =
            snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "", names[i]->d_name);
        if (r == TL_OK && length < (int)sizeof(below))
            r = walk_entry(walk, below, depth + 1);
        free(names[i]);
    }
    free(names);
    return r;
}

static int walk_entry(const struct walk *walk, const char *path, int depth)
{
    struct stat st;
    if (fstatat(walk->f->objects, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return TL_OK; /* removed meanwhile */
    if (S_ISDIR(st.st_mode))
        return depth < 16 ? walk_folder(walk, path, depth) : TL_OK;
    return walk->each(walk->context, path, (uint64_t)st.st_size);
}

static int folder_list(struct tl_backend *backend, const char *prefix,
                       int (*each)(void *context, const char *key, uint64_t size), void *context,
                       struct tl_fail *fail)
{
    if (*prefix && !tl_key_valid(prefix))
        return bad_key(fail, prefix);
    const struct walk walk = {folder_of(backend), each, context, fail};
    return walk_folder(&walk, prefix, 0);
}

/* ---- logs -------------------------------------------------------------------------------- */

static struct folder_log *log_of(struct tl_log *log)
{
    return (struct folder_log *)log;
}

static int folder_log_open(struct tl_backend *backend, const char *key, bool create,
                           struct tl_log **out, uint64_t *size, struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    if (!tl_key_valid(key))
        return bad_key(fail, key);
    const int may = create ? fenced(f, key, fail) : TL_OK;
    if (may < 0)
        return may;
    if (create && tl_files_make_folder_of(f->objects, key) < 0)
        return lost(fail, "make the folders of", key);
    struct folder_log *log = calloc(1, sizeof(*log));
    if (!log)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    log->base.ops = backend->ops;
    log->f = f;
    log->named = !create;
    snprintf(log->key, sizeof(log->key), "%s", key);
    log->fd = openat(f->objects, key, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0666);
    struct stat st;
    if (log->fd < 0 || fstat(log->fd, &st) < 0) {
        const int r = create ? lost(fail, "open", key) : refused(fail, "open", key);
        if (log->fd >= 0)
            close(log->fd);
        free(log);
        return r;
    }
    *size = (uint64_t)st.st_size;
    *out = &log->base;
    return TL_OK;
}

static int folder_log_write(struct tl_log *base, uint64_t offset, const struct tl_bytes *parts,
                            size_t n_parts, struct tl_fail *fail)
{
    struct folder_log *log = log_of(base);
    int may = fenced(log->f, log->key, fail);
    if (may >= 0)
        may = may_fill(log->f, log->key, fail);
    if (may < 0)
        return may;
    for (size_t i = 0; i < n_parts; i++) {
        if (tl_write_at(log->fd, parts[i].p, parts[i].n, offset) < 0)
            return noted(log->f, refused(fail, "write", log->key));
        offset += parts[i].n;
    }
    return TL_OK;
}

static int folder_log_read(struct tl_log *base, uint64_t offset, size_t n, struct tl_buf *out,
                           struct tl_fail *fail)
{
    struct folder_log *log = log_of(base);
    struct stat st;
    if (fstat(log->fd, &st) < 0)
        return refused(fail, "read", log->key);
    n = tl_files_limit_to_size((uint64_t)st.st_size, offset, n);
    if (tl_buf_reserve(out, n) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory for %zu bytes of %s", n, log->key);
    if (tl_files_read_some(log->fd, offset, n, out) < 0)
        return refused(fail, "read", log->key);
    return TL_OK;
}

static int folder_log_sync(struct tl_log *base, struct tl_fail *fail)
{
    struct folder_log *log = log_of(base);
    const int may = fenced(log->f, log->key, fail);
    if (may < 0)
        return may;
    if (!log->named && tl_files_sync_names(log->f->objects, log->key) < 0)
        return noted(log->f, lost(fail, "sync the folders of", log->key));
    log->named = true;
    return noted(log->f, fdatasync(log->fd) < 0 ? refused(fail, "sync", log->key) : TL_OK);
}

static int folder_log_truncate(struct tl_log *base, uint64_t size, struct tl_fail *fail)
{
    struct folder_log *log = log_of(base);
    const int may = fenced(log->f, log->key, fail);
    if (may < 0)
        return may;
    if (ftruncate(log->fd, (off_t)size) < 0)
        return refused(fail, "truncate", log->key);
    return TL_OK;
}

static void folder_log_close(struct tl_log *base)
{
    if (!base)
        return;
    close(log_of(base)->fd);
    free(base);
}

/* ---- leases, space, life ------------------------------------------------------------------ */

/* Remove incomplete files left by an earlier process. */
static void empty_tmp(struct folder *f)
{
    struct dirent **names;
    const int n = scandirat(f->tmp, ".", &names, visible, alphasort);
    for (int i = 0; i < n; i++) {
        unlinkat(f->tmp, names[i]->d_name, 0);
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

/* The file contains the epoch of its last grant, as text. */
static int next_epoch(struct folder_lease *lease)
{
    char text[32] = "";
    if (pread(lease->fd, text, sizeof(text) - 1, 0) < 0)
        return -1;
    lease->base.epoch = strtoull(text, NULL, 10) + 1;
    const int n = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)lease->base.epoch);
    return tl_write_at(lease->fd, text, (size_t)n, 0) < 0 ? -1 : fsync(lease->fd);
}

static int folder_lease(struct tl_backend *backend, const char *name, struct tl_lease **out,
                        struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    if (!tl_key_valid(name) || strchr(name, '/') || strlen(name) >= 64)
        return bad_key(fail, name);
    struct folder_lease *lease = calloc(1, sizeof(*lease));
    if (!lease)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    lease->base.ops = backend->ops;
    lease->fd = openat(f->leases, name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lease->fd < 0) {
        free(lease);
        return refused(fail, "open lease", name);
    }
    if (flock(lease->fd, LOCK_EX | LOCK_NB) < 0) {
        close(lease->fd);
        free(lease);
        return tl_fail_set(fail, TL_DENIED, "another process holds the data folder's lease \"%s\"",
                           name);
    }
    /* It was revoked between opening and locking. */
    lease->f = f;
    snprintf(lease->name, sizeof(lease->name), "%s", name);
    if (!is_held(lease) || next_epoch(lease) < 0) {
        const int r = tl_fail_set(fail, errno == ENOSPC || errno == EDQUOT ? TL_NOSPACE : TL_IO,
                                  "cannot take the lease \"%s\": %s", name, strerror(errno));
        close(lease->fd);
        free(lease);
        return r;
    }
    if (strcmp(name, TL_LEASE_ALL) == 0)
        empty_tmp(f);
    pthread_mutex_lock(&f->lock);
    lease->next = f->held;
    f->held = lease;
    pthread_mutex_unlock(&f->lock);
    *out = &lease->base;
    return TL_OK;
}

static void folder_lease_release(struct tl_lease *base)
{
    if (!base)
        return;
    struct folder_lease *lease = (struct folder_lease *)base;
    pthread_mutex_lock(&lease->f->lock);
    struct folder_lease **p = &lease->f->held;
    while (*p != lease)
        p = &(*p)->next;
    *p = lease->next;
    pthread_mutex_unlock(&lease->f->lock);
    close(lease->fd);
    free(base);
}

static int folder_scratch(struct tl_backend *backend, struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    const int fd = openat(f->tmp, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    /* Not every file system supports unnamed files. */
    char name[40];
    snprintf(name, sizeof(name), "scratch%lu", atomic_fetch_add(&f->serial, 1));
    const int named = openat(f->tmp, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (named < 0)
        return refused(fail, "make", "a scratch file");
    unlinkat(f->tmp, name, 0);
    return named;
}

static int folder_turns(struct tl_backend *backend, struct tl_fail *fail)
{
    const int fd = openat(folder_of(backend)->dir, "turns", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return fd < 0 ? refused(fail, "open", "turns") : fd;
}

static void folder_give_space(struct tl_backend *backend)
{
    tl_reserve_give(&folder_of(backend)->reserve);
}

/* After a failed write: can something be written now? */
static void try_to_write(struct folder *f)
{
    static const uint8_t some[4096] = {1};
    static const char name[] = "attempt";
    if (write_temporary(f, name, (struct tl_bytes){some, sizeof some}) == 0)
        atomic_store(&f->trouble, 0);
    (void)!unlinkat(f->tmp, name, 0);
}

static void folder_keep_space(struct tl_backend *backend)
{
    struct folder *f = folder_of(backend);
    tl_reserve_keep(&f->reserve);
    if (atomic_load(&f->trouble) && folder_free_bytes(backend) >= FULL_BYTES)
        try_to_write(f);
}

static int lease_lost(struct folder *f, struct tl_fail *fail)
{
    int r = TL_OK;
    pthread_mutex_lock(&f->lock);
    for (const struct folder_lease *l = f->held; l && r == TL_OK; l = l->next)
        if (!is_held(l))
            r = tl_fail_set(fail, TL_DENIED, "the lease \"%s\" was lost; stop this process",
                            l->name);
    pthread_mutex_unlock(&f->lock);
    return r;
}

/* The descriptor stays valid for a folder that was removed, moved or unmounted. */
static int folder_usable(struct tl_backend *backend, struct tl_fail *fail)
{
    const struct folder *f = folder_of(backend);
    struct stat held, there;
    if (fstat(f->dir, &held) < 0 || stat(f->path, &there) < 0 || held.st_ino != there.st_ino ||
        held.st_dev != there.st_dev)
        return tl_fail_set(fail, TL_IO, "the data folder %.120s is gone", f->path);
    if (faccessat(f->objects, ".", W_OK | X_OK, AT_EACCESS) < 0)
        return tl_fail_set(fail, TL_IO, "the data folder %.120s cannot be written: %s", f->path,
                           strerror(errno));
    return TL_OK;
}

static int folder_writable(struct tl_backend *backend, struct tl_fail *fail)
{
    struct folder *const f = folder_of(backend);
    const int trouble = atomic_load(&f->trouble);
    if (trouble == ENOSPC || folder_free_bytes(backend) < FULL_BYTES ||
        !tl_reserve_spares(&f->reserve))
        return tl_fail_set(fail, TL_NOSPACE, "the disk of the data folder %.120s is full%s",
                           f->path, TL_SPACE_ADVICE);
    if (trouble)
        return tl_fail_set(fail, TL_IO, "writing to the data folder %.120s fails: %s", f->path,
                           strerror(trouble));
    return lease_lost(f, fail);
}

static const char *folder_catalog_uri(struct tl_backend *backend)
{
    return folder_of(backend)->uri;
}

static int folder_catalog_reset(struct tl_backend *backend, struct tl_fail *fail)
{
    struct folder *f = folder_of(backend);
    static const char *const names[] = {"catalog.db", "catalog.db-wal", "catalog.db-shm"};
    const long now = (long)time(NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char aside[64];
        snprintf(aside, sizeof(aside), "damaged-%ld-%s", now, names[i]);
        if (renameat(f->dir, names[i], f->dir, aside) < 0 && errno != ENOENT)
            return refused(fail, "set aside", names[i]);
    }
    return fsync(f->dir) < 0 ? refused(fail, "sync", "the data folder") : TL_OK;
}

static bool folder_may_commit(struct tl_backend *backend)
{
    return fenced(folder_of(backend), TL_LEASE_ALL, NULL) >= 0;
}

static void folder_destroy(struct tl_backend *backend)
{
    struct folder *f = folder_of(backend);
    const int fds[] = {f->dir, f->objects, f->tmp, f->leases};
    tl_openfiles_free(f->open);
    for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static const struct tl_backend_ops folder_ops = {
    .name = "folder",
    .destroy = folder_destroy,
    .put_all = folder_put_all,
    .get = folder_get,
    .map = folder_map,
    .size = folder_size,
    .remove = folder_remove,
    .list = folder_list,
    .log_open = folder_log_open,
    .log_write = folder_log_write,
    .log_read = folder_log_read,
    .log_sync = folder_log_sync,
    .log_truncate = folder_log_truncate,
    .log_close = folder_log_close,
    .lease = folder_lease,
    .lease_release = folder_lease_release,
    .scratch = folder_scratch,
    .turns = folder_turns,
    .free_bytes = folder_free_bytes,
    .usable = folder_usable,
    .writable = folder_writable,
    .keep_space = folder_keep_space,
    .give_space = folder_give_space,
    .catalog_uri = folder_catalog_uri,
    .catalog_reset = folder_catalog_reset,
    .may_commit = folder_may_commit,
};

static int open_below(int dir, const char *name)
{
    if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
        return -1;
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* '%', '?' and '#' have a special meaning in SQLite's URIs. */
static int write_uri(struct folder *f, const char *dir)
{
    const char *const path = f->path;
    if (!realpath(dir, f->path))
        return -1;
    size_t n = (size_t)snprintf(f->uri, sizeof(f->uri), "file:");
    for (const char *p = path; *p && n + 16 < sizeof(f->uri); p++) {
        if (*p == '%' || *p == '?' || *p == '#')
            n += (size_t)snprintf(f->uri + n, sizeof(f->uri) - n, "%%%02x", (unsigned char)*p);
        else
            f->uri[n++] = *p;
    }
    snprintf(f->uri + n, sizeof(f->uri) - n, "/catalog.db");
    return 0;
}

static int make_folders(const char *dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s", dir);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return -1;
        *slash = '/';
    }
    return mkdir(path, 0777) < 0 && errno != EEXIST ? -1 : 0;
}

int tl_backend_folder(struct tl_backend **out, const char *dir, struct tl_fail *fail)
{
    struct folder *f = calloc(1, sizeof(*f));
    if (!f)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    f->base.ops = &folder_ops;
    f->dir = f->objects = f->tmp = f->leases = -1;
    pthread_mutex_init(&f->lock, NULL);
    if (make_folders(dir) < 0 || (f->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
        (f->objects = open_below(f->dir, "objects")) < 0 ||
        (f->tmp = open_below(f->dir, "tmp")) < 0 ||
        (f->leases = open_below(f->dir, "leases")) < 0 || fsync(f->dir) < 0 ||
        write_uri(f, dir) < 0) {
        const int e = errno;
        tl_fail_set(fail, TL_IO, "cannot use %s as the data folder: %s", dir, strerror(e));
        if (fail)
            fail->sys_errno = e;
        folder_destroy(&f->base);
        return TL_IO;
    }
    tl_reserve_find(&f->reserve, f->dir);
    tl_reserve_give(&f->reserve);
    f->open = tl_openfiles_new(f->objects);
    if (!f->open) {
        folder_destroy(&f->base);
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    }
    *out = &f->base;
    return TL_OK;
}
