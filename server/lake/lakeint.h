/* SPDX-License-Identifier: MIT */
/*
 * The objects behind lake.h, for server/lake and server/ingest only.
 *
 *   tl_lake      the table of traces, the queue of decode jobs, watchers, caches
 *   tl_trace     one trace: its catalog row, its push session, its generations
 *   tl_gen       one decoding of a trace: setup, image, streams, and the decoder while it runs
 *   tl_lane      one stream of a generation: sealed shards, shards not yet stored, the builder
 *   tl_cut       a consistent snapshot of a lane for a reader
 *
 * Traces and generations are reference-counted: _get takes a reference, _put releases it. Locks and
 * their order are in server/LOCKING.md. A function whose name ends in _locked must be called with
 * the lock of its object held; all others are thread-safe unless stated otherwise.
 */
#ifndef TL_LAKE_LAKEINT_H
#define TL_LAKE_LAKEINT_H

#include "base/cancel.h"
#include "decode/decode.h"
#include "flow/callstack.h"
#include "ingest/spool.h"
#include "lake.h"
#include "lake/chore.h"
#include "lake/program.h"
#include "lake/shardrows.h"
#include "lake/verified.h"
#include "store/build.h"
#include "store/catalog.h"
#include "store/checkpoint.h"
#include "store/clockfit.h"
#include "store/hash.h"
#include "store/walk.h"

#include <pthread.h>
#include <stdatomic.h>

struct tl_gen;

/* ---- lanes --------------------------------------------------------------------------------- */

struct tl_lane {
    struct tl_gen *gen; /* its owner */
    uint32_t index;
    char name[32];
    enum tl_protocol protocol;
    /* Frequency of its timestamps, 0: unknown; the setup's clock has precedence. */
    uint64_t clock_hz;
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    struct tl_rows rows;      /* shards in the catalog, in order */
    struct tl_view **pending; /* complete shards that are not in the catalog yet */
    size_t n_pending, cap_pending;
    struct tl_build *build; /* builder of the next shard, NULL: not being decoded */
    uint64_t lost_bytes;
    struct tl_clock_relation clock; /* relation of its timestamps to this server's clock */
    /* Private to the decode job: samples from which `clock` is computed; NULL: no job. */
    struct tl_clockfit *fit;
    /* Buckets of level TL_LEVEL_SUMMARY or coarser for the first `summary_shards` shards:
     * summary.c. */
    struct tl_buckets summary;
    uint64_t summary_shards;
    struct tl_shard_stats **stats; /* cached statistics of rows[i], or NULL */
    size_t n_stats, cap_stats;
    size_t stats_bytes;
    struct tl_calltree **calltrees; /* cached call trees of rows[i], or NULL */
    size_t n_calltrees, cap_calltrees;
    size_t calltree_bytes;
    /* Held while its shards are regenerated; acquired with no other lock held. */
    pthread_mutex_t make_lock;
    /* The most recently opened shard was virtual: the next one probably is too. */
    atomic_bool is_virtual;
};

/* Drop the cached statistics after a shard has changed. */
void tl_lane_forget_stats_locked(struct tl_lane *lane);
void tl_lane_forget_calltrees_locked(struct tl_lane *lane);
void tl_lane_forget_summary_locked(struct tl_lane *lane);

/* Number of positions in the sealed shards. */
uint64_t tl_lane_sealed_locked(const struct tl_lane *lane);

/* ---- generations --------------------------------------------------------------------------- */

