/* SPDX-License-Identifier: MIT */
/* What the parts of the store in RADOS share. */
#ifndef TL_RADOS_RADOS_INT_H
#define TL_RADOS_RADOS_INT_H

#include "rados/rados.h"
#include "rados/rados_library.h"

#include <pthread.h>
#include <stdatomic.h>

#define TL_PIECE_BYTES (UINT64_C(4) << 20) /* of an object in the cluster */
#define TL_FLIGHT      8                   /* operations under way of one caller */
#define TL_KEEPERS     8
#define TL_ROOT        "root"
#define TL_NEWS        "news"
#define TL_LAYOUT      2  /* of what is stored; 1 had no keys A/ and S/, see rados_rows.h */
#define TL_EPOCH_TEXT  16 /* hex digits: their order is the epochs' */
#define TL_EPOCH_KEY   600
#define TL_KEPT_KEY    128

struct tl_rados_lease {
    struct tl_lease base;
    struct tl_rados *r;
    struct tl_rados_lease *next;
    bool lost;
    uint64_t asked; /* what another process has said that wants it, 0: none does */
    bool busy;      /* a keeper is at it, without the lock */
    int64_t due_ms; /* when it is to be renewed, monotonic */
    unsigned renewals;
    char name[64];
    char cookie[40];
};

/* What servers tell each other: rados_news.c. */
struct tl_rados_news {
    pthread_t thread; /* tells what others are to know, and watches anew where that ended */
    bool has_thread;
    bool watches; /* of the thread, as `watch` is */
    uint64_t watch;
    atomic_uint under_way;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock: */
    struct tl_buf lines;           /* to be told */
    bool listens, broken, closing; /* `broken`: it is to be watched anew */
    pthread_mutex_t telling;       /* held while `told` is called */
    void (*told)(void *context, enum tl_news news, const char *name);
    void *context;
};

/* Entries of objects that were read last: who reads a part of one mostly reads another part next.
 */
#define TL_ENTRIES_KEPT 16
struct tl_rados_kept {
    char key[TL_KEPT_KEY];
    struct tl_buf value;
    int64_t read_ms;
};

struct tl_rados {
    struct tl_backend base;
    rados_t cluster;
    rados_ioctx_t io;
    bool has_io;
    uint64_t session; /* random: names of pieces begin with it */
    atomic_ulong serial;
    atomic_llong heard_ms; /* when the cluster last answered, monotonic */
    atomic_ullong free;    /* bytes, as it last said */
    atomic_llong asked_ms; /* when it was asked for that */
    unsigned n_index, layout;
    unsigned lease_s;
    pthread_t keepers[TL_KEEPERS]; /* renew leases */
    unsigned n_keepers;
    bool needs_leases; /* see tl_backend_ops.require_leases */
    bool lives;        /* its lock as a process that is alive was taken */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_cond_t idle; /* a lease is not busy any more */
    /* Under the lock: */
    bool closing;
    struct tl_rados_lease *held;
    int64_t life_due_ms; /* when the others are to hear that this process is alive, monotonic */
    struct tl_rados_news news;
    pthread_mutex_t kept_lock;
    struct tl_rados_kept kept[TL_ENTRIES_KEPT]; /* under its lock */
};

static inline struct tl_rados *tl_rados_of(struct tl_backend *backend)
{
    return (struct tl_rados *)backend;
}

static inline struct tl_bytes tl_text(const char *s)
{
    return (struct tl_bytes){(const uint8_t *)s, __builtin_strlen(s)};
}

int64_t tl_rados_now_ms(void); /* monotonic */
/* What librados returned (a negative errno) as a code and a text: cannot `what` `key`. */
int tl_rados_refused(struct tl_fail *fail, int rc, const char *what, const char *key);
/* Carry out an operation on an object and release it. Returns what librados does. */
TL_MUST_USE int tl_rados_write(struct tl_rados *r, const char *oid, rados_write_op_t op);
TL_MUST_USE int tl_rados_read(struct tl_rados *r, const char *oid, rados_read_op_t op);

/* Parts of an operation on an object: a key of its omap gets a value or goes. */
void tl_op_set(rados_write_op_t op, const char *key, struct tl_bytes value);
void tl_op_remove(rados_write_op_t op, const char *key);
/* The operation does nothing unless the key's value compares so: LIBRADOS_CMPXATTR_OP_…. */
void tl_op_compare(rados_write_op_t op, const char *key, uint8_t comparison, struct tl_bytes value);
/* An epoch as the index has it, in `out`. */
struct tl_bytes tl_epoch_value(char out[static TL_EPOCH_TEXT + 1], uint64_t epoch);
/* The key of the epoch of a lease that is not TL_LEASE_ALL's. Returns `out`. */
char *tl_epoch_key(char out[static TL_EPOCH_KEY], struct tl_bytes name);

