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
 * Traces and generations are reference counted: _get takes a reference, _put gives it back.
 * Locks and their order are in server/LOCKING.md. A function whose name ends in _locked must be
 * called with the lock of its object held; all others are thread-safe unless they say otherwise.
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
    uint64_t clock_hz; /* frequency of its timestamps, 0: unknown; the setup's clock counts more */
    pthread_mutex_t lock;
    /* Under the lock: */
    struct tl_rows rows;      /* shards in the catalog, in order */
    struct tl_view **pending; /* complete shards that are not in the catalog yet */
    size_t n_pending, cap_pending;
    struct tl_build *build; /* builder of the next shard, NULL: not being decoded */
    uint64_t lost_bytes;
    struct tl_clock_relation clock; /* of its timestamps to this server's clock */
    struct tl_clockfit *fit; /* of the decode job alone: what `clock` is made of; NULL: no job */
    /* Buckets of TL_LEVEL_SUMMARY or coarser over the first `summary_shards` shards: summary.c. */
    struct tl_buckets summary;
    uint64_t summary_shards;
    struct tl_shard_stats **stats; /* cached statistics of rows[i], or NULL */
    size_t n_stats, cap_stats;
    size_t stats_bytes;
    struct tl_calltree **calltrees; /* cached call trees of rows[i], or NULL */
    size_t n_calltrees, cap_calltrees;
    size_t calltree_bytes;
    pthread_mutex_t make_lock; /* held while shards of it are made; no other lock is held then */
    atomic_bool is_virtual;    /* the shard that was opened last was: the next one will be, too */
};

/* Drop the cached statistics: a shard has changed. */
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
    atomic_bool obsolete;  /* its shards are removed with the last reference … */
    atomic_bool buried;    /* … by the housekeeper: its trace is deleted */
    atomic_bool ours;      /* it has no virtual shards that another program made */
    atomic_bool renewed;   /* its trace is decoded anew, since another program made its shards */
    atomic_bool abandoned; /* its decode job must stop */
    pthread_mutex_t lock;
    /* Under the lock: */
    struct tl_lane **lanes; /* grows; a lane lives as long as the generation */
    size_t n_lanes, cap_lanes;
    struct tl_program *program; /* loaded on first use; does not change afterwards */
    uint64_t lost_bytes;        /* bytes of the container that could not be decoded */
    char message[256];          /* the last problem, for users */
    char whose[TL_HASH_TEXT];   /* hash of all that checkpoints depend on, "": not computed yet */
    /* Marks: ingest/remake.h. Raw offsets of the first ones of stored lists, and those that are
     * in none yet. */
    uint64_t *marks;
    size_t n_marks, cap_marks;
    struct tl_mark *late_marks;
    size_t n_late_marks;
    pthread_mutex_t marks_lock; /* held while they are listed */
    bool marks_known;           /* under marks_lock */
    /* For the generation's decode job; at most one runs at a time: */
    struct tl_decode *decode;
    struct tl_spool_reader *reader;
    uint64_t arrival_ns;      /* when what was pushed last had arrived; 0: not known */
    uint64_t timed_ns;        /* the arrival that timestamps were last related to … */
    uint64_t first_ns;        /* … and the first one */
    size_t waiting;           /* bytes pushed into the decoder since its last flush */
    size_t together;          /* bytes after which it is flushed */
    size_t completed;         /* number of shards completed */
    struct tl_packer *packer; /* compresses what the crew has not when a shard is stored */
    /* The sealing thread stores shards while the job decodes; it ends with the job. */
    pthread_t sealer;
    bool sealing;
    atomic_bool seal_over;
    bool is_edge;       /* another server decodes it, too, and stores it: edge.c */
    bool wants_virtual; /* its trace's label says so when decoding begins */
    bool is_virtual;    /* of shards the index alone is stored, and marks (ingest/remake.h) */
    size_t seal_lanes;  /* number of lanes whose shards it stores */
    int seal_result;
    struct tl_fail seal_fail;
    uint64_t mark_insns,
        mark_offset;  /* positions of all lanes, and raw bytes, at the last mark … */
    size_t mark_size; /* … and the bytes it has */
    uint64_t marked;  /* raw offset of the stored checkpoint, if has_mark */
    uint64_t tried;   /* raw offset of the last attempt to store one */
    bool has_mark;
    struct tl_lane **by_stream; /* lane of each tl_decode_stream.index */
    size_t n_by_stream, cap_by_stream;
    bool resumed;     /* an earlier run of the server left shards or a checkpoint */
    unsigned retries; /* failed writes since the last successful one */
    bool cut;         /* it was given up within a flush: the decoder is to be made anew */
    bool stuck;       /* a read failed where the spool then found no damage */
    bool unsaved;     /* the catalog does not know all lanes yet */
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
void tl_gen_put(struct tl_gen *gen); /* NULL is fine */
/* Load its streams and shards from the catalog. */
TL_MUST_USE int tl_gen_load(struct tl_gen *gen, struct tl_fail *fail);
/* Positions in its stored shards, without derived streams, and the bytes of all of these. */
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