struct tl_gen {
    atomic_uint refs;
    struct tl_lake *lake;
    char trace[64];
    uint64_t number;
    struct tl_setup setup;
    atomic_bool obsolete; /* its shards are removed with the last reference */
    atomic_bool buried;   /* they are removed by the housekeeper: the trace is deleted */
    atomic_bool ours;     /* it has no virtual shards made by another program version */
    atomic_bool renewed; /* the trace is being decoded again, since another program version made its
                            shards */
    atomic_bool abandoned; /* its decode job must stop */
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    struct tl_lane **lanes; /* only grows; a lane lives as long as the generation */
    size_t n_lanes, cap_lanes;
    struct tl_program *program; /* loaded on first use; does not change afterwards */
    uint64_t lost_bytes;        /* bytes of the container that could not be decoded */
    char message[256];          /* the last problem, for users */
    char whose[TL_HASH_TEXT]; /* hash of everything that checkpoints depend on, "": not computed yet
                                 / */
    /* Marks (ingest/remake.h): raw offset of the first mark of each stored list, and the marks that
     * are not in a stored list yet. */
    uint64_t *marks;
    size_t n_marks, cap_marks;
    struct tl_mark *late_marks;
    size_t n_late_marks;
    pthread_mutex_t marks_lock; /* held while they are listed */
    bool marks_known;           /* guarded by marks_lock */
    /* For the generation's decode job; at most one runs at a time: */
    struct tl_decode *decode;
    struct tl_spool_reader *reader;
    uint64_t arrival_ns;      /* arrival time of the bytes pushed last; 0: not known */
    uint64_t timed_ns;        /* arrival time that timestamps were last related to */
    uint64_t first_ns;        /* first arrival time */
    size_t waiting;           /* bytes pushed into the decoder since its last flush */
    size_t together;          /* number of bytes after which it is flushed */
    size_t completed;         /* number of shards completed */
    struct tl_packer *packer; /* compresses what the crew has not, when a shard is stored */
    /* The sealing thread stores shards while the job decodes; it ends with the job. */
    pthread_t sealer;
    bool sealing;
    atomic_bool seal_over;
    bool is_edge;       /* another server also decodes it, and stores it: edge.c */
    bool wants_virtual; /* the trace had the label for it when decoding began */
    bool is_virtual;    /* only the index of shards is stored, and marks (ingest/remake.h) */
    size_t seal_lanes;  /* number of lanes whose shards it stores */
    int seal_result;
    struct tl_fail seal_fail;
    uint64_t mark_insns, mark_offset; /* positions of all lanes, and raw offset, at the last mark */
    size_t mark_size;                 /* size of the last mark in bytes */
    uint64_t marked;                  /* raw offset of the stored checkpoint, if has_mark */
    uint64_t tried;                   /* raw offset of the last attempt to store one */
    bool has_mark;
    struct tl_lane **by_stream; /* lane of each tl_decode_stream.index */
    size_t n_by_stream, cap_by_stream;
    bool resumed;     /* an earlier run of the server left shards or a checkpoint */
    unsigned retries; /* failed writes since the last successful one */
    bool cut;         /* aborted during a flush: the decoder must be created again */
    bool stuck;       /* a read failed although the spool found no damage afterwards */
    bool unsaved;     /* the catalog does not have all lanes yet */
    bool finished;    /* tl_decode_finish() was called */
    int broken;       /* the error that ended decoding */
    struct tl_fail failure;
    atomic_ulong decoded; /* raw bytes decoded so far */
};

/* Must its decode job stop? */
static inline bool tl_gen_abandoned(const struct tl_gen *gen)
{
    return atomic_load_explicit(&gen->abandoned, memory_order_relaxed);
}

TL_MUST_USE int tl_gen_new(struct tl_gen **out, struct tl_lake *lake, const char *trace,
                           uint64_t number, const char *setup, struct tl_fail *fail);
struct tl_gen *tl_gen_get(struct tl_gen *gen);
void tl_gen_put(struct tl_gen *gen); /* accepts NULL */
/* Load its streams and shards from the catalog. */
TL_MUST_USE int tl_gen_load(struct tl_gen *gen, struct tl_fail *fail);
/* Positions in its stored shards, without derived streams, and the size of all of them. */
void tl_gen_totals(struct tl_gen *gen, uint64_t *insns, uint64_t *stored_bytes);
/* The lane of this name, or NULL. */
struct tl_lane *tl_gen_lane(struct tl_gen *gen, const char *name);
/* The lane at this index, or NULL. */
struct tl_lane *tl_gen_lane_at(struct tl_gen *gen, size_t index);
TL_MUST_USE int tl_gen_add_lane(struct tl_gen *gen, const char *name, enum tl_protocol protocol,
                                struct tl_lane **out);
