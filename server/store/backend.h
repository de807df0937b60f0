/* SPDX-License-Identifier: MIT */
/*
 * Where bytes rest: the interface between the lake and a storage system.
 *
 * Three things are kept. Immutable objects under a key (shards, images, stored results): put
 * whole, atomically and durably, then only read or removed. Logs (raw capture segments): grown
 * at their end, durable up to the last sync. And a place for the catalog's small transactional
 * metadata. Leases tell which process may write what.
 *
 * A key is a path of [A-Za-z0-9._-]+ parts joined by '/', no part beginning with a dot.
 * All functions are thread-safe except that one log has one writer at a time; reading a log
 * beside its writer is fine. Functions return TL_NOSPACE where the medium is full, TL_IO for
 * every other refusal, TL_NOTFOUND for a key that is not there.
 *
 * Implementations: a folder (tl_backend_folder), memory (tl_backend_memory, for tests: it can
 * play a power cut), a pool of a Ceph cluster (rados/rados.h). One test runs against all.
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

/* The lease of the process that alone may write everything. Any other lease guards what belongs to
 * the trace of its name, see tl_key_owner(). */
#define TL_LEASE_ALL "lake"

/* What processes that share a store tell each other of a trace. */
enum tl_news {
    TL_NEWS_ROW = 'c',   /* the catalog's row of it has changed */
    TL_NEWS_ASKED = 'a', /* its lease, which is held here, is asked for: see lease_state */
    TL_NEWS_READ = 'r',  /* its live edge is read at a process that has not its lease */
};

/* An object to be stored; both are borrowed. */
struct tl_object {
    const char *key;
    struct tl_bytes bytes;
};

struct tl_backend_ops {
    const char *name;
    void (*destroy)(struct tl_backend *backend);

    /* Store objects, several for less than one by one costs: after TL_OK all of them survive a
     * power cut, otherwise each key is as it was or as it was to be. A key that is there already is
     * replaced, atomically as well. */
    int (*put_all)(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                   struct tl_fail *fail);
    /* Append up to `n` bytes from `offset` on to `out`; fewer only at the object's end. Returns
     * TL_OK. */
    int (*get)(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
               struct tl_buf *out, struct tl_fail *fail);
    int (*size)(struct tl_backend *backend, const char *key, uint64_t *out, struct tl_fail *fail);
    /* Remove an object or log; one that is not there is no error. */
    int (*remove)(struct tl_backend *backend, const char *key, struct tl_fail *fail);
    /* Call `each` with every key below `prefix` (a whole path, "" for all), in order of key. A
     * result != 0 ends it and is returned. */
    int (*list)(struct tl_backend *backend, const char *prefix,
                int (*each)(void *context, const char *key, uint64_t size), void *context,
                struct tl_fail *fail);

    /* Open a log, made if `create`. Its name is durable when this returns. */
    int (*log_open)(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                    uint64_t *size, struct tl_fail *fail);
    /* Write at `offset`, which is at most the log's size. A failure leaves the bytes behind
     * `offset` undefined. */
    int (*log_write)(struct tl_log *log, uint64_t offset, const struct tl_bytes *parts,
                     size_t n_parts, struct tl_fail *fail);
    /* Append up to `n` bytes from `offset` on to `out`, fewer at the log's end. What another handle
     * has written is there once it was synced. TL_NOTFOUND: it was removed meanwhile; it may also
     * still be read as it was. */
    int (*log_read)(struct tl_log *log, uint64_t offset, size_t n, struct tl_buf *out,
                    struct tl_fail *fail);
    /* After TL_OK everything written survives a power cut. After a failure nothing is known of
     * what was written since the last success. */
    int (*log_sync)(struct tl_log *log, struct tl_fail *fail);
    int (*log_truncate)(struct tl_log *log, uint64_t size, struct tl_fail *fail);
    void (*log_close)(struct tl_log *log); /* does not sync; NULL is fine */

