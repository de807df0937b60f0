/* SPDX-License-Identifier: MIT */
/*
 * Generations, and their lanes.
 *
 *   tl_gen    one decoding of a trace: setup, image, streams, and the decoder while it runs
 *   tl_lane   one stream of a generation: sealed shards, shards not yet stored, the builder
 *
 * Generations are reference-counted: _get takes a reference, _put releases it. Locks and their
 * order are in server/LOCKING.md. A function whose name ends in _locked must be called with the
 * lock of its object held; all others are thread-safe unless stated otherwise.
 */
#ifndef TL_LAKE_GEN_H
#define TL_LAKE_GEN_H

#include "base/numbers.h"
#include "builder/build.h"
#include "catalog/clockfit.h"
#include "decode/decode.h"
#include "lake.h"
#include "lake/program.h"
#include "lake/shardrows.h"
#include "raw/spool.h"
#include "shard/timebucket.h"
#include "store/checkpoint.h"
#include "store/hash.h"

#include <pthread.h>
#include <stdatomic.h>

struct tl_gen;
struct tl_mark;
struct tl_suspect;

/* ---- lanes --------------------------------------------------------------------------------- */

/* Buckets in time of a lane's stored shards: time_summary.h. */
struct tl_time_summary {
    /* Held while they are read from the catalog; acquired with no other lock held. */
    pthread_mutex_t lock;
    struct tl_time_level buckets;
    unsigned level;
    uint64_t shards; /* the first ones, of which these are */
    bool unknown;    /* there is a shard without buckets among them */
};

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
    struct tl_time_summary time_summary; /* has a lock of its own */
    struct tl_shard_stats **stats;       /* cached statistics of rows[i], or NULL */
    size_t n_stats, cap_stats;
    size_t stats_bytes;
    struct tl_calltree **calltrees; /* cached call trees of rows[i], or NULL */
    size_t n_calltrees, cap_calltrees;
    size_t calltree_bytes;
    struct tl_numbers incomplete; /* see tl_lane_is_incomplete() */
    /* Held while its shards are regenerated; acquired with no other lock held. */
    pthread_mutex_t make_lock;
    /* The most recently opened shard was virtual: the next one probably is too. */
    atomic_bool is_virtual;
};

/* Drop the cached statistics after a shard has changed. */
void tl_lane_forget_stats_locked(struct tl_lane *lane);
void tl_lane_forget_calltrees_locked(struct tl_lane *lane);
void tl_lane_forget_summary_locked(struct tl_lane *lane);
/* The same, with no lock held. */
void tl_time_summary_forget(struct tl_time_summary *summary);

/*
 * Is part of this virtual shard missing, since raw bytes are damaged (shard/missing.h)? Only known
 * if the shard was read, or verified, since the lane was opened; it may have been mended since
 * then.
 */
bool tl_lane_is_incomplete(struct tl_lane *lane, uint64_t shard);
void tl_lane_note_incomplete(struct tl_lane *lane, uint64_t shard);

/* Number of positions in the sealed shards. */
uint64_t tl_lane_sealed_locked(const struct tl_lane *lane);

/* What a job must be asked, and told, for its turns (lake/jobs.h). */
struct tl_turns_of {
    struct tl_trace *trace; /* whose job it is */
    bool (*unwanted)(void *context);
    /* Called without any lock held when the turn ends, and when the next one begins. */
    void (*changes)(void *context, bool begins);
    void *context;
};

/* ---- generations --------------------------------------------------------------------------- */