/* The program image, loaded on first use; it may be empty. Lives as long as the generation. NULL:
 * it cannot be read now. */
const struct tl_image *tl_gen_image(struct tl_gen *gen);
void tl_gen_say(struct tl_gen *gen, const char *format, ...) TL_PRINTF(2, 3);

/*
 * Convert ticks to the unit shown to users: nanoseconds if the clock rate is known, otherwise
 * ticks.
 */
uint64_t tl_lane_time(const struct tl_lane *lane, uint64_t ticks);

/* ---- traces -------------------------------------------------------------------------------- */

/* A trace's contribution to the totals of all traces. */
struct tl_digest {
    /* Enum tl_trace_state; the other members count only for sealed and failed traces. */
    uint8_t state;
    uint64_t raw_bytes, stored_bytes, insns;
};

struct tl_trace {
    struct tl_trace *next;       /* next in the lake's table */
    struct tl_trace *next_by_id; /* next in its hash bucket */
    uint64_t used;               /* value of lake->uses when it was last accessed */
    struct tl_lake *lake;
    char id[64];
    char rig[64];
    int64_t created_ns;
    atomic_uint refs;
    pthread_mutex_t owning;  /* held while its lease is acquired or released: share.c */
    pthread_mutex_t opening; /* held while a push takes over from the previous one */
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    char format[64];
    char *setup;
    char *earlier; /* the setup before the present one, NULL: none */
    char *labels;
    uint64_t notes; /* increases with every change of its notes; 0: there are none */
    uint8_t state;  /* enum tl_trace_state */
    bool complete;
    bool deleted;
    bool raw_removed, decoded_removed; /* by retention */
    char content[TL_CONTENT_BYTES];    /* hash of the raw bytes, "": not known */
    bool unhashed;                     /* the hash cannot be computed: the bytes are damaged */
    bool unread;                       /* the medium failed to read them; to be retried */
    uint64_t saves, mirrors;           /* number of writes begun of the row and of its copy */
    bool mirror_stale;                 /* the object that repeats the row has not been written */
    int64_t updated_ns;
    uint64_t raw_bytes; /* durable bytes */
    uint64_t repacked;  /* raw offset before which no segment needs packing: repack.h */
    uint64_t revision;
    uint64_t wanted;   /* number of the generation in `making` or, when decoding is complete, in
                          `serving` */
    char message[256]; /* why it failed */
    struct tl_ingest *session;
    int64_t idle_ns;        /* time since when it has no session in this process: Unix time */
    uint64_t epoch;         /* of the current or last push, see struct tl_ingest_request */
    struct tl_lease *lease; /* in a store shared by servers; NULL: not held by this server */
    unsigned pins;          /* number of temporary users of the lease */
    int64_t tried_ns; /* time of the last attempt to acquire it, or of a change by another server */
    uint64_t yielded; /* number of the request for which it was released: see TL_PIN_ASK */
    uint64_t told;    /* how many of the raw bytes have been recorded in the catalog */
    struct tl_digest counted; /* its contribution to the catalog's totals */
    struct tl_gen *serving;
    /* Same as `serving` unless it is being decoded again; NULL: nothing to decode. */
    struct tl_gen *making;
    /* Of the live edge owned by another server (edge.c); times are monotonic: */
    struct tl_gen *edge;   /* the local decoding of it; NULL: none */
    int64_t edge_read_ns;  /* time of the last read: here or, if the trace is ours, elsewhere */
    int64_t edge_told_ns;  /* when the other server was last informed */
    int64_t edge_after_ns; /* not restarted before */
    /* Guarded by the lake's lock: */
    struct tl_trace *next_job;
    bool queued, running;
    int64_t not_before_ns; /* monotonic: earliest start of the job */
};

