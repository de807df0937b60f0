/* SPDX-License-Identifier: MIT */
/*
 * Decoding of a generation's raw bytes into shards. At most one job per generation runs at a time.
 */
#ifndef TL_DECODING_DECODE_JOB_H
#define TL_DECODING_DECODE_JOB_H

#include "base/err.h"
#include "lake/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_decode;
struct tl_gen;
struct tl_lane;
struct tl_mark;
struct tl_packer;
struct tl_spool_reader;
struct tl_suspect;
struct tl_trace;

/* What becomes of what is decoded. */
enum tl_decode_role {
    TL_DECODE_STORED,  /* shards in the store, and rows in the catalog */
    TL_DECODE_EDGE,    /* nothing is stored of it: another server does that (edge_job.h) */
    TL_DECODE_OUTLINE, /* only marks are: another job does the rest, later (outline_job.h) */
};

/*
 * What decoding has of a generation from its first turn to the generation's end. It belongs to the
 * thread whose turn it is; between two turns, and before the first one, to whoever keeps the next
 * one from beginning.
 */
struct tl_decode_job {
    struct tl_gen *gen; /* its owner */
    enum tl_decode_role role;
    size_t most;        /* number of raw bytes that a turn may decode; 0: the default */
    bool wants_virtual; /* the trace had the label for it when decoding began */
    bool no_outline;    /* there can be none */
    uint64_t due;       /* raw byte of its outline, before the end of which it has a turn, too */
    /* How far it is: */
    bool resumed;     /* an earlier run of the server left shards or a checkpoint */
    unsigned retries; /* failed writes since the last successful one */
    bool cut;         /* aborted during a flush: the decoder must be created again */
    bool stuck;       /* a read failed although the spool found no damage afterwards */
    bool unsaved;     /* the catalog does not have all lanes yet */
    bool finished;    /* tl_decode_finish() was called */
    int broken;       /* the error that ended decoding */
    struct tl_fail failure;
    /* From raw bytes to the builders: */
    struct tl_decode *decode; /* NULL: not begun */
    struct tl_spool_reader *reader;
    struct tl_lane **by_stream; /* lane of each tl_decode_stream.index */
    size_t n_by_stream, cap_by_stream;
    uint64_t arrival_ns;     /* arrival time of the bytes pushed last; 0: not known */
    uint64_t timed_ns;       /* arrival time that timestamps were last related to */
    uint64_t first_ns;       /* first arrival time */
    size_t waiting;          /* bytes pushed into the decoder since its last flush */
    size_t together;         /* number of bytes after which it is flushed */
    size_t slice;            /* number of bytes per push */
    atomic_size_t completed; /* number of shards completed; others may read it */
    struct tl_turns_of turns;
    size_t memory;       /* bytes, as last measured: decode_memory.h */
    int64_t measured_ns; /* when that was: monotonic */
    /* Into the store, by the sealing thread, which ends with the turn: store_shards.h. `packer`
     * and the results belong to that while it runs. */
    struct tl_packer *packer; /* compresses what the crew has not, when a shard is stored */
    pthread_t sealer;
    bool sealing;
    atomic_bool seal_over;
    size_t seal_lanes; /* number of lanes whose shards it stores */
    int seal_result;
    struct tl_fail seal_fail;
    /* Checkpoints: resume.h. */
    uint64_t marked; /* raw offset of the stored one, if has_mark */
    uint64_t tried;  /* raw offset of the last attempt to store one */
    bool has_mark;
    /* Marks: marks.h. */
    uint64_t mark_insns, mark_offset; /* positions of all lanes, and raw offset, at the last one */
    size_t mark_size;                 /* size of the last one in bytes */
    struct tl_mark *late_marks;       /* in no stored list yet; guarded by the generation's lock */
    size_t n_late_marks;
    /* suspect.h: its record, NULL: none; is it the only suspect that has a turn; processor time
     * taken since it was begun or has progressed, and that of the thread when its turn began. */
    struct tl_suspect *suspect;
    bool alone;
    _Atomic int64_t cpu_ns; /* others may read it */
    int64_t turn_cpu_ns;
};

/* The job of a generation, made when it is first asked for, and freed with it. NULL: no memory. */
struct tl_decode_job *tl_decode_job_of(struct tl_gen *gen);
/* A generation of this number beside those of the trace, decoded from `setup`, which is freed, and
 * with its job. NULL: `setup` is, there is no memory, or the store cannot answer. */
struct tl_gen *tl_decode_job_beside(struct tl_trace *trace, uint64_t number, char *setup,
                                    enum tl_decode_role role);
/*
 * As the job of this trace, decode a bounded part of the raw bytes [decoded, end) of one of its
 * generations; `last`: the capture ends
 * at `end`. TL_OK: call again; TL_EOF: all of them are decoded (with `last`: finished, and
 * everything is sealed); TL_NOSPACE or TL_IO: retry later; other errors end the decoding.
 */
TL_MUST_USE int tl_decode_job_run(struct tl_decode_job *job, struct tl_trace *trace, uint64_t end,
                                  bool last, struct tl_fail *fail);
/* Prepare for another server to continue, while it has no turn: store what is complete, and a
 * checkpoint if possible. Accepts NULL. */
void tl_decode_job_leave(struct tl_decode_job *job);
/* Discard the decoder and the growing shards. Accepts NULL. */
void tl_decode_job_stop(struct tl_decode_job *job);

#endif
