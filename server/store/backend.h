/* SPDX-License-Identifier: MIT */
/*
 * The interface between the lake and a storage system.
 *
 * A backend stores three things. Immutable objects under a key (shards, images, stored results):
 * written whole, atomically and durably, then only read or removed. Logs (raw capture segments):
 * append-only, durable up to the last sync. And the catalog's small transactional metadata. Leases
 * determine which process may write what.
 *
 * A key is a path of [A-Za-z0-9._-]+ parts joined by '/', no part beginning with a dot. All
 * functions are thread-safe except that a log has one writer at a time; reading a log concurrently
 * with its writer is allowed. Functions return TL_NOSPACE if the medium is full, TL_IO for every
 * other failure of it, TL_NOTFOUND for a key that does not exist.
 *
 * Implementations: a folder (tl_backend_folder), memory (tl_backend_memory, for tests: it can
 * simulate a power cut), a pool of a Ceph cluster (rados/rados.h). One test runs against all.
 */
#ifndef TL_STORE_BACKEND_H
#define TL_STORE_BACKEND_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

struct tl_backend;
struct tl_catalog;
struct tl_log;   /* an open log */
struct tl_lease; /* a held lease */

/* The lease of the only process that may write anything. Any other lease guards what belongs to the
 * trace of its name, see tl_key_owner(). */
#define TL_LEASE_ALL "lake"

/* Messages about a trace between processes that share a store. */
enum tl_news {
    TL_NEWS_ROW = 'c',   /* its catalog row has changed */
    TL_NEWS_ASKED = 'a', /* its lease, which is held here, was asked for: see lease_state */
    TL_NEWS_READ = 'r',  /* its live edge is read at a process that does not hold its lease */
    TL_NEWS_IMAGE = 'i', /* an image that its setup names has come to such a process */
};

/* An object to store; both members are borrowed. */
struct tl_object {
    const char *key;
    struct tl_bytes bytes;
};

struct tl_backend_ops {
    const char *name;
    void (*destroy)(struct tl_backend *backend);

    /* Store objects, cheaper together than one by one. After TL_OK all of them survive a power cut,
     * otherwise each key has either its old or its new content. An existing key is replaced, also
     * atomically. */
    int (*put_all)(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                   struct tl_fail *fail);
    /* Append up to `n` bytes beginning at `offset` to `out`; fewer only at the object's end.
     * Returns TL_OK. */
    int (*get)(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
               struct tl_buf *out, struct tl_fail *fail);
    /* Map an object to memory, for system calls only: if its file is cut short or the disk fails,
     * these fail with EFAULT, whereas the process would be killed. To be released with munmap();
     * neither removing nor replacing the object changes it. NULL: not supported. */
    int (*map)(struct tl_backend *backend, const char *key, struct tl_bytes *out,
               struct tl_fail *fail);
    int (*size)(struct tl_backend *backend, const char *key, uint64_t *out, struct tl_fail *fail);
    /* Remove an object or log; a missing one is not an error. */
    int (*remove)(struct tl_backend *backend, const char *key, struct tl_fail *fail);
    /* Call `each` with every key below `prefix` (a whole path, "" for all), in order of key. A
     * result != 0 ends the call and is returned. */
    int (*list)(struct tl_backend *backend, const char *prefix,
                int (*each)(void *context, const char *key, uint64_t size), void *context,
                struct tl_fail *fail);

    /* Open a log; `create` it if it is missing. Its name is durable after its first sync. */
    int (*log_open)(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                    uint64_t *size, struct tl_fail *fail);
    /* Write at `offset`, which is at most the log's size. After a failure the bytes after `offset`
     * are undefined. */
    int (*log_write)(struct tl_log *log, uint64_t offset, const struct tl_bytes *parts,
                     size_t n_parts, struct tl_fail *fail);
    /* Append up to `n` bytes beginning at `offset` to `out`, fewer at the log's end. Writes through
     * other handles are visible once they are synced. TL_NOTFOUND: the log was removed meanwhile;
     * its old content may also still be readable. */
    int (*log_read)(struct tl_log *log, uint64_t offset, size_t n, struct tl_buf *out,
                    struct tl_fail *fail);
    /* After TL_OK everything written before the call survives a power cut. After a failure the
     * state of everything written since the last success is unknown. The log may be written
     * meanwhile, unless there is log_sync_begin. */
    int (*log_sync)(struct tl_log *log, struct tl_fail *fail);
    /* Begin with it, for several logs at once: the next call for the log is log_sync, which waits
     * for its end. NULL: there is nothing to begin with. */
    void (*log_sync_begin)(struct tl_log *log);
    int (*log_truncate)(struct tl_log *log, uint64_t size, struct tl_fail *fail);
    void (*log_close)(struct tl_log *log); /* does not sync; accepts NULL */