struct tl_trace *tl_trace_get(struct tl_trace *trace);
void tl_trace_put(struct tl_trace *trace);
/* The serving generation; release with tl_gen_put(). */
struct tl_gen *tl_trace_serving(struct tl_trace *trace);
/* Update the trace from a catalog row, except for its generation. */
TL_MUST_USE int tl_trace_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row,
                                  struct tl_fail *fail);
/* Resume unfinished work on it, from the state in the catalog and the spool. */
TL_MUST_USE int tl_trace_revive(struct tl_trace *trace, struct tl_fail *fail);
/* Remove generations that are neither serving nor wanted. */
TL_MUST_USE int tl_trace_remove_orphans(struct tl_trace *trace, struct tl_fail *fail);
/* Write only its row, without the object that repeats it. */
TL_MUST_USE int tl_trace_save_row(struct tl_trace *trace, struct tl_fail *fail);
/* End its push, if it has one; the client is expected to reconnect. */
void tl_ingest_evict(struct tl_trace *trace);
/*
 * Write its row to the catalog, with the current time of change, from a copy. Call without any lock
 * held.
 */
TL_MUST_USE int tl_trace_save(struct tl_trace *trace, struct tl_fail *fail);
/* The same, with the time of change unaltered. */
TL_MUST_USE int tl_trace_save_quietly(struct tl_trace *trace, struct tl_fail *fail);
/*
 * Write the object "m/<trace>", which repeats what only the catalog has of a trace, in case the
 * catalog is lost. The housekeeper retries a failed write.
 */
void tl_trace_mirror(struct tl_trace *trace);
enum tl_mirror_state {
    TL_MIRROR_SAME,
    TL_MIRROR_OLD, /* intact, of an earlier row: it may be about to be written */
    TL_MIRROR_DAMAGED,
};
/* Compare the object with the trace. TL_NOTFOUND: there is none. */
TL_MUST_USE int tl_trace_mirror_check(struct tl_trace *trace, enum tl_mirror_state *state,
                                      struct tl_fail *fail);
/* Compare the object with the catalog, for a trace that need not be in memory. Reads its row,
 * streams and notes, no shards. Also returns false on errors. */
bool tl_mirror_fits_row(struct tl_lake *lake, const char *id);
void tl_trace_mirror_remove(struct tl_lake *lake, const char *id);
/* Fill an empty catalog from the store's objects. */
TL_MUST_USE int tl_lake_rebuild_catalog(struct tl_lake *lake, struct tl_fail *fail);
/* Record a visible change and notify the watchers. Call without any lock held. */
void tl_trace_changed(struct tl_trace *trace);

/* ---- servers that share a store: share.c ---------------------------------------------------- */

#define TL_PIN_WAIT_NS INT64_C(2500000000)

/* Request sent to the server that holds a trace's lease: none; to release it if nobody pushes the
 * trace there; or the number of a push, which takes over from an older one there. */
#define TL_PIN_TRY 0
#define TL_PIN_ASK 1

/*
 * Hold the trace's lease until tl_trace_unpin(), which is called after a success; in an unshared
 * store both do nothing. Required for changing a trace. The trace is reloaded when the lease is
 * acquired, so no lock may be held. TL_AGAIN: another server works on it.
 */
TL_MUST_USE int tl_trace_pin(struct tl_trace *trace, uint64_t ask, struct tl_fail *fail);
void tl_trace_unpin(struct tl_trace *trace);
/* May this server change it? */
bool tl_trace_mine_locked(const struct tl_trace *trace);
/* As tl_lake_find_content(), excluding a trace that another server has just deleted. */
struct tl_trace *tl_lake_find_now(struct tl_lake *lake, const char *id);
/* Acquire the lease of an unused name, and determine the first generation of its new trace.
 * TL_EXISTS, TL_AGAIN. */
