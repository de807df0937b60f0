/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the store in RADOS. */
#ifndef TL_RADOS_RADOS_INT_H
#define TL_RADOS_RADOS_INT_H

#include "base/now.h"
#include "rados/rados.h"
#include "rados/rados_library.h"

#include <pthread.h>
#include <stdatomic.h>

#define TL_PIECE_BYTES (UINT64_C(4) << 20) /* size of an object in the cluster */
#define TL_FLIGHT      8                   /* concurrent operations of one caller */
#define TL_KEEPERS     8
#define TL_ROOT        "root"
#define TL_NEWS        "news"
#define TL_LAYOUT      2 /* version of the stored layout; 1 had no keys A/ and S/, see rados_rows.h */
#define TL_EPOCH_TEXT  16 /* hex digits, so that text order is numeric order */
#define TL_EPOCH_KEY   600
#define TL_KEPT_KEY    128

struct tl_rados_lease {
    struct tl_lease base;
    struct tl_rados *r;
    struct tl_rados_lease *next;
    bool lost;
    uint64_t asked; /* number given by the last process that asked for it; 0: none */
    bool busy;      /* a keeper is working on it, without the lock */
    int64_t due_ms; /* next renewal, monotonic */
    unsigned renewals;
    char name[64];
    char cookie[40];
};

/* Messages between servers: rados_news.c. */
struct tl_rados_news {
    pthread_t thread; /* sends the messages, and renews an ended watch */
    bool has_thread;
    bool watches; /* used by the thread only, like `watch` */
    uint64_t watch;
    atomic_uint under_way;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock: */
    struct tl_buf lines;           /* to be sent */
    bool listens, broken, closing; /* `broken`: the watch must be renewed */
    pthread_mutex_t reporting;     /* held while `reported` is called */
    void (*reported)(void *context, enum tl_news news, const char *name);
    void *context;
};

/* Entries of recently read objects, each at the place that its key determines: a reader of one part
 * usually reads another one later. */
#define TL_ENTRIES_KEPT 1024
struct tl_rados_kept {
    char key[TL_KEPT_KEY];
    struct tl_buf value;
    int64_t read_ms; /* when it was known to be current */
};

struct tl_rados {
    struct tl_backend base;
    rados_t cluster;
    rados_ioctx_t io;
    bool has_io;
    uint64_t session; /* random; prefix of the names of pieces */
    atomic_ulong serial;
    atomic_llong heard_ms; /* when the cluster last answered, monotonic */
    atomic_ullong free;    /* free bytes, as last reported */
    atomic_llong asked_ms; /* when they were last requested */
    atomic_int refusal;    /* errno of a write that was refused since the last successful probe */
    atomic_llong probed_ms;
    unsigned n_index, layout;
    unsigned lease_s;
    pthread_t keepers[TL_KEEPERS]; /* renew the leases */
    unsigned n_keepers;
    bool needs_leases; /* see tl_backend_ops.require_leases */
    bool lives;        /* its lock as a live process was acquired */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t idle; /* a lease is no longer busy */
    /* Under the lock: */
    bool closing;
    struct tl_rados_lease *held;
    int64_t life_due_ms; /* next sign of life of this process to the others, monotonic */
    struct tl_rados_news news;
    pthread_mutex_t kept_lock;
    struct tl_rados_kept kept[TL_ENTRIES_KEPT]; /* protected by its lock */
};

static inline struct tl_rados *tl_rados_of(struct tl_backend *backend)
{
    return (struct tl_rados *)backend;
}

static inline struct tl_bytes tl_text(const char *s)
{
    return (struct tl_bytes){(const uint8_t *)s, __builtin_strlen(s)};
}

/* Convert a librados result (a negative errno) to a code and a text: cannot `what` `key`. */
int tl_rados_refused(struct tl_fail *fail, int rc, const char *what, const char *key);
/* Execute an operation on an object and release it. Returns the result of librados. */
TL_MUST_USE int tl_rados_write(struct tl_rados *r, const char *oid, rados_write_op_t op);
TL_MUST_USE int tl_rados_read(struct tl_rados *r, const char *oid, rados_read_op_t op);

/* The cluster has answered, whatever it was, unless `rc` says that it has not. */
void tl_rados_heard(struct tl_rados *r, int rc);

/* ---- whether the pool takes new bytes: rados_writable.c ------------------------------------- */

/* A write had this result. */
void tl_rados_note_result(struct tl_rados *r, int rc);
void tl_rados_keep_space(struct tl_backend *backend);
int tl_rados_writable(struct tl_backend *backend, struct tl_fail *fail);

