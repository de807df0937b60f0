/* SPDX-License-Identifier: MIT */
/*
 * The lake behind lake.h, for the folders that implement it: lake, ingest, query, range, upkeep,
 * share, copy. It consists of the table of traces, the queue of decode jobs, watchers and caches.
 *
 *   lake/trace.h   one trace
 *   lake/gen.h     one decoding of a trace, and its streams
 *   lake/cut.h     a consistent snapshot of a stream for a reader
 *
 * Locks and their order are in server/LOCKING.md. A function whose name ends in _locked must be
 * called with the lock of its object held; all others are thread-safe unless stated otherwise.
 */
#ifndef TL_LAKE_LAKEINT_H
#define TL_LAKE_LAKEINT_H

#include "base/now.h"
#include "lake.h"
#include "lake/age.h"
#include "lake/chore.h"
#include "lake/image_uses.h"
#include "lake/seats.h"
#include "lake/trace.h"
#include "lake/verified.h"
#include "lake_images.h"
#include "lake_rows.h"

#define TL_VIEW_CACHE      256
#define TL_MADE_CACHE      48 /* cached parts of virtual shards: chunks, and whole shards */
#define TL_READERS         16
#define TL_MAKERS          4 /* decoders that regenerated shards, kept in case they can continue */
#define TL_LABEL_SHARDS    "shards" /* label that determines how shards of a trace are stored */
#define TL_LABEL_INDEX     "index"  /* label that determines when their index is made */
#define TL_WATCHERS        64
#define TL_TRACES_RESIDENT 1024 /* limit of the table, in addition to active traces */
#define TL_TRACE_BUCKETS   1024

/* A prefix whose removal failed. */
struct tl_garbage {
    struct tl_garbage *next;
    int64_t due_ns; /* monotonic: other servers may read it until then; 0: none does */
    char prefix[128];
};

#define TL_GRAVES 4096

struct tl_watcher {
    void (*notify)(void *context);
    void *context;
};

struct tl_cached_view {
    struct tl_view *view; /* a reference; NULL: none, nor any after it */
    uint64_t key;         /* hash of its key */
};

/* A decoder that has regenerated shards of a lane, the first member of what virtual/remake.c has of
 * it: kept, with no reference to the lane, in case it can continue. */
struct tl_maker {
    struct tl_lane *lane;
    void (*free)(struct tl_maker *maker);
};

struct tl_lake_rooms;

typedef void tl_lake_times(struct tl_age_times *out);

struct tl_lake {
    const struct tl_lake_rooms *rooms;
    struct tl_backend *backend;
    bool owns_backend;
    struct tl_lease *lease;
    struct tl_catalog *catalog;
    struct tl_spool *spool;
    struct tl_suspects *suspects; /* decoding/suspect.h; NULL: ends of the server are not noted */
    struct tl_crew *crew;         /* threads that decode ahead and compress */
    /* By the crew; NULL: it has no threads, since there is one processor. */
    struct tl_packing *packing;
    struct tl_lake_options options;
    atomic_ullong min_free;       /* the option, which can be changed */
    atomic_ullong index_end;      /* raw byte of each trace at which its index waits; for tests */
    atomic_size_t outline_piece;  /* raw bytes of a turn of an outline, about */
    atomic_size_t outlines_kept;  /* an outline's complete shards in memory; others are put away */
    struct tl_contents *contents; /* private to the housekeeper's thread: the hash in progress */
    struct tl_chore look;         /* start.c */
    struct tl_chore house;        /* upkeep/housekeeper.c */
    struct tl_chore repack;       /* ingest/repack.h */
    struct tl_chore share;        /* share/news.c */
    struct tl_chore backfill;     /* upkeep/backfill.h */
    bool shared;                  /* other servers may use the store too */
    bool repack_refused;          /* guarded by `lock`: the medium failed, to be retried later */
    uint64_t segment_bytes;
    pthread_mutex_t images_lock;   /* held while an image is removed; as retain_lock, inside it */
    struct tl_image_unused unused; /* guarded by it */
    unsigned images_counted;       /* rounds of retention; guarded by retain_lock */
    _Atomic uint64_t images_unused, image_bytes_unused; /* as last counted */
    uint64_t decode_limit;                              /* decoding/decode_memory.h, */
    _Atomic uint64_t decode_bytes, decodes;             /* in use, and by how many generations */
    struct tl_seats sql_seats;                          /* of questions that need much memory */
    pthread_mutex_t retain_lock;                        /* one at a time; outermost */
    pthread_mutex_t clock_lock;
    struct tl_age_clock clock; /* guarded by its lock */
    int64_t clock_saved;  /* private to the housekeeper's thread: when, monotonic; 0: not yet */
    tl_lake_times *times; /* reads the machine's clocks */
    atomic_ullong seal_after_s, retain_stf_s;
    atomic_bool rules_changed; /* apply retention now */
    atomic_bool closing;
    atomic_ulong revision;