TL_MUST_USE int tl_lake_claim_name(struct tl_lake *lake, const char *id, struct tl_lease **lease,
                                   uint64_t *generation, struct tl_fail *fail);
/*
 * Put a trace from the catalog into the table: callback for tl_catalog_find(), with the lake as
 * context.
 */
int tl_lake_show(void *lake, const struct tl_catalog_trace *row);
/* The row of a trace outside the table has changed: a read of it in progress is outdated. */
void tl_lake_overtaken(struct tl_lake *lake);
/* A client reads the trace up to its decoded end: make that as live as at the server that decodes
 * it. Must be called without holding a lock of the trace. */
void tl_edge_read(struct tl_trace *trace);
/* Another server has received an image that the trace's setup names: decode it again with that if
 * it is ours. */
void tl_trace_image_came(struct tl_trace *trace);
/* The decode job of a trace owned by another server; like tl_lake_run_job(). */
int64_t tl_edge_run(struct tl_trace *trace);
TL_MUST_USE int tl_share_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_share_stop(struct tl_lake *lake);

/* ---- the lake ------------------------------------------------------------------------------- */

#define TL_VIEW_CACHE      256
#define TL_MADE_CACHE      48 /* cached parts of virtual shards: chunks, and whole shards */
#define TL_READERS         16
#define TL_REMAKERS        4 /* decoders that regenerated shards, kept in case they can continue */
#define TL_LABEL_SHARDS    "shards" /* label that determines how shards of a trace are stored */
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

struct tl_lake {
    struct tl_backend *backend;
    bool owns_backend;
    struct tl_lease *lease;
    struct tl_catalog *catalog;
    struct tl_spool *spool;
    struct tl_crew *crew; /* threads that decode ahead and compress */
    /* By the crew; NULL: it has no threads, since there is one processor. */
    struct tl_packing *packing;
    struct tl_lake_options options;
    atomic_ullong min_free; /* the option, which can be changed */
    pthread_t *threads;
    unsigned n_threads;
    struct tl_contents *contents; /* private to the housekeeper's thread: the hash in progress */
    struct tl_chore look;         /* start.c */
    struct tl_chore house;        /* housekeeper.c */
    struct tl_chore repack;       /* ingest/repack.h */
    struct tl_chore share;        /* news.c */
    bool shared;                  /* other servers may use the store too */
    bool repack_refused;          /* guarded by `lock`: the medium failed, to be retried later */
    uint64_t segment_bytes;
    pthread_mutex_t retain_lock; /* one at a time; outermost */
    atomic_ullong seal_after_s, retain_stf_s;
    atomic_bool rules_changed; /* apply retention now */
    atomic_bool closing;
    atomic_ulong revision;

    pthread_mutex_t lock;
    struct tl_buf news;      /* received from other servers: see news.c */
    pthread_cond_t work;     /* a job was queued, or the lake is closing */
    pthread_cond_t idle;     /* a job has ended */
    struct tl_trace *traces; /* the table: active traces, and some others */
    struct tl_trace *by_id[TL_TRACE_BUCKETS];
    size_t n_traces;
    uint64_t uses;     /* number of accesses */
    uint64_t unlinked; /* number of traces removed from it, or changed by others */
    struct tl_trace *jobs, **last_job;

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

    pthread_mutex_t debuginfo_lock;
    struct tl_debuginfo *debuginfos; /* guarded by its lock; most recently used first */

    struct tl_verified verified; /* frames of stored shards */

    pthread_mutex_t cache_lock;
    struct tl_cached_view cache[TL_VIEW_CACHE]; /* most recently used first */
    struct tl_cached_view made[TL_MADE_CACHE];  /* most recently used first */
    struct tl_remaker *remakers[TL_REMAKERS];   /* most recently used first */
    /* Of raw bytes, not in use, most recently used first: they know where segments are. */
    struct tl_spool_reader *readers[TL_READERS];