/* Ticks in the unit shown to users: nanoseconds where the clock rate is known, else ticks. */
uint64_t tl_lane_time(const struct tl_lane *lane, uint64_t ticks);

/* ---- traces -------------------------------------------------------------------------------- */

/* What a trace adds to the totals of all. */
struct tl_digest {
    uint8_t state; /* enum tl_trace_state; the rest counts of those that are sealed or failed */
    uint64_t raw_bytes, stored_bytes, insns;
};

struct tl_trace {
    struct tl_trace *next;       /* in the lake's table */
    struct tl_trace *next_by_id; /* in its bucket */
    uint64_t used;               /* lake->uses when it was last asked for */
    struct tl_lake *lake;
    char id[64];
    char rig[64];
    int64_t created_ns;
    atomic_uint refs;
    pthread_mutex_t owning;  /* held while its lease is taken or given back: share.c */
    pthread_mutex_t opening; /* held while a push takes it, from the one before it */
    pthread_mutex_t lock;
    /* Under the lock: */
    char format[64];
    char *setup;
    char *earlier; /* the setup before it, NULL: none */
    char *labels;
    uint64_t notes; /* grows with every change of its notes; 0: there are none */
    uint8_t state;  /* enum tl_trace_state */
    bool complete;
    bool deleted;
    bool raw_removed, decoded_removed; /* by retention */
    char content[TL_CONTENT_BYTES];    /* hash of the raw bytes, "": not known … */
    bool unhashed;                     /* … nor can it be: they are damaged */
    bool unread;                       /* the medium refused to read them; tried again */
    uint64_t saves, mirrors;           /* copies of the row that were begun to be written */
    bool mirror_stale;                 /* the object that repeats its row has not been written */
    int64_t updated_ns;
    uint64_t raw_bytes; /* durable */
    uint64_t repacked;  /* raw offset in front of which no segment is to be packed: repack.h */
    uint64_t revision;
    uint64_t wanted;   /* number of the generation in `making` or, when all is done, `serving` */
    char message[256]; /* why it failed */
    struct tl_ingest *session;
    int64_t idle_ns;        /* since when there is none, in this process: Unix time */
    uint64_t epoch;         /* of the push that has or had it last, see struct tl_ingest_request */
    struct tl_lease *lease; /* in a store that servers share; NULL: it is not ours */
    unsigned pins;          /* who needs the lease for a moment */
    int64_t tried_ns;       /* when it was last tried to have it, or another server changed it */
    uint64_t yielded;       /* who had asked for it when it was given back: see TL_PIN_ASK */
    uint64_t told;          /* how much of it the catalog was told of */
    struct tl_digest counted; /* what the catalog's totals have of it */
    struct tl_gen *serving;
    struct tl_gen *making; /* the same while nothing is decoded anew; NULL: nothing to decode */
    /* Of the live edge that another server has (edge.c), monotonic times: */
    struct tl_gen *edge;   /* what decodes it here; NULL: nothing does */
    int64_t edge_read_ns;  /* when it was last read: here or, where the trace is ours, elsewhere */
    int64_t edge_told_ns;  /* when the other server was last told so */
    int64_t edge_after_ns; /* it is not begun before */
    /* Under the lake's lock: */
    struct tl_trace *next_job;
    bool queued, running;
    int64_t not_before_ns; /* monotonic: the job waits until then */
};