    pthread_mutex_t lock;
    struct tl_buf news;      /* received from other servers: see share/news.c */
    pthread_cond_t idle;     /* a job has ended */
    struct tl_trace *traces; /* the table: active traces, and some others */
    struct tl_trace *by_id[TL_TRACE_BUCKETS];
    size_t n_traces;
    uint64_t uses;     /* number of accesses */
    uint64_t unlinked; /* number of traces removed from it, or changed by others */
    struct tl_job_queue queue;

    pthread_mutex_t reading; /* serialises reading traces into the table */

    pthread_mutex_t notes_lock; /* serialises writing notes; outermost */

    pthread_mutex_t garbage_lock; /* held while garbage is removed */
    struct tl_garbage *garbage;   /* guarded by `lock`; so are graves */
    /* By hash of the name: the last generation of a deleted trace. Names with the same hash share
     * one entry, and begin after each other's generations. */
    uint64_t graves[TL_GRAVES];

    pthread_mutex_t watch_lock;
    struct tl_watcher watchers[TL_WATCHERS];

    pthread_mutex_t program_lock;
    struct tl_program *programs; /* guarded by `program_lock`; the shared ones */
    struct tl_image_pool *image_pool;
    uint64_t program_limit;     /* of the idle ones */
    atomic_ulong program_bytes; /* of all loaded programs, without what is in the pool */

    pthread_mutex_t debuginfo_lock;
    struct tl_debuginfo *debuginfos; /* guarded by its lock; most recently used first */

    struct tl_verified verified; /* frames of stored shards */

    pthread_mutex_t cache_lock;
    struct tl_cached_view cache[TL_VIEW_CACHE]; /* most recently used first */
    struct tl_cached_view made[TL_MADE_CACHE];  /* most recently used first */
    struct tl_maker *makers[TL_MAKERS];         /* most recently used first */
    /* Of raw bytes, not in use, most recently used first: they know where segments are. */
    struct tl_spool_reader *readers[TL_READERS];

    /* Counters for metrics. */
    atomic_ulong items_decoded, shards_sealed, bytes_sealed, seal_failures, ranges_served,
        tiles_served, cache_hits, cache_misses, ingest_refused, retained_out, decode_waits,
        bytes_decoded, checkpoints, resumes, shards_made, leases_taken, leases_lost, traces_read,
        begun_with;
};

/* The clock of lake/age.h. Any thread. */
int64_t tl_lake_now(struct tl_lake *lake);
/* What has elapsed since a time of this clock, ns. */
int64_t tl_lake_age(struct tl_lake *lake, int64_t stamp, int64_t now_ns);
/* Is it certain how old things are? */
bool tl_lake_clock_settled(struct tl_lake *lake);
/* May one more of `total` be removed because of its age? At most a quarter of them, or eight, per
 * day, so that a mistake is seen before all is gone. One has been: tl_lake_aged_out(). */