    /* Counters for metrics. */
    atomic_ulong items_decoded, shards_sealed, bytes_sealed, seal_failures, ranges_served,
        tiles_served, cache_hits, cache_misses, ingest_refused, retained_out, decode_waits,
        bytes_decoded, checkpoints, resumes, shards_made, leases_taken, leases_lost, traces_read,
        begun_with;
};

/* As tl_lake_open(), over a backend that the caller owns. */
TL_MUST_USE int tl_lake_open_on(struct tl_lake **out, struct tl_backend *backend,
                                const struct tl_lake_options *options, struct tl_fail *fail);

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
/* Names of traces, NUL-terminated, newest first. */
struct tl_names {
    struct tl_buf text;
    size_t n;
    struct tl_trace_place last;
};
/* Append up to `most` names; begin with a zeroed struct. Returns 1: there may be more; TL_OK. */
TL_MUST_USE int tl_lake_names(struct tl_lake *lake, size_t most, struct tl_names *names,
                              struct tl_fail *fail);
TL_MUST_USE int tl_trace_fill_row(struct tl_trace *trace, struct tl_trace_row *row);
/* Its present contribution to the totals. */
void tl_trace_digest_locked(struct tl_trace *trace, struct tl_digest *out);
/* Remove it from the table, with the table's reference. False: it was not in it. */
bool tl_lake_unlink_locked(struct tl_lake *lake, struct tl_trace *trace);
/* The same, and release the reference. */
void tl_lake_unlink(struct tl_lake *lake, struct tl_trace *trace);
/* Wait until no decode job of it is queued or running. */
void tl_lake_end_job(struct tl_lake *lake, struct tl_trace *trace);
/* Add a new trace to the table and the catalog. TL_EXISTS. */
TL_MUST_USE int tl_lake_add_trace(struct tl_lake *lake, const char *id, const char *rig,
                                  const char *setup, struct tl_trace **out, struct tl_fail *fail);
/* Queue a decode job of the trace, due in `delay_ns`; if one is queued, it becomes due no later
 * than that. */
void tl_lake_queue(struct tl_lake *lake, struct tl_trace *trace, int64_t delay_ns);
/* Remove the trace's job from the queue. The caller holds the lake's lock and a reference. */
void tl_lake_unqueue_locked(struct tl_lake *lake, struct tl_trace *trace);
/* Run one decode job. Returns the delay in ns until the next one is due, < 0: none is. */
int64_t tl_lake_run_job(struct tl_trace *trace);
void tl_lake_notify(struct tl_lake *lake);
/*
 * Continue hashing complete captures that have no hash: contents.c. Returns whether there is more
 * to do. Housekeeper's thread only.
 */
bool tl_contents_hash(struct tl_lake *lake);
void tl_contents_free(struct tl_lake *lake);
/* The housekeeper's thread applies retention, retries failed operations of the medium, and returns
 * free memory. */
TL_MUST_USE int tl_housekeeper_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_housekeeper_stop(struct tl_lake *lake);
void tl_housekeeper_wake(struct tl_lake *lake);
void tl_housekeeper_free(struct tl_lake *lake);
/* Start on unfinished work, once the catalog is open. */
TL_MUST_USE int tl_lake_begin(struct tl_lake *lake, struct tl_fail *fail);
/* Remove objects of deleted traces and generations left behind by a crash. */
TL_MUST_USE int tl_lake_remove_orphans(struct tl_lake *lake, struct tl_fail *fail);
/* Remove all unused objects below a prefix. The housekeeper retries what the medium fails to remove
 * now. */