/* Operations under way; zero is none. Not thread-safe. */
struct tl_flight {
    rados_completion_t waiting[TL_FLIGHT];
    unsigned n;
    int failed; /* the first failure, as a negative errno, until the flight has landed */
};
/* Begin an operation, which is released, once there is room for it. */
void tl_flight_write(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_write_op_t op);
void tl_flight_read(struct tl_flight *f, struct tl_rados *r, const char *oid, rados_read_op_t op);
/* Wait for all of them. Returns the first failure since it last did. */
TL_MUST_USE int tl_flight_land(struct tl_flight *f);

/* ---- the index: rados_index.c --------------------------------------------------------------- */

/* A change of the index object that has the entries of `owner`. */
struct tl_change {
    struct tl_rados *r;
    rados_write_op_t op;
    struct tl_bytes owner;
    uint64_t epoch_all, epoch_own; /* of the leases that are compared; 0: none */
    char oid[24];
};

/* The object that has the entries of `owner`. */
char *tl_index_of(char oid[static 24], const struct tl_rados *r, struct tl_bytes owner);
char *tl_index_at(char oid[static 24], unsigned i);
/* Begin one that needs no lease. `owner` is borrowed until its end. TL_DENIED: a lease that guards
 * it was lost. */
TL_MUST_USE int tl_change_begin(struct tl_change *change, struct tl_rados *r, struct tl_bytes owner,
                                struct tl_fail *fail);
/* The same of a trace. TL_DENIED also where a lease is required and none is held. */
TL_MUST_USE int tl_change_begin_trace(struct tl_change *change, struct tl_rados *r,
                                      struct tl_bytes trace, struct tl_fail *fail);
/* The same of what has the key, a trace or not. */
TL_MUST_USE int tl_change_begin_key(struct tl_change *change, struct tl_rados *r, const char *key,
                                    struct tl_fail *fail);
void tl_change_set(struct tl_change *change, const char *key, struct tl_bytes value);
void tl_change_remove(struct tl_change *change, const char *key);
/* Keys from `from` on that are below `to`. */
void tl_change_remove_range(struct tl_change *change, const char *from, const char *to);
/* Nothing happens unless the key has this value; an empty one: unless it is not there. */
void tl_change_expect(struct tl_change *change, const char *key, struct tl_bytes value);
/* Nothing happens unless the key is there. */
void tl_change_expect_any(struct tl_change *change, const char *key);
/* Carry it out: TL_OK; TL_AGAIN: it is not as was expected; TL_DENIED: another holds the lease;
 * TL_NOSPACE, TL_IO. Ends it in any case. */
TL_MUST_USE int tl_change_commit(struct tl_change *change, struct tl_fail *fail);
/* End it without anything done. */
void tl_change_drop(struct tl_change *change);

/* Append the value of a key. TL_NOTFOUND. */
TL_MUST_USE int tl_index_get(struct tl_rados *r, struct tl_bytes owner, const char *key,
                             struct tl_buf *out, struct tl_fail *fail);
typedef int tl_index_each(void *context, const char *key, struct tl_bytes value);
/* `each` with every key of the owner's object that begins with `prefix` and is behind `behind`, in
 * order. A result != 0 ends it and is returned. */
TL_MUST_USE int tl_index_scan(struct tl_rados *r, struct tl_bytes owner, const char *prefix,
                              const char *behind, tl_index_each *each, void *context,
                              struct tl_fail *fail);
/* The same of all objects, in no order across them. */
TL_MUST_USE int tl_index_scan_all(struct tl_rados *r, const char *prefix, tl_index_each *each,
                                  void *context, struct tl_fail *fail);
/*
 * The first keys of each object that begin with `prefix` and are behind `behind`, at most `most` of
 * each. Up to `*end`, which has room for TL_HEAD_END bytes, these are all that there are; "": of
 * all objects.
 */
#define TL_HEAD_END 1200
TL_MUST_USE int tl_index_heads(struct tl_rados *r, const char *prefix, const char *behind,
                               unsigned most, char end[static TL_HEAD_END], tl_index_each *each,
                               void *context, struct tl_fail *fail);
/* Forget what was kept of a key's entry, NULL: of all. */
void tl_rados_forget(struct tl_rados *r, const char *key);
/* The same of one object, which need not be of the index. */
TL_MUST_USE int tl_omap_get(struct tl_rados *r, const char *oid, const char *key,
                            struct tl_buf *out, struct tl_fail *fail);
TL_MUST_USE int tl_omap_scan(struct tl_rados *r, const char *oid, const char *prefix,
                             const char *behind, tl_index_each *each, void *context,
                             struct tl_fail *fail);

/* ---- entries and pieces: rados_entry.c ------------------------------------------------------ */

struct tl_extent {
    uint64_t session, serial; /* name of the pieces; piece P has their bytes from P * 4 MiB on */
    uint64_t from, to;
};

/* What the index says of a key. */
struct tl_entry {
    char kind; /* 'O' object, 'L' log, 'I' object whose bytes are in the entry */
    uint64_t size;
    struct tl_extent *extents; /* in order, together [0, size) */
    size_t n, cap;
    struct tl_bytes content; /* of 'I'; borrowed from what was parsed */
};