bool tl_lake_may_age_out(struct tl_lake *lake, size_t total, int64_t now_ns);
void tl_lake_aged_out(struct tl_lake *lake);
/* Read the state from the store; look at the machine's clocks, about once a second; store it. */
void tl_lake_clock_open(struct tl_lake *lake);
void tl_lake_clock_tick(struct tl_lake *lake);
void tl_lake_clock_close(struct tl_lake *lake);
/* Check the stored state, and store it anew if it is damaged (TL_BAD) and `repair`. Any thread. */
TL_MUST_USE int tl_lake_clock_check(struct tl_lake *lake, bool repair);
/* What identifies this start of the machine, "": not known. */
void tl_lake_boot(char out[static TL_BOOT_BYTES]);
/* For tests: read the clocks with this function. Before anything depends on it. */
void tl_lake_set_times(struct tl_lake *lake, tl_lake_times *times);

/* Find the trace with this id, with a reference, reading it into the table if necessary. NULL:
 * there is none, or the store does not respond (tl_no_trace()). */
struct tl_trace *tl_lake_find_trace(struct tl_lake *lake, const char *id);
/* The same, from the table only: never blocks on the store. */
struct tl_trace *tl_lake_resident(struct tl_lake *lake, const char *id);
/* The same for scans of all traces: does not count as an access, and leaves the table as it was. */
struct tl_trace *tl_lake_peek(struct tl_lake *lake, const char *id);
/*
 * The same by id or, for read-only use, by the hash of its raw bytes, which finds the newest one.
 */
struct tl_trace *tl_lake_find_content(struct tl_lake *lake, const char *name);
/* The serving generation of the trace found by tl_lake_find_content(); release with tl_gen_put().
 * Errors as tl_no_content(). */
TL_MUST_USE int tl_lake_gen(struct tl_lake *lake, const char *name, struct tl_gen **out,
                            struct tl_fail *fail);
/* Report why tl_lake_find_trace() found none: TL_NOTFOUND only if the catalog confirms it,
 * TL_UNREACHABLE if it does not respond, TL_AGAIN if it responds now. Reads the catalog. */
TL_MUST_USE int tl_no_trace(struct tl_lake *lake, struct tl_fail *fail, const char *id);
/* The same for tl_lake_find_content() and _now(). */
TL_MUST_USE int tl_no_content(struct tl_lake *lake, struct tl_fail *fail, const char *name);
/* Create a trace from a row, with its first generation, without its shards and in no table. */
TL_MUST_USE int tl_trace_of_row(struct tl_lake *lake, const struct tl_catalog_trace *row,
                                struct tl_trace **out);
/* Put it into the table, replacing an entry that only showed a row of it. */
void tl_lake_insert(struct tl_lake *lake, struct tl_trace *trace);
/* References to all traces of the table; free `*out` in any case. */
TL_MUST_USE int tl_lake_all_resident(struct tl_lake *lake, struct tl_trace ***out, size_t *n);
/*
 * A trace of the table for which something is due, with a reference; NULL: none. With `soon` those
 * that have just become complete are left for later: `*soon` tells whether there are any.
 */
struct tl_trace *tl_lake_find_due(struct tl_lake *lake,
                                  bool (*is_due_locked)(const struct tl_trace *trace), bool *soon);
/* Names of traces, NUL-terminated, newest first. */
struct tl_names {
    struct tl_buf text;
    size_t n;
    struct tl_trace_place last;
};
/* Append up to `most` names; begin with a zeroed struct. Returns 1: there may be more; TL_OK. */
TL_MUST_USE int tl_lake_names(struct tl_lake *lake, size_t most, struct tl_names *names,
                              struct tl_fail *fail);