void tl_lake_discard(struct tl_lake *lake, const char *prefix);
/* Let the housekeeper do it. After a crash before that they are orphans. */
void tl_lake_discard_later(struct tl_lake *lake, const char *prefix);
/* Mark the capture as complete with this many bytes. TL_IO. */
TL_MUST_USE int tl_trace_complete(struct tl_trace *trace, uint64_t bytes, struct tl_fail *fail);
/* Seal traces that have not been pushed for the time set by tl_lake_set_seal_after(). */
void tl_lake_seal_left(struct tl_lake *lake, int64_t now_ns);
/* Delete a capture without bytes that nobody pushes. Does nothing with any other. */
void tl_trace_delete_empty(struct tl_trace *trace);
/* Record the last generation of a deleted trace, so that a new trace of that name begins after it,
 * and have its raw bytes removed. */
void tl_lake_bury(struct tl_lake *lake, const char *id, uint64_t generation);
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
/* Open a virtual shard by its index, for tl_lake_view(). */
TL_MUST_USE int tl_lane_open_virtual(struct tl_lane *lane, uint64_t number, struct tl_view **out,
                                     struct tl_fail *fail);
/* Make a shard of the lane, complete or growing, virtual; it has only its index. */
void tl_lane_make_virtual(struct tl_lane *lane, struct tl_view *view);
/*
 * The serving generation, for reading the contents of its shards; release with tl_gen_put(). If
 * another program version made virtual shards of it, it is decoded again and waited for, at most a
 * minute.
 */
struct tl_gen *tl_trace_settled(struct tl_trace *trace);
/* Will shards decoded from now on be virtual? */
bool tl_trace_is_virtual(struct tl_trace *trace);
/*
 * Does the generation have virtual shards, which are useless without raw bytes? Queries the store.
 */
TL_MUST_USE int tl_gen_has_virtual(struct tl_gen *gen, bool *has, struct tl_fail *fail);
/* Do the labels contain the line "key=value"? */
bool tl_label_is(const char *labels, const char *line);
/* Compute hash, size and build ID of an image; `name` is copied into the row. TL_NOMEM. */
TL_MUST_USE int tl_image_describe(const char *name, struct tl_bytes content,
                                  struct tl_image_row *row);
/* Hash of a stored image, named by its hash or as "build-id:<hex>". TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_hash(struct tl_lake *lake, const char *name, char out[static 72]);
/* Does the name denote a source file? */
bool tl_is_source(const char *name);
/* Append the content of the image with this hash. TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_content(struct tl_lake *lake, const char *hash, struct tl_buf *out,
                                      struct tl_fail *fail);
/* Drop cached views below a key prefix. */
void tl_lake_forget_views(struct tl_lake *lake, const char *prefix);
/* Free the readers of raw bytes: while none is in use. */
void tl_lake_forget_readers(struct tl_lake *lake);

int64_t tl_wall_ns(void);
int64_t tl_monotonic_ns(void);

/* ---- snapshots for readers ------------------------------------------------------------------ */

struct tl_stf_known;

struct tl_cut {
    struct tl_gen *gen;
    struct tl_lane *lane;
    struct tl_shard_row *rows; /* all shards, in order; those in memory are last */
    struct tl_rows_copy copy;  /* the memory of `rows` */
    size_t n_rows;
    size_t n_stored;       /* number of shards in the store */
    struct tl_view **tail; /* views of rows[n_stored…], which are in memory */
    uint64_t end;          /* after the last position */
    bool open;             /* the lane may still grow */
};

/* Open a snapshot. TL_NOTFOUND: no such trace or stream. */
TL_MUST_USE int tl_cut_open(struct tl_cut *out, struct tl_lake *lake, const char *trace,
                            const char *stream, struct tl_fail *fail);
TL_MUST_USE int tl_cut_of_lane(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane);
void tl_cut_close(struct tl_cut *cut);
/*
 * Call `take` for each stream of a generation that has instructions, with the unit of [from, to) in
 * it: a range over all streams is in time, and streams without time are included only if everything
 * is requested, 0 to UINT64_MAX. TL_USAGE, TL_NOMEM, or a negative result of `take`, which ends the
 * iteration.
 */
