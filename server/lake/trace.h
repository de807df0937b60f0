/* SPDX-License-Identifier: MIT */
/*
 * A trace: its catalog row, its push session, its generations. Reference-counted: _get takes a
 * reference, _put releases it. Locks and their order are in server/LOCKING.md. A function whose
 * name ends in _locked must be called with the trace's lock held; all others are thread-safe.
 */
#ifndef TL_LAKE_TRACE_H
#define TL_LAKE_TRACE_H

#include "catalog/catalog.h"
#include "lake/gen.h"
#include "lake/job_queue.h"
#include "lake_ingest.h"
#include "lake_traces.h"

/* A trace's contribution to the totals of all traces. */
struct tl_digest {
    /* Enum tl_trace_state; the other members count only for sealed and failed traces. */
    uint8_t state;
    uint64_t raw_bytes, stored_bytes, insns;
};

/* What happens to a trace, by what is still to come. */
enum tl_trace_phase {
    TL_PHASE_DELETED,
    TL_PHASE_PUSHED,  /* bytes come, or may come */
    TL_PHASE_DECODED, /* no more bytes; a generation is being made */
    TL_PHASE_AT_REST,
};

/* Work in the background that waits to be done for a trace: a set. */
enum tl_trace_owed {
    TL_OWED_COPY = 1,    /* of its row: lake/mirror.h */
    TL_OWED_HASH = 2,    /* of its raw bytes, which are complete: upkeep/contents.c */
    TL_OWED_PACKING = 4, /* of a segment: ingest/repack.h */
};

/* Is the hash of the raw bytes known? */
enum tl_content_state {
    TL_CONTENT_UNKNOWN,
    TL_CONTENT_UNREAD, /* the medium failed to read them; to be retried */
    TL_CONTENT_KNOWN,
    TL_CONTENT_DAMAGED, /* it cannot be computed until the server starts again */
};

/* The live edge owned by another server, as seen here (lake/edge.c). Times are monotonic. */
struct tl_edge {
    struct tl_gen *gen;  /* the local decoding of it; NULL: none */
    int64_t read_ns;     /* time of the last read: here or, if the trace is ours, elsewhere */
    int64_t reported_ns; /* when the other server was last informed */
    int64_t after_ns;    /* not restarted before */
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
    pthread_mutex_t owning;  /* held while its lease is acquired or released: share/share.c */
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
    uint8_t content_state;             /* enum tl_content_state */
    int64_t completed_ns;    /* when it became complete: monotonic; 0: in an earlier process */
    uint64_t saves, mirrors; /* number of writes begun of the row and of its copy */
    bool mirror_stale;       /* the object that repeats the row has not been written */
    unsigned mirroring;      /* threads that are writing it */
    pthread_cond_t mirrored; /* there are none any more */
    int64_t updated_ns;
    uint64_t raw_bytes; /* durable bytes */
    uint64_t repacked;  /* raw offset before which no segment needs packing: ingest/repack.h */
    uint64_t revision;
    uint64_t wanted;   /* number of the generation in `making` or, when decoding is complete, in
                          `serving` */
    char message[256]; /* why it failed */
    struct tl_ingest *session;
    int64_t idle_ns;        /* time since when it has no session in this process: monotonic */
    uint64_t epoch;         /* of the current or last push, see struct tl_ingest_request */
    struct tl_lease *lease; /* in a store shared by servers; NULL: not held by this server */
    unsigned pins;          /* number of temporary users of the lease */
    int64_t tried_ns; /* time of the last attempt to acquire it, or of a change by another server */
    uint64_t yielded; /* number of the request for which it was released: see TL_PIN_ASK */
    uint64_t reported;        /* how many of the raw bytes have been recorded in the catalog */
    struct tl_digest counted; /* its contribution to the catalog's totals */
    struct tl_gen *serving;
    /* Same as `serving` unless it is being decoded again; NULL: nothing to decode. */
    struct tl_gen *making;
    struct tl_gen *outline; /* decoded ahead of `serving`: decoding/outline_job.h; NULL: none */
    int64_t behind_ns;      /* since when `serving` is behind it: monotonic */
    struct tl_edge edge;
    /* Guarded by the lake's lock: */
    struct tl_job job;
};

struct tl_trace *tl_trace_get(struct tl_trace *trace);
void tl_trace_put(struct tl_trace *trace);
/* The hash of its raw bytes, "": not known. */
void tl_trace_set_content_locked(struct tl_trace *trace, const char *content);
enum tl_trace_phase tl_trace_phase_locked(const struct tl_trace *trace);
/* What is owed to it: a set of enum tl_trace_owed. */
unsigned tl_trace_owed_locked(const struct tl_trace *trace);
/* Has it just become complete? For so long, packing and hashing leave the processors to the answers
 * that the client of its push waits for. Called with its lock held. */
#define TL_FRESH_NS INT64_C(50000000)
bool tl_trace_is_fresh_locked(const struct tl_trace *trace);
/* The serving generation; release with tl_gen_put(). */
struct tl_gen *tl_trace_serving(struct tl_trace *trace);
/* What is decoded ahead of it, or NULL; likewise. */
struct tl_gen *tl_trace_outline(struct tl_trace *trace);
/* Update the trace from a catalog row, except for its generation. */
TL_MUST_USE int tl_trace_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row,
                                  struct tl_fail *fail);
/* The saved row refers to this generation no more: drop its catalog rows, now or, if that fails, at
 * the next start at the latest; its shards are removed with the last reference. Call without any
 * lock held. */
void tl_trace_retire(struct tl_trace *trace, struct tl_gen *gen);
/* Remove generations that are neither serving nor wanted. */
TL_MUST_USE int tl_trace_remove_orphans(struct tl_trace *trace, struct tl_fail *fail);
/* Write only its row, without the object that repeats it. */
TL_MUST_USE int tl_trace_save_row(struct tl_trace *trace, struct tl_fail *fail);
/*
 * Write its row to the catalog, with the current time of change, from a copy. Call without any lock
 * held.
 */
TL_MUST_USE int tl_trace_save(struct tl_trace *trace, struct tl_fail *fail);
/* The same, with the time of change unaltered. */
TL_MUST_USE int tl_trace_save_quietly(struct tl_trace *trace, struct tl_fail *fail);
/* Record a visible change and notify the watchers. Call without any lock held. */
void tl_trace_changed(struct tl_trace *trace);
/* May this server change it? */
bool tl_trace_mine_locked(const struct tl_trace *trace);
/* Does a trace have a segment to pack? Called with its lock held. */
bool tl_repack_due_locked(const struct tl_trace *trace);
/* Will shards decoded from now on be virtual? */
bool tl_trace_is_virtual(struct tl_trace *trace);
/* By how many raw bytes the trace's index must lag to be made behind its decoding; UINT64_MAX: it
 * never is. */
uint64_t tl_trace_index_lag(struct tl_trace *trace);
/* Decode it again, as tl_lake_redecode(); for whoever may change it, without its lock held. `from`
 * is the setup that the new one was made of, or NULL; TL_AGAIN: it is no longer the trace's. */
TL_MUST_USE int tl_trace_redecode(struct tl_trace *trace, const char *from, const char *setup,
                                  struct tl_fail *fail);

#endif