/* Operation steps: set or remove a key of the object's omap. */
void tl_op_set(rados_write_op_t op, const char *key, struct tl_bytes value);
void tl_op_remove(rados_write_op_t op, const char *key);
/* Operation step: fail unless the key's value compares so: LIBRADOS_CMPXATTR_OP_…. */
void tl_op_compare(rados_write_op_t op, const char *key, uint8_t comparison, struct tl_bytes value);
/* Format an epoch as stored in the index, in `out`. */
struct tl_bytes tl_epoch_value(char out[static TL_EPOCH_TEXT + 1], uint64_t epoch);
/* The key of the epoch of a lease other than TL_LEASE_ALL. Returns `out`. */
char *tl_epoch_key(char out[static TL_EPOCH_KEY], struct tl_bytes name);

/* Asynchronous operations in flight; zero-initialise. Not thread-safe. */
struct tl_flight {
    rados_completion_t waiting[TL_FLIGHT];
    unsigned n;
    struct tl_rados *r; /* set by the first write */
    int failed;         /* the first failure, as a negative errno, until tl_flight_land() */
};
/* Start an operation, which is released, once a slot is free. */
void tl_flight_write(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_write_op_t op);
void tl_flight_read(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_read_op_t op);
/* Wait for all of them. Returns the first failure since the previous call. */
TL_MUST_USE int tl_flight_land(struct tl_flight *f);

/* ---- the index: rados_index.c --------------------------------------------------------------- */

/* A change of the index object that contains the entries of `owner`. */
struct tl_change {
    struct tl_rados *r;
    rados_write_op_t op;
    struct tl_bytes owner;
    uint64_t epoch_all, epoch_own; /* of the leases that are compared; 0: none */
    char oid[24];
};

/* Name of the object that contains the entries of `owner`. */
char *tl_index_of(char oid[static 24], const struct tl_rados *r, struct tl_bytes owner);
char *tl_index_at(char oid[static 24], unsigned i);
/* Begin a change that needs no lease. `owner` is borrowed until its end. TL_DENIED: a guarding
 * lease was lost. */
TL_MUST_USE int tl_change_begin(struct tl_change *change, struct tl_rados *r, struct tl_bytes owner,
                                struct tl_fail *fail);
/* Begin a change of a trace. TL_DENIED also if a lease is required and none is held. */
TL_MUST_USE int tl_change_begin_trace(struct tl_change *change, struct tl_rados *r,
                                      struct tl_bytes trace, struct tl_fail *fail);
/* Begin a change of the owner of a key, a trace or not. */
TL_MUST_USE int tl_change_begin_key(struct tl_change *change, struct tl_rados *r, const char *key,
                                    struct tl_fail *fail);
void tl_change_set(struct tl_change *change, const char *key, struct tl_bytes value);
void tl_change_remove(struct tl_change *change, const char *key);
/* Remove keys in [from, to). */
void tl_change_remove_range(struct tl_change *change, const char *from, const char *to);
/* Make the change conditional on the key having this value; empty: on its absence. */
void tl_change_expect(struct tl_change *change, const char *key, struct tl_bytes value);
/* Make the change conditional on the key's presence. */
void tl_change_expect_any(struct tl_change *change, const char *key);
/* Execute it: TL_OK; TL_AGAIN: a condition failed; TL_DENIED: another process holds the lease;
 * TL_NOSPACE, TL_IO. Ends it in any case. */
TL_MUST_USE int tl_change_commit(struct tl_change *change, struct tl_fail *fail);
/* The same in two steps: start it, alone in a flight; wait for it. */
void tl_change_submit(struct tl_change *change, struct tl_flight *flight);
TL_MUST_USE int tl_change_land(struct tl_change *change, struct tl_flight *flight,
                               struct tl_fail *fail);
/* End it without executing it. */
void tl_change_drop(struct tl_change *change);

/* Append the value of a key. TL_NOTFOUND. */
TL_MUST_USE int tl_index_get(struct tl_rados *r, struct tl_bytes owner, const char *key,
                             struct tl_buf *out, struct tl_fail *fail);
/* A value that is read together with other things: begin, land the flight, end. */
struct tl_omap_value {
    rados_omap_iter_t rows;
    int rval;
};
void tl_omap_begin(struct tl_omap_value *value, struct tl_flight *flight, struct tl_rados *r,
                   const char *oid, const char *key);
/* Append the value, if the flight has not `failed`, a result of librados. TL_NOTFOUND. */
TL_MUST_USE int tl_omap_end(struct tl_omap_value *value, int failed, const char *key,
                            struct tl_buf *out, struct tl_fail *fail);
typedef int tl_index_each(void *context, const char *key, struct tl_bytes value);
/* Call `each` with every key of the owner's object that begins with `prefix` and follows
 * `after_name`, in order. A result != 0 ends the call and is returned. */