struct tl_trace *tl_trace_get(struct tl_trace *trace);
void tl_trace_put(struct tl_trace *trace);
/* The generation that serves; release with tl_gen_put(). */
struct tl_gen *tl_trace_serving(struct tl_trace *trace);
/* Show it as the row says, but for its generation. */
TL_MUST_USE int tl_trace_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row,
                                  struct tl_fail *fail);
/* Go on with what is not done of it, from what the catalog and the spool have. */
TL_MUST_USE int tl_trace_revive(struct tl_trace *trace, struct tl_fail *fail);
/* Remove generations that neither serve nor are wanted. */
TL_MUST_USE int tl_trace_remove_orphans(struct tl_trace *trace, struct tl_fail *fail);
/* Its row alone, without the object that repeats it. */
TL_MUST_USE int tl_trace_save_row(struct tl_trace *trace, struct tl_fail *fail);
/* End its push, if it has one: who pushes is to connect again. */
void tl_ingest_evict(struct tl_trace *trace);
/* Write its row to the catalog, from a copy, as changed now: no lock may be held. */
TL_MUST_USE int tl_trace_save(struct tl_trace *trace, struct tl_fail *fail);
/* The same, as last changed when it was. */
TL_MUST_USE int tl_trace_save_quietly(struct tl_trace *trace, struct tl_fail *fail);
/*
 * The catalog can be lost: an object "m/<trace>" repeats what only the catalog knows of a trace.
 * Write it; what fails is done again by the housekeeper.
 */
void tl_trace_mirror(struct tl_trace *trace);
enum tl_mirror_state {
    TL_MIRROR_SAME,
    TL_MIRROR_OLD, /* whole, of an earlier row: it may be about to be written */
    TL_MIRROR_DAMAGED,
};
/* Does the object say what the trace is? TL_NOTFOUND: there is none. */
TL_MUST_USE int tl_trace_mirror_check(struct tl_trace *trace, enum tl_mirror_state *state,
                                      struct tl_fail *fail);
/* Does the object say what the catalog does, of a trace that need not be in memory? Reads its row,
 * streams and notes, no shards. False also where that fails. */
bool tl_mirror_fits_row(struct tl_lake *lake, const char *id);
void tl_trace_mirror_remove(struct tl_lake *lake, const char *id);
/* Fill an empty catalog from the store's objects. */
TL_MUST_USE int tl_lake_rebuild_catalog(struct tl_lake *lake, struct tl_fail *fail);
/* One more visible change; tells the watchers. No lock may be held. */
void tl_trace_changed(struct tl_trace *trace);

/* ---- servers that share a store: share.c ---------------------------------------------------- */

#define TL_PIN_WAIT_NS INT64_C(2500000000)

/* What another server is told that has the trace: nothing; that it is to give it back if nobody
 * pushes it there; or the number of a push, which takes it from an older one there. */
#define TL_PIN_TRY 0
#define TL_PIN_ASK 1

/*
 * Have the trace's lease until tl_trace_unpin(), which follows a success; elsewhere these do
 * nothing. Whoever changes a trace does so. The trace is read anew when the lease comes, so that no
 * lock may be held. TL_AGAIN: another server works on it.
 */