/* What becomes of what is decoded. */
enum tl_gen_role {
    TL_GEN_STORED,  /* shards in the store, and rows in the catalog */
    TL_GEN_EDGE,    /* nothing is stored of it: another server does that (lake/edge.c) */
    TL_GEN_OUTLINE, /* only marks are: another job does the rest, later (decoding/outline_job.h) */
};

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
    struct tl_program *program; /* loaded when it is needed; changes only while nobody but the trace
                                   refers to the generation */
    int64_t image_used_ns;      /* when it was requested last */
    uint64_t lost_bytes;        /* bytes of the container that could not be decoded */
    char message[256];          /* the last problem, for users */
    char waits[256];            /* why decoding waits, told instead; "": it does not */
    char whose[TL_HASH_TEXT]; /* hash of everything that checkpoints depend on, "": not computed yet
                                 / */
    /* Marks (virtual/remake.h): raw offset of the first mark of each stored list, and the marks
     * that are not in a stored list yet. */
    uint64_t *marks;
    size_t n_marks, cap_marks;
    struct tl_mark *late_marks;
    size_t n_late_marks;
    pthread_mutex_t marks_lock; /* held while they are listed */
    bool marks_known;           /* guarded by marks_lock */
    /* For the generation's decode job; at most one runs at a time: */
    struct tl_decode *decode;
    struct tl_spool_reader *reader;
    uint64_t arrival_ns; /* arrival time of the bytes pushed last; 0: not known */
    uint64_t timed_ns;   /* arrival time that timestamps were last related to */
    uint64_t first_ns;   /* first arrival time */
    size_t waiting;      /* bytes pushed into the decoder since its last flush */
    size_t together;     /* number of bytes after which it is flushed */
    size_t slice;        /* number of bytes per push */
    struct tl_turns_of turns;
    size_t memory;            /* bytes, as last measured: decoding/decode_memory.h */
    int64_t measured_ns;      /* when that was: monotonic */
    size_t completed;         /* number of shards completed */
    struct tl_packer *packer; /* compresses what the crew has not, when a shard is stored */
    /* The sealing thread stores shards while the job decodes; it ends with the job. */
    pthread_t sealer;
    bool sealing;
    atomic_bool seal_over;
    enum tl_gen_role role;
    bool no_outline;    /* there can be none */
    size_t most;        /* number of raw bytes that a job may decode; 0: the default */
    bool wants_virtual; /* the trace had the label for it when decoding began */
    bool is_virtual;    /* only the index of shards is stored, and marks (virtual/remake.h) */
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
    /* decoding/suspect.h: its record, NULL: none; is it the only suspect that has a turn; processor
     * time taken since it was begun or has progressed, and that of the thread when its turn began.
     */
    struct tl_suspect *suspect;
    bool alone;
    int64_t cpu_ns, turn_cpu_ns;
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
/*
 * The program image, loaded when it is needed; it may be empty. It stays while the caller holds its
 * reference to the generation. TL_BAD: an image is damaged, `fail` has its name; TL_IO: it cannot
 * be read now.
 */
TL_MUST_USE int tl_gen_load_image(struct tl_gen *gen, const struct tl_image **out,
                                  struct tl_fail *fail);
/* The same; NULL: it cannot be read. */
const struct tl_image *tl_gen_image(struct tl_gen *gen);
void tl_gen_say(struct tl_gen *gen, const char *format, ...) TL_PRINTF(2, 3);
bool tl_gen_has_said(struct tl_gen *gen);
/* Decoding waits because of `why`; NULL: it goes on. Says nothing of the result, and is not kept.
 */
void tl_gen_wait(struct tl_gen *gen, const char *why);

/* Are its timestamps those of a software trace source's own counter? */
bool tl_lane_has_own_clock(const struct tl_lane *lane);
/* Are its timestamps times of the trace (setup/timestamps.h)? */
bool tl_lane_is_timed(const struct tl_lane *lane);

/* Is its clock rate known, so that its times are shown in ns? */
bool tl_lane_is_in_ns(const struct tl_lane *lane);

/* How the lane's ticks are shown. */
struct tl_axis tl_lane_axis(const struct tl_lane *lane);

/*
 * Convert ticks to the unit shown to users: nanoseconds if the clock rate is known, otherwise
 * ticks.
 */
uint64_t tl_lane_time(const struct tl_lane *lane, uint64_t ticks);
#define TL_KEPT_MAX (512u << 10) /* maximum size of such an object worth storing */
/*
 * Are code counts and call trees of this shard stored (query/kept.h)? Not if it is virtual, the
 * first of its stream and short: then it is nearly always the only one, counting it again takes
 * milliseconds, and its counts may be larger than its raw bytes.
 */
bool tl_gen_keeps_counts(const struct tl_gen *gen, bool is_virtual, const struct tl_shard_row *row);

#endif