/* Its present contribution to the totals. */
void tl_trace_digest_locked(struct tl_trace *trace, struct tl_digest *out);
/* Remove it from the table, with the table's reference. False: it was not in it. */
bool tl_lake_unlink_locked(struct tl_lake *lake, struct tl_trace *trace);
/* The same, and release the reference. */
void tl_lake_unlink(struct tl_lake *lake, struct tl_trace *trace);
/* Wait until no decode job of it is queued or running. */
void tl_lake_end_job(struct tl_lake *lake, struct tl_trace *trace);
/* Queue a decode job of the trace, due in `delay_ns`; if one is queued, it becomes due no later
 * than that. lake/jobs.h has the rest about them. */
void tl_lake_queue(struct tl_lake *lake, struct tl_trace *trace, int64_t delay_ns);
void tl_lake_notify(struct tl_lake *lake);
/* Let traces that nobody reads let go of their programs, until all have at most this many bytes. */
void tl_lake_trim_programs(struct tl_lake *lake, uint64_t most);
/* Limit for the housekeeper, if decoding may have eight times as much. */
#define TL_PROGRAM_BYTES (UINT64_C(64) << 20)
/* Remove objects of deleted traces and generations left behind by a crash. */
TL_MUST_USE int tl_lake_remove_orphans(struct tl_lake *lake, struct tl_fail *fail);
/* Remove all unused objects below a prefix. The housekeeper retries what the medium fails to remove
 * now. */
void tl_lake_discard(struct tl_lake *lake, const char *prefix);
/* Let the housekeeper do it. After a crash before that they are orphans. */
void tl_lake_discard_later(struct tl_lake *lake, const char *prefix);
/* Record the last generation of a deleted trace, so that a new trace of that name begins after it,
 * and have its raw bytes removed. */
void tl_lake_bury(struct tl_lake *lake, const char *id, uint64_t generation);
/* Remove what is in the list and due, or (not NULL) this prefix; one caller at a time. */
TL_MUST_USE int tl_lake_remove_garbage(struct tl_lake *lake, const char *prefix,
                                       struct tl_fail *fail);
/* Determine the first generation of a new trace, once nothing of an older one of the same name is
 * left except shards that are being read. */
TL_MUST_USE int tl_lake_first_generation(struct tl_lake *lake, const char *id, uint64_t *out,
                                         struct tl_fail *fail);
/* Find a view by key in a cache, most recently used first: `n` entries of lake->cache or
 * lake->made. Returns it with a reference, or NULL. */
struct tl_view *tl_views_find(struct tl_lake *lake, struct tl_cached_view *views, size_t n,
                              const char *key);
/* Add a view, replacing the least recently used one. */
void tl_views_keep(struct tl_lake *lake, struct tl_cached_view *views, size_t n,
                   struct tl_view *view);
/* Get a stored shard's view, from the cache if possible. */
TL_MUST_USE int tl_lake_view(struct tl_lake *lake, struct tl_lane *lane, uint64_t number,
                             struct tl_view **out, struct tl_fail *fail);
/* Make a shard of the lane, complete or growing, virtual; it has only its index. */
void tl_lane_make_virtual(struct tl_lane *lane, struct tl_view *view);
/* Compute hash, size and build ID of an image; `name` is copied into the row. TL_NOMEM. */
TL_MUST_USE int tl_image_describe(const char *name, struct tl_bytes content,
                                  struct tl_image_row *row);
/* The key of the object with an image's content. */
void tl_image_key(char out[static 96], const char *hash);
/* Hash of a stored image, named by its hash or as "build-id:<hex>". TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_hash(struct tl_lake *lake, const char *name, char out[static 72]);
/* Is the stored content the one with this hash? Reads it. Have traces been decoded with it
 * (catalog)? */
bool tl_image_is_intact(struct tl_lake *lake, const char *hash);
TL_MUST_USE int tl_image_is_announced(struct tl_lake *lake, const char *hash, bool *is,
                                      struct tl_fail *fail);