TL_MUST_USE int tl_trace_pin(struct tl_trace *trace, uint64_t ask, struct tl_fail *fail);
void tl_trace_unpin(struct tl_trace *trace);
/* May this server change it? */
bool tl_trace_mine_locked(const struct tl_trace *trace);
/* tl_lake_find_content(), but none that another server has just deleted. */
struct tl_trace *tl_lake_find_now(struct tl_lake *lake, const char *id);
/* Have the lease of a name that is free, and the first generation of its new trace. TL_EXISTS,
 * TL_AGAIN. */
TL_MUST_USE int tl_lake_claim_name(struct tl_lake *lake, const char *id, struct tl_lease **lease,
                                   uint64_t *generation, struct tl_fail *fail);
/* Put a trace of the catalog into the table: for tl_catalog_find(), with the lake. */
int tl_lake_show(void *lake, const struct tl_catalog_trace *row);
/* The row of a trace that is not in the table has changed: what is being read of it is old. */
void tl_lake_overtaken(struct tl_lake *lake);
/* Somebody reads the trace as far as it is decoded: have that as live as it is where it is decoded.
 * No lock of it may be held. */
void tl_edge_read(struct tl_trace *trace);
/* The decode job of a trace that is not this server's; as tl_lake_run_job(). */
int64_t tl_edge_run(struct tl_trace *trace);
TL_MUST_USE int tl_share_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_share_stop(struct tl_lake *lake);

/* ---- the lake ------------------------------------------------------------------------------- */

#define TL_VIEW_CACHE      256
#define TL_MADE_CACHE      48       /* of virtual shards: chunks, and whole ones */
#define TL_REMAKERS        4        /* decoders that have made such, and may go on */
#define TL_LABEL_SHARDS    "shards" /* the label that says how shards of a trace are kept */
#define TL_WATCHERS        64
#define TL_TRACES_RESIDENT 1024 /* in the table, beside those that are worked on */
#define TL_TRACE_BUCKETS   1024

/* A prefix whose removal the medium refused. */
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

struct tl_lake {
    struct tl_backend *backend;
    bool owns_backend;
    struct tl_lease *lease;
    struct tl_catalog *catalog;
    struct tl_spool *spool;
    struct tl_crew *crew;       /* threads that decode ahead and compress */
    struct tl_packing *packing; /* by the crew; NULL: it has no threads, there is one processor */
    struct tl_lake_options options;
    atomic_ullong min_free; /* the option, which may change */
    pthread_t *threads;
    unsigned n_threads;
    struct tl_contents *contents; /* of the housekeeper's thread: the hash it is at */
    struct tl_chore look;         /* start.c */
    struct tl_chore house;        /* housekeeper.c */
    struct tl_chore repack;       /* ingest/repack.h */
    struct tl_chore share;        /* news.c */
    bool shared;                  /* other servers may work on the store, too */
    bool repack_refused;          /* under `lock`: the medium did, and is tried again later */
    uint64_t segment_bytes;
    pthread_mutex_t retain_lock; /* one at a time; outermost */
    atomic_ullong seal_after_s, retain_stf_s;
    atomic_bool rules_changed; /* retention is to be carried out now */
    atomic_bool closing;
    atomic_ulong revision;

    pthread_mutex_t lock;
    struct tl_buf news;      /* that other servers have told: see news.c */
    pthread_cond_t work;     /* a job was queued, or closing */
    pthread_cond_t idle;     /* a job has ended */
    struct tl_trace *traces; /* the table: those that are worked on, and some others */
    struct tl_trace *by_id[TL_TRACE_BUCKETS];
    size_t n_traces;
    uint64_t uses;     /* how often one was asked for */
    uint64_t unlinked; /* how many were taken out, or were changed by others */
    struct tl_trace *jobs, **last_job;

    pthread_mutex_t reading; /* one trace at a time is read into the table */

    pthread_mutex_t notes_lock; /* one note at a time is written; outermost */