    /*
     * Hold the lease `name` (one part of a key) until it is released or the process ends.
     * TL_DENIED: another has it. Each grant has a higher epoch. A lease can be lost (it expires, an
     * operator takes it away, a partition heals): then every change of a key that it guards is
     * refused to this backend object with TL_DENIED, until it releases the lease, while the next
     * holder works. What no lease of this object guards is not refused.
     */
    int (*lease)(struct tl_backend *backend, const char *name, struct tl_lease **out,
                 struct tl_fail *fail);
    void (*lease_release)(struct tl_lease *lease); /* NULL is fine */
    /*
     * Does a lease still hold? TL_OK; TL_DENIED: it was lost. `*asked` is what another process that
     * wants it has said, 0: none does. Never blocks. NULL as lease_ask where processes cannot share
     * the store.
     */
    int (*lease_state)(struct tl_lease *lease, uint64_t *asked);
    /*
     * From now on what tl_key_of_trace() names and what the catalog has of traces, but for their
     * labels and notes, is changed only under a lease that guards it: TL_DENIED where this object
     * holds none. Before other threads use it. NULL as lease_ask.
     */
    void (*require_leases)(struct tl_backend *backend);
    /* Tell whoever holds the lease `name` that it is wanted, and a number > 0. */
    int (*lease_ask)(struct tl_backend *backend, const char *name, uint64_t number,
                     struct tl_fail *fail);

    /*
     * News from other processes, as soon as they have any; they may come twice or get lost, so that
     * who waits for something also looks from time to time. `told` is called by a thread of the
     * backend's and must not call the backend. NULL: nobody listens any more, and behind it nothing
     * is called. NULL as lease_ask.
     */
    int (*listen)(struct tl_backend *backend,
                  void (*told)(void *context, enum tl_news news, const char *name), void *context,
                  struct tl_fail *fail);
    /* Tell those who listen elsewhere. Changed rows and what is asked for tell themselves. Does not
     * wait for the store. NULL as lease_ask. */
    void (*tell)(struct tl_backend *backend, enum tl_news news, const char *name);

    /* A new unnamed file of the calling process' own, gone when closed, for results too large for
     * memory. Returns its descriptor. */
    int (*scratch)(struct tl_backend *backend, struct tl_fail *fail);

    /* Can it be read and written? TL_IO, with the reason; asked often, so nothing is tried. */
    int (*usable)(struct tl_backend *backend, struct tl_fail *fail);
    /* Bytes that may still be written; UINT64_MAX where that is not known. */
    uint64_t (*free_bytes)(struct tl_backend *backend);
    /* The backend's own catalog, see tl_catalog_open(). NULL: it is SQLite at `catalog_uri`. */
    int (*catalog_open)(struct tl_backend *backend, struct tl_catalog **out, struct tl_fail *fail);
    /* The database of a catalog that is SQLite, as its URI. Valid as long as the backend. */
    const char *(*catalog_uri)(struct tl_backend *backend);
    /* Set a damaged catalog aside; the next opening makes a new one. */
    int (*catalog_reset)(struct tl_backend *backend, struct tl_fail *fail);
    /* May a transaction of the whole catalog commit now? No, where TL_LEASE_ALL was lost or a test
     * cuts the power. */
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
 * A data folder, made if absent. Objects are files: written beside, synced, renamed into place,
 * their folder synced. `dir` is copied.
 */
TL_MUST_USE int tl_backend_folder(struct tl_backend **out, const char *dir, struct tl_fail *fail);

void tl_backend_free(struct tl_backend *backend); /* NULL is fine */

/* Is `key` well-formed? Backends refuse others with TL_USAGE. */
bool tl_key_valid(const char *key);
/* The trace, or what else, `key` belongs to: its second part, "t/NAME/1/x", or the only one.
 * Borrowed from the key. */
struct tl_bytes tl_key_owner(const char *key);
/* Is it one of a trace's own: raw bytes, shards and what lies beside them, checkpoints, the copy of
 * its row? */
bool tl_key_of_trace(const char *key);
/* Does the lease `name` guard `key`? */
bool tl_lease_guards(const char *name, const char *key);

/* Store one object, as `put_all` does. */
TL_MUST_USE static inline int tl_backend_put(struct tl_backend *backend, const char *key,
                                             struct tl_bytes bytes, struct tl_fail *fail)
{
    return backend->ops->put_all(backend, &(struct tl_object){key, bytes}, 1, fail);
}

/* A whole object appended to `out`. */
TL_MUST_USE int tl_backend_get_all(struct tl_backend *backend, const char *key, struct tl_buf *out,
                                   struct tl_fail *fail);
/* Remove every key below `prefix`. */
TL_MUST_USE int tl_backend_remove_all(struct tl_backend *backend, const char *prefix,
                                      struct tl_fail *fail);

#endif