#define TL_ENTRY_KEY 528
/* The index's key for that of an object or log. Returns `out`. */
char *tl_entry_key(char out[static TL_ENTRY_KEY], const char *key);
/* What the index says of an object or log, in place of what `entry` was; `value` keeps its bytes.
 * TL_NOTFOUND; TL_IO: it is damaged. */
TL_MUST_USE int tl_entry_get(struct tl_rados *r, const char *key, struct tl_buf *value,
                             struct tl_entry *entry, struct tl_fail *fail);
void tl_entry_fini(struct tl_entry *entry);
/* TL_BAD, TL_NOMEM; the entry, which was empty, is then to be freed as well. */
TL_MUST_USE int tl_entry_parse(struct tl_entry *entry, struct tl_bytes value);
TL_MUST_USE int tl_entry_write(const struct tl_entry *entry, struct tl_buf *out);
/* Have [from, to) in the pieces of a name instead of where it was. */
TL_MUST_USE int tl_entry_place(struct tl_entry *entry, const struct tl_extent *extent);
/* Cut off what is behind `size`. */
void tl_entry_cut(struct tl_entry *entry, uint64_t size);

/* A name for new pieces, its intent in the change: pieces [from, to) / 4 MiB; `to` 0: not known. */
struct tl_extent tl_piece_new(struct tl_rados *r, uint64_t from, uint64_t to);
void tl_intent_set(struct tl_change *change, const struct tl_extent *extent);
void tl_intent_remove(struct tl_change *change, const struct tl_extent *extent);
/* Remove the pieces of extents of `before` whose name is not in `after` (NULL: none is), whose
 * intents are set, and then these. What cannot be removed now stays announced. */
void tl_pieces_discard(struct tl_rados *r, struct tl_bytes owner, const struct tl_entry *before,
                       const struct tl_entry *after);
/* Announce the same in the change that drops them. */
void tl_pieces_drop(struct tl_change *change, const struct tl_entry *before,
                    const struct tl_entry *after);
/* Remove what sessions have announced only that are over. */
TL_MUST_USE int tl_pieces_sweep(struct tl_rados *r, struct tl_fail *fail);
/* Nothing happens unless the intent is still there: nobody has swept the pieces. */
void tl_intent_expect(struct tl_change *change, const struct tl_extent *extent);
/* Is it gone? */
bool tl_intent_gone(struct tl_rados *r, struct tl_bytes owner, const struct tl_extent *extent);
/* Begin to write at `offset`, which the extent has. */
void tl_pieces_write(struct tl_flight *flight, struct tl_rados *r, const struct tl_extent *extent,
                     uint64_t offset, const struct tl_bytes *parts, size_t n_parts);
/* Append [offset, offset + n) of an entry, which has them, to `out`. TL_NOTFOUND: a piece is gone.
 */
TL_MUST_USE int tl_pieces_read(struct tl_rados *r, const struct tl_entry *entry, uint64_t offset,
                               size_t n, struct tl_buf *out, const char *key, struct tl_fail *fail);

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
                    void (*told)(void *context, enum tl_news news, const char *name), void *context,
                    struct tl_fail *fail);
void tl_rados_tell(struct tl_backend *backend, enum tl_news news, const char *name);
int tl_rados_lease_ask(struct tl_backend *backend, const char *name, uint64_t number,
                       struct tl_fail *fail);
/* May this object change what `owner` has? TL_DENIED, with the lease that was lost. The epochs of
 * the leases that guard it are told, 0 where it holds none. */
TL_MUST_USE int tl_rados_guard(struct tl_rados *r, struct tl_bytes owner, uint64_t *all,
                               uint64_t *own, struct tl_fail *fail);
/* The epoch of a lease this object holds is not `epoch` any more. */
void tl_rados_lose(struct tl_rados *r, struct tl_bytes name, uint64_t epoch);
/* Somebody has asked for a lease. Does this object hold it? */
bool tl_rados_asked(struct tl_rados *r, const char *name, uint64_t number);
/* Tell other servers, with the number of who asks for a lease. Any lock may be held. */
void tl_rados_say(struct tl_rados *r, enum tl_news news, uint64_t number, const char *name);
void tl_rados_news_init(struct tl_rados_news *news);
/* Nothing is told or heard any more. */
void tl_rados_news_end(struct tl_rados *r);
void tl_rados_news_fini(struct tl_rados_news *news);
/* Let others know that this session is alive. */
TL_MUST_USE int tl_rados_live(struct tl_rados *r, struct tl_fail *fail);
/* Is a session over? If so it is this one's to sweep, until tl_rados_bury(). Returns 1, 0, or what
 * librados does. */
TL_MUST_USE int tl_rados_is_over(struct tl_rados *r, uint64_t session);
void tl_rados_bury(struct tl_rados *r, uint64_t session);
/* The keepers' threads. */
TL_MUST_USE int tl_rados_keep(struct tl_rados *r, struct tl_fail *fail);
void tl_rados_keep_end(struct tl_rados *r);

#endif