    pthread_mutex_t garbage_lock; /* held while garbage is removed */
    struct tl_garbage *garbage;   /* under `lock`; so are graves */
    /* By a hash of the name: the last generation that a deleted trace had. Names that share a place
     * begin behind each other's. */
    uint64_t graves[TL_GRAVES];

    pthread_mutex_t watch_lock;
    struct tl_watcher watchers[TL_WATCHERS];

    pthread_mutex_t program_lock;
    struct tl_program *programs; /* under `program_lock`; those that are shared */

    pthread_mutex_t debuginfo_lock;
    struct tl_debuginfo *debuginfos; /* under its lock; most recently used first */

    pthread_mutex_t cache_lock;
    struct tl_view *cache[TL_VIEW_CACHE];     /* most recently used first */
    struct tl_view *made[TL_MADE_CACHE];      /* so are these … */
    struct tl_remaker *remakers[TL_REMAKERS]; /* … and these */

    /* Counters for metrics. */
    atomic_ulong items_decoded, shards_sealed, bytes_sealed, seal_failures, ranges_served,
        tiles_served, cache_hits, cache_misses, ingest_refused, retained_out, decode_waits,
        bytes_decoded, checkpoints, resumes, shards_made, leases_taken, leases_lost, traces_read,
        begun_with;
};

/* As tl_lake_open(), over a backend that the caller keeps. */
TL_MUST_USE int tl_lake_open_on(struct tl_lake **out, struct tl_backend *backend,
                                const struct tl_lake_options *options, struct tl_fail *fail);

/* The trace of this id with a reference, read into the table if it is not there; or NULL: there is
 * none, or the store does not answer (tl_no_trace()). */
struct tl_trace *tl_lake_find_trace(struct tl_lake *lake, const char *id);
/* The same of the table alone: takes no time. */
struct tl_trace *tl_lake_resident(struct tl_lake *lake, const char *id);
/* The same for who looks at all traces: it counts as not asked for, and leaves as if nobody had. */
struct tl_trace *tl_lake_peek(struct tl_lake *lake, const char *id);
/* The same by its id or, for who only reads, by the hash of its raw bytes: then the newest one. */
struct tl_trace *tl_lake_find_content(struct tl_lake *lake, const char *name);
/* The generation that serves of the trace that tl_lake_find_content() finds; release with
 * tl_gen_put(). Errors as of tl_no_content(). */
TL_MUST_USE int tl_lake_gen(struct tl_lake *lake, const char *name, struct tl_gen **out,
                            struct tl_fail *fail);
/* Say why tl_lake_find_trace() found none: TL_NOTFOUND only where the catalog says so,
 * TL_UNREACHABLE where it does not answer, TL_AGAIN where it does now. Reads the catalog. */
TL_MUST_USE int tl_no_trace(struct tl_lake *lake, struct tl_fail *fail, const char *id);
/* The same of tl_lake_find_content() and _now(). */
TL_MUST_USE int tl_no_content(struct tl_lake *lake, struct tl_fail *fail, const char *name);
/* A trace as a row says, with its first generation, without its shards and in no table. */
TL_MUST_USE int tl_trace_of_row(struct tl_lake *lake, const struct tl_catalog_trace *row,
                                struct tl_trace **out);
/* Put it into the table, in the place of what was only shown of a row that is its own. */
void tl_lake_insert(struct tl_lake *lake, struct tl_trace *trace);
/* References to all of the table; `*out` is to be freed in any case. */
TL_MUST_USE int tl_lake_all_resident(struct tl_lake *lake, struct tl_trace ***out, size_t *n);
/* Names of traces, each with its NUL, newest first. */
struct tl_names {
    struct tl_buf text;
    size_t n;
    struct tl_trace_place last;
};
/* Append up to `most` more names, from zeroed ones on. Returns 1: there may be more; TL_OK. */
TL_MUST_USE int tl_lake_names(struct tl_lake *lake, size_t most, struct tl_names *names,
                              struct tl_fail *fail);