typedef int tl_cut_taker(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                         struct tl_fail *fail);
TL_MUST_USE int tl_cuts_of_flow(struct tl_gen *gen, enum tl_range_unit unit, uint64_t from,
                                uint64_t to, tl_cut_taker *take, void *context,
                                struct tl_fail *fail);
/* Instruction set of its trace until its items give one: that of the source, or of the header of
 * imported STF. */
enum tl_isa tl_cut_isa(const struct tl_cut *cut);
/* Registers and page walks recorded before `position`, for writing imported STF from there on. NULL
 * in `*out`: none. Reads up to one shard. Errors as tl_cut_walk_next(). */
TL_MUST_USE int tl_cut_known(const struct tl_cut *cut, uint64_t position, struct tl_stf_known **out,
                             struct tl_fail *fail);
/* The view of shard `i`, with a reference. */
TL_MUST_USE int tl_cut_view(const struct tl_cut *cut, size_t i, struct tl_view **out,
                            struct tl_fail *fail);
/* The shard that contains `position`; n_rows if there is none. */
size_t tl_cut_shard_at(const struct tl_cut *cut, uint64_t position);
/* First shard that may have items at `position`: the items before an instruction may fill several
 * shards. */
size_t tl_cut_items_at(const struct tl_cut *cut, uint64_t position);

/*
 * Buckets of level TL_LEVEL_SUMMARY, or coarser ones if a tile could not show more of them, for the
 * first `*shards` shards, as far as these overlap positions [from, to) (0 to UINT64_MAX: all). Read
 * from the catalog, without opening a shard. The caller frees them, also after an error.
 */
TL_MUST_USE int tl_cut_summary(const struct tl_cut *cut, uint64_t from, uint64_t to,
                               struct tl_buckets *out, uint64_t *shards, struct tl_fail *fail);

/* Iterates over a cut, chunk by chunk. */
struct tl_cut_walk {
    const struct tl_cut *cut; /* borrowed */
    struct tl_walk_range range;
    size_t shard, chunk; /* next to read */
    struct tl_view *view;
    struct tl_walk walk; /* items of the last chunk */
    const struct tl_chunk *at;
    /* If set: shards for which it returns false are skipped without opening them. */
    bool (*wanted)(const void *context, size_t shard);
    const void *context;
    /* Receives the call stack at the first chunk's begin; may be NULL. */
    struct tl_callstack *calls;
};
/* Begin a walk of positions [from, to). Items after the last position are included if `to` is at or
 * after the snapshot's end. */
void tl_cut_walk_begin(struct tl_cut_walk *walk, const struct tl_cut *cut, uint64_t from,
                       uint64_t to);
/*
 * Move the begin to the first instruction of the chunk that contains `from`, where the call stack
 * is known. The first tl_cut_walk_next() sets `calls`, which must be initialised; call
 * tl_walk_follow() to update it with each item read.
 */
TL_MUST_USE int tl_cut_walk_calls(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                  struct tl_fail *fail);
/*
 * Do all of this to the end of a walk that has just begun; `calls` is not initialised. Its sink and
 * `each` (may be NULL), which is called after each item, receive `context`. If the sink returns
 * TL_EOF, the walk ends with TL_OK.
 */
typedef void tl_cut_each(void *context, const struct tl_walk *walk, size_t i);
TL_MUST_USE int tl_cut_walk_follow(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                   tl_frame_sink *sink, tl_cut_each *each, void *context,
                                   struct tl_fail *fail);
/* Read the next chunk's items into walk->walk: TL_OK, or TL_EOF. */
TL_MUST_USE int tl_cut_walk_next(struct tl_cut_walk *walk, struct tl_fail *fail);
/* Get the next chunk's index entry, NULL after the last; the chunk itself is not read. */
TL_MUST_USE int tl_cut_walk_peek(struct tl_cut_walk *walk, const struct tl_chunk **out,
                                 struct tl_fail *fail);
void tl_cut_walk_skip(struct tl_cut_walk *walk);
void tl_cut_walk_end(struct tl_cut_walk *walk);

#endif