/* Remove the objects and the row of an image. */
TL_MUST_USE int tl_image_discard(struct tl_lake *lake, const char *hash, struct tl_fail *fail);
/* Does the name denote a source file? */
bool tl_is_source(const char *name);
/* Is the image with this hash there? TL_NOTFOUND, with advice. */
TL_MUST_USE int tl_lake_image_need(struct tl_lake *lake, const char *hash, struct tl_fail *fail);
/* Append the content of the image with this hash. TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_content(struct tl_lake *lake, const char *hash, struct tl_buf *out,
                                      struct tl_fail *fail);
/* Take one of the lane's makers out of the cache, or NULL; keep one, in place of the least recently
 * used; free those whose shard keys begin with the prefix. */
struct tl_maker *tl_lane_take_maker(struct tl_lane *lane);
void tl_lane_keep_maker(struct tl_maker *maker);
void tl_lake_forget_makers(struct tl_lake *lake, const char *prefix);
/* Drop cached views below a key prefix, and the makers. */
void tl_lake_forget_views(struct tl_lake *lake, const char *prefix);
/* Free the readers of raw bytes: while none is in use. */
void tl_lake_forget_readers(struct tl_lake *lake);
/*
 * Put a trace from the catalog into the table: callback of the catalog, with the lake as
 * context.
 */
int tl_lake_show(void *lake, const struct tl_catalog_trace *row);
/* The row of a trace outside the table has changed: a read of it in progress is outdated. */
void tl_lake_overtaken(struct tl_lake *lake);
/* Create a trace and its first generation from a row, in no table yet. */
TL_MUST_USE int tl_trace_make(struct tl_lake *lake, const struct tl_catalog_trace *row,
                              struct tl_trace **out, struct tl_fail *fail);

/* ---- live edges of other servers' traces: edge.c --------------------------------------------- */

/* A client reads the trace up to its decoded end: make that as live as at the server that decodes
 * it. Must be called without holding a lock of the trace. */
void tl_edge_read(struct tl_trace *trace);
/* The row of another server's trace has changed. Called with trace->owning held. Is the served
 * generation the live edge, and does it continue? Otherwise the trace must be reloaded. */
bool tl_edge_continues(struct tl_trace *trace, const struct tl_catalog_trace *row);
/* The trace has taken over that row: decode what is new. */
void tl_edge_wake(struct tl_trace *trace);
/* Does the trace have a live edge at another server? With its lock held. */
bool tl_edge_exists_locked(const struct tl_trace *trace);
/* Drop the edge; it may be served until another generation is. With the trace's lock held; returns
 * a reference that the caller must put after releasing the lock. */
struct tl_gen *tl_edge_end_locked(struct tl_trace *trace);

/* ---- what the rooms above do for the lake's objects ------------------------------------------ */

/* Set before any of them is used (opening/open.c), and never changed. */
struct tl_lake_rooms {
    /* Decoding: run one decode job; the delay in ns until the next one is due, < 0: none is. */
    int64_t (*run_job)(struct tl_trace *trace);
    /* Virtual shards: regenerate part of one; the serving generation once its shards can be
     * regenerated. */
    tl_view_make *make;
    /* Index what is only outlined, ahead of its turn (virtual/early.h). */
    size_t (*index_early)(struct tl_lane *lane, struct tl_view **views, size_t n);
    struct tl_gen *(*settled)(struct tl_trace *trace);
    /* Changes: tl_lake_put_image(). */
    int (*put_image)(struct tl_lake *lake, const char *name, struct tl_bytes content,
                     struct tl_image_row *row, struct tl_fail *fail);
    /* Ingest: end the push of a trace, if it has one; the client is expected to reconnect. */
    void (*evict)(struct tl_trace *trace);
};

/* ---- its life: lake.c ------------------------------------------------------------------------ */

/* A lake with nothing in it, on a backend that the caller owns; NULL: no memory. */
struct tl_lake *tl_lake_new(struct tl_backend *backend, const struct tl_lake_options *options,
                            const struct tl_lake_rooms *rooms);
/* Release the references of the table and of the queue, once all threads have ended. */
void tl_lake_put_all(struct tl_lake *lake);
/* Free it: everything in it has been. */
void tl_lake_free(struct tl_lake *lake);

#endif