TL_MUST_USE int tl_trace_fill_row(struct tl_trace *trace, struct tl_trace_row *row);
/* What it adds to the totals now. */
void tl_trace_digest_locked(struct tl_trace *trace, struct tl_digest *out);
/* Take it out of the table, with the table's reference. False: it was not there. */
bool tl_lake_unlink_locked(struct tl_lake *lake, struct tl_trace *trace);
/* The same, and give back the reference. */
void tl_lake_unlink(struct tl_lake *lake, struct tl_trace *trace);
/* Wait until no decode job of it is queued or runs. */
void tl_lake_end_job(struct tl_lake *lake, struct tl_trace *trace);
/* A new trace in the table and the catalog. TL_EXISTS. */
TL_MUST_USE int tl_lake_add_trace(struct tl_lake *lake, const char *id, const char *rig,
                                  const char *setup, struct tl_trace **out, struct tl_fail *fail);
/* Queue a decode job of the trace that is due in `delay_ns`; one that is queued becomes due no
 * later than that. */
void tl_lake_queue(struct tl_lake *lake, struct tl_trace *trace, int64_t delay_ns);
/* Take the trace's job off the queue. The caller holds the lake's lock and a reference. */
void tl_lake_unqueue_locked(struct tl_lake *lake, struct tl_trace *trace);
/* Run one decode job. Returns the delay in ns until the next one is due, < 0: none is. */
int64_t tl_lake_run_job(struct tl_trace *trace);
void tl_lake_notify(struct tl_lake *lake);
/*
 * Go on with the hashes of complete captures that have none: contents.c. Returns whether there is
 * more to do. Of the housekeeper's thread.
 */
bool tl_contents_hash(struct tl_lake *lake);
void tl_contents_free(struct tl_lake *lake);
/* The housekeeper's thread carries out retention, retries what the medium refused, and gives free
 * memory back. */
TL_MUST_USE int tl_housekeeper_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_housekeeper_stop(struct tl_lake *lake);
void tl_housekeeper_wake(struct tl_lake *lake);
void tl_housekeeper_free(struct tl_lake *lake);
/* Begin with what is not finished, once the catalog is open. */
TL_MUST_USE int tl_lake_begin(struct tl_lake *lake, struct tl_fail *fail);
/* Remove objects of deleted traces and generations that a crash has left behind. */
TL_MUST_USE int tl_lake_remove_orphans(struct tl_lake *lake, struct tl_fail *fail);
/* Remove all objects below a prefix that nothing uses any more. What the medium refuses to remove
 * now, the housekeeper removes later. */
void tl_lake_discard(struct tl_lake *lake, const char *prefix);
/* Have the housekeeper do it. After a crash before that they are orphans. */
void tl_lake_discard_later(struct tl_lake *lake, const char *prefix);
/* No bytes come behind these. TL_IO. */
TL_MUST_USE int tl_trace_complete(struct tl_trace *trace, uint64_t bytes, struct tl_fail *fail);
/* Seal what nobody has pushed for as long as tl_lake_set_seal_after() said. */
void tl_lake_seal_left(struct tl_lake *lake, int64_t now_ns);
/* A capture without bytes that nobody pushes leaves no trace. Does nothing with any other. */
void tl_trace_delete_empty(struct tl_trace *trace);
/* Remember the last generation of a deleted trace, so that a new trace of that name begins behind
 * it, and have its raw bytes removed. */
void tl_lake_bury(struct tl_lake *lake, const char *id, uint64_t generation);
/* The first generation of a new trace, once nothing of an older one of the same name is left but
 * shards that are being read. */
TL_MUST_USE int tl_lake_first_generation(struct tl_lake *lake, const char *id, uint64_t *out,
                                         struct tl_fail *fail);
/* Views that are kept, most recently used first: `n` of lake->cache or lake->made. The view with
 * this key, with a reference, or NULL. */
struct tl_view *tl_views_find(struct tl_lake *lake, struct tl_view **views, size_t n,
                              const char *key);