TL_MUST_USE int tl_index_scan(struct tl_rados *r, struct tl_bytes owner, const char *prefix,
                              const char *after_name, tl_index_each *each, void *context,
                              struct tl_fail *fail);
/* The same for all objects, without an order across them. */
TL_MUST_USE int tl_index_scan_all(struct tl_rados *r, const char *prefix, tl_index_each *each,
                                  void *context, struct tl_fail *fail);
/*
 * The first keys of each object that begin with `prefix` and follow `after_name`, at most `most` of
 * each. The result is complete up to `*end`, a buffer of TL_HEAD_END bytes; "": completely.
 */
#define TL_HEAD_END 1200
TL_MUST_USE int tl_index_heads(struct tl_rados *r, const char *prefix, const char *after_name,
                               unsigned most, char end[static TL_HEAD_END], tl_index_each *each,
                               void *context, struct tl_fail *fail);
/* Drop the cached entry of a key; NULL: all. */
void tl_rados_forget(struct tl_rados *r, const char *key);
/* The same for one object, which need not belong to the index. */
TL_MUST_USE int tl_omap_get(struct tl_rados *r, const char *oid, const char *key,
                            struct tl_buf *out, struct tl_fail *fail);
TL_MUST_USE int tl_omap_scan(struct tl_rados *r, const char *oid, const char *prefix,
                             const char *after_name, tl_index_each *each, void *context,
                             struct tl_fail *fail);

/* ---- entries and pieces: rados_entry.c ------------------------------------------------------ */

struct tl_extent {
    uint64_t session, serial; /* name of the pieces; piece P has the bytes from P * 4 MiB on */
    uint64_t from, to;
};

/* Index entry of a key. */
struct tl_entry {
    char kind; /* 'O' object, 'L' log, 'I' object whose content is inside the entry */
    uint64_t size;
    struct tl_extent *extents; /* in order, together [0, size) */
    size_t n, cap;
    struct tl_bytes content; /* for 'I'; borrowed from the parsed value */
};

#define TL_ENTRY_KEY 528
/* The index key for the key of an object or log. Returns `out`. */
char *tl_entry_key(char out[static TL_ENTRY_KEY], const char *key);
/* Read the entry of an object or log, replacing `entry`; `value` holds its bytes. TL_NOTFOUND;
 * TL_IO: it is damaged. */
TL_MUST_USE int tl_entry_get(struct tl_rados *r, const char *key, struct tl_buf *value,
                             struct tl_entry *entry, struct tl_fail *fail);
void tl_entry_fini(struct tl_entry *entry);
/* Parse into an empty entry, which must be freed also after an error. TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_entry_parse(struct tl_entry *entry, struct tl_bytes value);
TL_MUST_USE int tl_entry_write(const struct tl_entry *entry, struct tl_buf *out);
/* Move [from, to) to the pieces of an extent, replacing its former place. */
TL_MUST_USE int tl_entry_place(struct tl_entry *entry, const struct tl_extent *extent);
/* Remove everything after `size`. */
void tl_entry_cut(struct tl_entry *entry, uint64_t size);

/*
 * Create a name for new pieces [from, to) / 4 MiB (`to` 0: not known); set or remove its intent in
 * a change.
 */
struct tl_extent tl_piece_new(struct tl_rados *r, uint64_t from, uint64_t to);
void tl_intent_set(struct tl_change *change, const struct tl_extent *extent);
void tl_intent_remove(struct tl_change *change, const struct tl_extent *extent);
/* Remove the pieces of the extents of `before` whose name is not in `after` (NULL: none), for which
 * intents are set, and then the intents. What cannot be removed now stays announced. */
void tl_pieces_discard(struct tl_rados *r, struct tl_bytes owner, const struct tl_entry *before,
                       const struct tl_entry *after);
/* Set intents for these pieces in the change that drops them. */
void tl_pieces_drop(struct tl_change *change, const struct tl_entry *before,
                    const struct tl_entry *after);
/* Remove pieces that were only announced by sessions that have ended. */
TL_MUST_USE int tl_pieces_sweep(struct tl_rados *r, struct tl_fail *fail);
/* Make the change conditional on the intent: nobody has swept the pieces. */
void tl_intent_expect(struct tl_change *change, const struct tl_extent *extent);
/* Is it gone? */
bool tl_intent_gone(struct tl_rados *r, struct tl_bytes owner, const struct tl_extent *extent);
/* Start writing at `offset`, inside the extent. */
void tl_pieces_write(struct tl_flight *flight, struct tl_rados *r, const struct tl_extent *extent,
                     uint64_t offset, const struct tl_bytes *parts, size_t n_parts);
/* Append [offset, offset + n) of an entry, which must exist, to `out`. TL_NOTFOUND: a piece is
 * missing. */