    /*
     * Hold the lease `name` (a single key part) until it is released or the process ends.
     * TL_DENIED: another process has it. Each grant has a higher epoch. A lease can be lost (it
     * expires, an operator revokes it, a partition heals): from then on every change of a key that
     * it guards fails with TL_DENIED for this backend object, until it releases the lease, while
     * the next holder works. Keys that no lease of this object guards are not affected.
     */
    int (*lease)(struct tl_backend *backend, const char *name, struct tl_lease **out,
                 struct tl_fail *fail);
    void (*lease_release)(struct tl_lease *lease); /* accepts NULL */
    /*
     * Check whether a lease still holds. TL_OK; TL_DENIED: it was lost. `*asked` receives the
     * number passed to lease_ask by a process that wants it, 0: none. Never blocks. NULL, like
     * lease_ask, if processes cannot share the store.
     */
    int (*lease_state)(struct tl_lease *lease, uint64_t *asked);
    /*
     * From now on require a lease for every change of keys for which tl_key_of_trace() holds, and
     * of the catalog's data of traces except labels and notes: TL_DENIED if this object holds no
     * guarding lease. Call before other threads use the backend. NULL like lease_ask.
     */
    void (*require_leases)(struct tl_backend *backend);
    /* Ask the holder of the lease `name` to release it, with a number > 0. */
    int (*lease_ask)(struct tl_backend *backend, const char *name, uint64_t number,
                     struct tl_fail *fail);

    /*
     * Receive news from other processes as soon as there is any; it may arrive twice or get lost,
     * so waiting code must also poll from time to time. `reported` is called by a thread of the
     * backend and must not call the backend. NULL: stop; after the return `reported` is not called
     * any more. NULL like lease_ask.
     */
    int (*listen)(struct tl_backend *backend,
                  void (*reported)(void *context, enum tl_news news, const char *name),
                  void *context, struct tl_fail *fail);
    /* Notify the listeners in other processes. Changed rows and requests for leases send their own
     * notifications. Does not wait for the store. NULL like lease_ask. */
    void (*report)(struct tl_backend *backend, enum tl_news news, const char *name);

    /* Create an unnamed temporary file, private to the process and deleted when closed, for results
     * too large for memory. Returns its descriptor. */
    int (*scratch)(struct tl_backend *backend, struct tl_fail *fail);

    /* Open the file in which the holder of TL_LEASE_ALL records whose turn it is, created if
     * absent: what is written to it outlives the process, but not always the machine. Returns its
     * descriptor. NULL: there is none. */
    int (*turns)(struct tl_backend *backend, struct tl_fail *fail);

    /* Does the store respond? TL_IO, with the reason; called often, so it does no I/O. */
    int (*usable)(struct tl_backend *backend, struct tl_fail *fail);
    /* Does it take writes: did the last one succeed, is there space, are the leases held? TL_IO,
     * TL_NOSPACE, TL_DENIED, with the reason; does no I/O. NULL: not known. */
    int (*writable)(struct tl_backend *backend, struct tl_fail *fail);
    /*
     * Space is held back, so that removing is possible when the medium is full. `keep_space` holds
     * it back as soon as there is enough, and tries to write after a failed write; call it about
     * once a second. `give_space` makes it available to the catalog if it may need it. NULL: none
     * is.
     */
    void (*keep_space)(struct tl_backend *backend);
    void (*give_space)(struct tl_backend *backend);
    /* Bytes that can still be written; UINT64_MAX if not known. */
    uint64_t (*free_bytes)(struct tl_backend *backend);
    /* The backend's own catalog, see tl_catalog_open(). NULL: SQLite at `catalog_uri`. */
    int (*catalog_open)(struct tl_backend *backend, struct tl_catalog **out, struct tl_fail *fail);
    /* URI of the catalog's SQLite database. Valid as long as the backend. */
    const char *(*catalog_uri)(struct tl_backend *backend);
    /* Set a damaged catalog aside; the next open creates a new one. */
    int (*catalog_reset)(struct tl_backend *backend, struct tl_fail *fail);
    /* May a transaction of the whole catalog commit now? Not if TL_LEASE_ALL was lost or a test
     * simulates a power cut. */
    bool (*may_commit)(struct tl_backend *backend);
};

struct tl_backend {
    const struct tl_backend_ops *ops;
};

struct tl_log {
    const struct tl_backend_ops *ops;
};

struct tl_lease {
    const struct tl_backend_ops *ops;
    uint64_t epoch;
};

/*
 * Open a data folder, created if absent. Objects are files: written under a temporary name, synced,
 * renamed, and their folder synced. `dir` is copied.
 */
TL_MUST_USE int tl_backend_folder(struct tl_backend **out, const char *dir, struct tl_fail *fail);

void tl_backend_free(struct tl_backend *backend); /* accepts NULL */

/* Is `key` well-formed? Backends reject others with TL_USAGE. */
bool tl_key_valid(const char *key);
/* The trace (or other owner) that `key` belongs to: its second part, as in "t/NAME/1/x", or the
 * only one. Borrowed from the key. */
struct tl_bytes tl_key_owner(const char *key);
/* Does the key belong to a single trace: raw bytes, shards and their accompanying objects,
 * checkpoints, the copy of its row? */
bool tl_key_of_trace(const char *key);
/* Does the lease `name` guard `key`? */
bool tl_lease_guards(const char *name, const char *key);

/* Store one object, as `put_all` does. */
TL_MUST_USE static inline int tl_backend_put(struct tl_backend *backend, const char *key,
                                             struct tl_bytes bytes, struct tl_fail *fail)
{
    return backend->ops->put_all(backend, &(struct tl_object){key, bytes}, 1, fail);
}

/* Append a whole object to `out`. */
TL_MUST_USE int tl_backend_get_all(struct tl_backend *backend, const char *key, struct tl_buf *out,
                                   struct tl_fail *fail);
/* Remove every key below `prefix`. */
TL_MUST_USE int tl_backend_remove_all(struct tl_backend *backend, const char *prefix,
                                      struct tl_fail *fail);

#endif