/* Keep one more, in place of the one that was not used for the longest time. */
void tl_views_keep(struct tl_lake *lake, struct tl_view **views, size_t n, struct tl_view *view);
/* A stored shard's view, from the cache if it is there. */
TL_MUST_USE int tl_lake_view(struct tl_lake *lake, struct tl_lane *lane, uint64_t number,
                             struct tl_view **out, struct tl_fail *fail);
/* Open a virtual shard by its index, for tl_lake_view(). */
TL_MUST_USE int tl_lane_open_virtual(struct tl_lane *lane, uint64_t number, struct tl_view **out,
                                     struct tl_fail *fail);
/* A shard of the lane, complete or growing, of which there is the index becomes a virtual one. */
void tl_lane_make_virtual(struct tl_lane *lane, struct tl_view *view);
/*
 * The generation that serves, for who reads what is in its shards; release with tl_gen_put(). If
 * another program made virtual shards of it, it is decoded anew and that is waited for, a minute at
 * most.
 */
struct tl_gen *tl_trace_settled(struct tl_trace *trace);
/* Are the shards that are decoded from now on virtual ones? */
bool tl_trace_is_virtual(struct tl_trace *trace);
/* Has the generation virtual shards, which are of no use without raw bytes? Asks the store. */
TL_MUST_USE int tl_gen_has_virtual(struct tl_gen *gen, bool *has, struct tl_fail *fail);
/* Is the line "key=value" among the labels? */
bool tl_label_is(const char *labels, const char *line);
/* Hash, size and build ID of an image; `name` is copied into the row. TL_NOMEM. */
TL_MUST_USE int tl_image_describe(const char *name, struct tl_bytes content,
                                  struct tl_image_row *row);
/* The hash of a stored image, named by its hash or as "build-id:<hex>". TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_hash(struct tl_lake *lake, const char *name, char out[static 72]);
/* Is an image of this name a source file? */
bool tl_is_source(const char *name);
/* Append the content of the image with this hash. TL_BAD: it is damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_lake_image_content(struct tl_lake *lake, const char *hash, struct tl_buf *out,
                                      struct tl_fail *fail);
/* Forget cached views below a key prefix. */
void tl_lake_forget_views(struct tl_lake *lake, const char *prefix);

int64_t tl_wall_ns(void);
int64_t tl_monotonic_ns(void);

/* ---- snapshots for readers ------------------------------------------------------------------ */

struct tl_stf_known;

struct tl_cut {
    struct tl_gen *gen;
    struct tl_lane *lane;
    struct tl_shard_row *rows; /* of all shards, in order; those in memory are the last ones */
    struct tl_rows_copy copy;  /* … where they lie */
    size_t n_rows;
    size_t n_stored;       /* number of those in the store */
    struct tl_view **tail; /* views of rows[n_stored…], which are in memory */
    uint64_t end;          /* behind the last position */
    bool open;             /* the lane may still grow */
};

/* TL_NOTFOUND: no such trace or stream. */
TL_MUST_USE int tl_cut_open(struct tl_cut *out, struct tl_lake *lake, const char *trace,
                            const char *stream, struct tl_fail *fail);
TL_MUST_USE int tl_cut_of_lane(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane);
void tl_cut_close(struct tl_cut *cut);
/*
 * `take` each stream of a generation that has instructions, with the unit that [from, to) is in
 * there: a range of all of them is one of time, and streams without any are taken only where all is
 * asked for, 0 to UINT64_MAX. TL_USAGE, TL_NOMEM, and what `take` returns below zero, which ends
 * it.
 */
typedef int tl_cut_taker(void *context, const struct tl_cut *cut, enum tl_range_unit unit,
                         struct tl_fail *fail);
TL_MUST_USE int tl_cuts_of_flow(struct tl_gen *gen, enum tl_range_unit unit, uint64_t from,
                                uint64_t to, tl_cut_taker *take, void *context,
                                struct tl_fail *fail);
