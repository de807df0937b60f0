/* SPDX-License-Identifier: MIT */
/*
 * Generations, and their lanes.
 *
 *   tl_gen    one decoding of a trace: setup, image, streams, and what decodes it
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
#include "lake/program.h"
#include "lake/shardrows.h"
#include "raw/spool.h"
#include "shard/timebucket.h"
#include "store/checkpoint.h"
#include "store/hash.h"

#include <pthread.h>
#include <stdatomic.h>

struct tl_decode_job;
struct tl_gen;
struct tl_lake;

/* ---- lanes --------------------------------------------------------------------------------- */

/* Buckets in time of a lane's stored shards, or counts of functions by position: time_summary.h. */
struct tl_time_summary {
    bool by_position;
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
    struct tl_away **away; /* of an outline: those before them, out of memory */
    size_t n_away, cap_away;
    struct tl_build *build; /* builder of the next shard, NULL: not being decoded */
    uint64_t lost_bytes;
    struct tl_clock_relation clock; /* relation of its timestamps to this server's clock */
    /* Private to the decode job: samples from which `clock` is computed; NULL: no job. */
    struct tl_clockfit *fit;
    /* Buckets of level TL_LEVEL_SUMMARY or coarser for the first `summary_shards` shards:
     * summary.c. */
    struct tl_buckets summary;
    uint64_t summary_shards;
    struct tl_time_summary time_summary, function_summary; /* each has a lock of its own */
    struct tl_shard_stats **stats; /* cached statistics of rows[i], or NULL */
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

/* Let go of the first `n` shards that are not in the catalog yet. */
void tl_lane_drop_pending_locked(struct tl_lane *lane, size_t n);
/* The first of them is in the store, with this row: readers find it in one of the two places.
 * TL_NOMEM; TL_IO, TL_NOSPACE of a scratch file. */
TL_MUST_USE int tl_lane_stored_locked(struct tl_lane *lane, const struct tl_shard_row *row);
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
    atomic_bool ours;     /* it has no virtual shards made by another server version */
    atomic_bool renewed;  /* the trace is being decoded again, since another server version made its
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
                               */
    uint64_t *marks; /* virtual/remake.h: raw offset of the first one of each stored list */
    size_t n_marks, cap_marks;
    pthread_mutex_t marks_lock; /* held while they are listed */
    bool marks_known;           /* guarded by marks_lock */
    bool is_virtual;      /* only the index of shards is stored, and marks (virtual/remake.h) */
    atomic_ulong decoded; /* raw bytes decoded so far */
    /* What decodes it (decoding/decode_job.h), and how that is freed; NULL: nothing has yet. Set
     * once by whoever has the turn, with the lock held. */
    struct tl_decode_job *job;
    void (*free_job)(struct tl_decode_job *job);
};

/* Must its decode job stop? */
static inline bool tl_gen_abandoned(const struct tl_gen *gen)
{
    return atomic_load_explicit(&gen->abandoned, memory_order_relaxed);
}

/* Create, with one reference and without streams; texts are copied. TL_BAD: the setup; TL_NOMEM. */
TL_MUST_USE int tl_gen_new(struct tl_gen **out, struct tl_lake *lake, const char *trace,
                           uint64_t number, const char *setup, struct tl_fail *fail);
/* Another reference; returns `gen`. */
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
/* Maximum size of such an object worth storing: that of a million instructions of which every
 * fourth is an exception. Counting again takes fifty times as long as reading it. */
#define TL_KEPT_MAX (4u << 20)
/*
 * Are code counts and call trees of this shard stored (query/kept.h)? Not if it is virtual, the
 * first of its stream and short: then it is nearly always the only one, counting it again takes
 * milliseconds, and its counts may be larger than its raw bytes.
 */
bool tl_gen_keeps_counts(const struct tl_gen *gen, bool is_virtual, const struct tl_shard_row *row);

#endif