TL_MUST_USE int tl_pieces_read(struct tl_rados *r, const struct tl_entry *entry, uint64_t offset,
                               size_t n, struct tl_buf *out, const char *key, struct tl_fail *fail);
/* The same with an entry that is perhaps not current any more: it is checked in the same round
 * trip. False: the entry, or one of its pieces, is not `value` any more or was not read; nothing is
 * appended. */
TL_MUST_USE bool tl_pieces_read_known(struct tl_rados *r, const char *key,
                                      const struct tl_buf *value, const struct tl_entry *entry,
                                      uint64_t offset, size_t n, struct tl_buf *out);

/* ---- the backend's functions ---------------------------------------------------------------- */

int tl_rados_put_all(struct tl_backend *backend, const struct tl_object *objects, size_t n,
                     struct tl_fail *fail);
int tl_rados_get(struct tl_backend *backend, const char *key, uint64_t offset, size_t n,
                 struct tl_buf *out, struct tl_fail *fail);
int tl_rados_size(struct tl_backend *backend, const char *key, uint64_t *out, struct tl_fail *fail);
int tl_rados_remove(struct tl_backend *backend, const char *key, struct tl_fail *fail);
int tl_rados_list(struct tl_backend *backend, const char *prefix,
                  int (*each)(void *context, const char *key, uint64_t size), void *context,
                  struct tl_fail *fail);
int tl_rados_log_open(struct tl_backend *backend, const char *key, bool create, struct tl_log **out,
                      uint64_t *size, struct tl_fail *fail);
int tl_rados_log_write(struct tl_log *log, uint64_t offset, const struct tl_bytes *parts,
                       size_t n_parts, struct tl_fail *fail);
int tl_rados_log_read(struct tl_log *log, uint64_t offset, size_t n, struct tl_buf *out,
                      struct tl_fail *fail);
void tl_rados_log_sync_begin(struct tl_log *log);
int tl_rados_log_sync(struct tl_log *log, struct tl_fail *fail);
int tl_rados_log_truncate(struct tl_log *log, uint64_t size, struct tl_fail *fail);
void tl_rados_log_close(struct tl_log *log);
int tl_rados_catalog_open(struct tl_backend *backend, struct tl_catalog **out,
                          struct tl_fail *fail);
int tl_rados_catalog_reset(struct tl_backend *backend, struct tl_fail *fail);
int tl_rados_lease(struct tl_backend *backend, const char *name, struct tl_lease **out,
                   struct tl_fail *fail);
void tl_rados_lease_release(struct tl_lease *lease);
int tl_rados_lease_state(struct tl_lease *lease, uint64_t *asked);
void tl_rados_require_leases(struct tl_backend *backend);
int tl_rados_listen(struct tl_backend *backend,
                    void (*reported)(void *context, enum tl_news news, const char *name),
                    void *context, struct tl_fail *fail);
void tl_rados_report(struct tl_backend *backend, enum tl_news news, const char *name);
int tl_rados_lease_ask(struct tl_backend *backend, const char *name, uint64_t number,
                       struct tl_fail *fail);
/* May this backend object change entries of `owner`? TL_DENIED, with the lease that was lost.
 * Returns the epochs of the guarding leases that it holds, 0 for those it does not. */
TL_MUST_USE int tl_rados_guard(struct tl_rados *r, struct tl_bytes owner, uint64_t *all,
                               uint64_t *own, struct tl_fail *fail);
/* Record that a lease held with `epoch` was lost. */
void tl_rados_lose(struct tl_rados *r, struct tl_bytes name, uint64_t epoch);
/* Someone has asked for a lease. Does this object hold it? */
bool tl_rados_asked(struct tl_rados *r, const char *name, uint64_t number);
/*
 * Send a message to other servers; `number` as for lease_ask. May be called while holding any
 * lock.
 */
void tl_rados_say(struct tl_rados *r, enum tl_news news, uint64_t number, const char *name);
void tl_rados_news_init(struct tl_rados_news *news);
/* Stop sending and receiving. */
void tl_rados_news_end(struct tl_rados *r);
void tl_rados_news_fini(struct tl_rados_news *news);
/* Announce that this session is alive. */
TL_MUST_USE int tl_rados_live(struct tl_rados *r, struct tl_fail *fail);
/* Has a session ended? If so it is reserved for sweeping by this one, until tl_rados_bury().
 * Returns 1, 0, or the result of librados. */
TL_MUST_USE int tl_rados_is_over(struct tl_rados *r, uint64_t session);
void tl_rados_bury(struct tl_rados *r, uint64_t session);
/* The keepers' threads. */
void tl_rados_keep_end(struct tl_rados *r);

#endif