/* The instruction set of its trace as long as its items tell of none: what the source is, or what
 * the header of others' STF says. */
enum tl_isa tl_cut_isa(const struct tl_cut *cut);
/* What the trace told of registers and page walks in front of `position`: for who writes others'
 * STF from there on. NULL in `*out`: nothing. Reads up to a shard. Errors as of tl_cut_walk_next().
 */
TL_MUST_USE int tl_cut_known(const struct tl_cut *cut, uint64_t position, struct tl_stf_known **out,
                             struct tl_fail *fail);
/* The view of shard `i`, with a reference. */
TL_MUST_USE int tl_cut_view(const struct tl_cut *cut, size_t i, struct tl_view **out,
                            struct tl_fail *fail);
/* The shard that holds `position`; n_rows if there is none. */
size_t tl_cut_shard_at(const struct tl_cut *cut, uint64_t position);
/* The first shard that may have items at `position`: those in front of an instruction may be so
 * many that shards end among them. */
size_t tl_cut_items_at(const struct tl_cut *cut, uint64_t position);

/*
 * Buckets of TL_LEVEL_SUMMARY, or coarser ones where that many are no more than a tile can show,
 * of the first `*shards` shards, as far as these touch positions [from, to) (0 to UINT64_MAX: all).
 * From the catalog: no shard is opened. The caller frees them, also after an error.
 */
TL_MUST_USE int tl_cut_summary(const struct tl_cut *cut, uint64_t from, uint64_t to,
                               struct tl_buckets *out, uint64_t *shards, struct tl_fail *fail);

/* Walks a cut chunk by chunk. */
struct tl_cut_walk {
    const struct tl_cut *cut; /* borrowed */
    struct tl_walk_range range;
    size_t shard, chunk; /* next to read */
    struct tl_view *view;
    struct tl_walk walk; /* the last chunk's items */
    const struct tl_chunk *at;
    /* If set: shards for which it is false are passed over unopened. */
    bool (*wanted)(const void *context, size_t shard);
    const void *context;
    struct tl_callstack *calls; /* set to the call stack at the first chunk's begin, or NULL */
};
/* Positions [from, to). Items behind the last position are included if `to` is at or behind the
 * snapshot's end. */
void tl_cut_walk_begin(struct tl_cut_walk *walk, const struct tl_cut *cut, uint64_t from,
                       uint64_t to);
/*
 * Begin at the first instruction of the chunk that `from` is in: there the call stack is known. The
 * first tl_cut_walk_next() sets `calls`, which is initialised and follows what is read from then on
 * with tl_walk_follow().
 */
TL_MUST_USE int tl_cut_walk_calls(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                  struct tl_fail *fail);
/*
 * All of that to the end of the walk, which has only begun, with `calls` not initialised: its sink
 * and `each` (may be NULL), which is told of each item behind it, have `context`. Where the sink
 * returns TL_EOF, it ends there with TL_OK.
 */
typedef void tl_cut_each(void *context, const struct tl_walk *walk, size_t i);
TL_MUST_USE int tl_cut_walk_follow(struct tl_cut_walk *walk, struct tl_callstack *calls,
                                   tl_frame_sink *sink, tl_cut_each *each, void *context,
                                   struct tl_fail *fail);
/* The next chunk's items are in walk->walk: TL_OK, or TL_EOF. */
TL_MUST_USE int tl_cut_walk_next(struct tl_cut_walk *walk, struct tl_fail *fail);
/* The next chunk's index entry, NULL behind the last: the chunk itself is not read. */
TL_MUST_USE int tl_cut_walk_peek(struct tl_cut_walk *walk, const struct tl_chunk **out,
                                 struct tl_fail *fail);
void tl_cut_walk_skip(struct tl_cut_walk *walk);
void tl_cut_walk_end(struct tl_cut_walk *walk);

#endif
