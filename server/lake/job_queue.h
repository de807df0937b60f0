/* SPDX-License-Identifier: MIT */
/*
 * The queue of decode jobs, as the lake has it, and what each trace has of it: lake/jobs.h. All of
 * it is guarded by the lake's lock. Adding, removing and taking a job take the same time however
 * many wait, since a start may find ten thousand captures to be decoded.
 */
#ifndef TL_LAKE_JOB_QUEUE_H
#define TL_LAKE_JOB_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct tl_trace;
struct tl_turn;

enum tl_job_state {
    TL_JOB_NONE,
    TL_JOB_QUEUED,
    TL_JOB_RUNS,
    TL_JOB_RUNS_AGAIN, /* is to be queued once it has run */
};

/* The job of a trace. */
struct tl_job {
    struct tl_trace *next, *prev; /* in its line */
    struct tl_job_line *line;     /* in which it waits; NULL: none */
    enum tl_job_state state;
    bool live;             /* it was being pushed when its job was queued last, or had a turn */
    bool has_slot;         /* its job may compute */
    bool slot_is_live;     /* and it is one of the slots for live captures */
    bool stores;           /* it is one of those that wait for the medium */
    int64_t not_before_ns; /* monotonic: earliest start of the job */
    int64_t begun_ns;      /* begin of the job's turn: monotonic */
    int64_t used_ns;       /* how long it has had turns, on the scale of `served_ns` */
};

/* Jobs in a row. */
struct tl_job_line {
    struct tl_trace *first, *last;
    /* If it is a rig's line, which is there while somebody waits in it: */
    struct tl_job_line *next, *prev; /* rigs in turn */
    struct tl_job_line *same_hash;
    char rig[64];
};

#define TL_JOB_RIGS 256u /* hash buckets */

struct tl_job_queue {
    pthread_cond_t work; /* a job was queued, or the lake is closing */
    uint64_t n_waiting;
    struct tl_job_line live;  /* those of live captures that are due */
    struct tl_job_line later; /* those that are not due yet, by time */
    /* The others: */
    struct tl_job_line *rigs, *last_rig; /* whose turn is first, and last */
    struct tl_job_line *by_rig[TL_JOB_RIGS];
    struct tl_job_line rest;    /* of rigs for whose lines there was no memory: behind the others */
    unsigned n_threads, n_idle; /* threads, and those without a job */
    unsigned storing;           /* jobs that wait for the medium and are not live */
    struct tl_turn *turns, **last_turn; /* suspended jobs, longest first */
    /* Of traces that are not being pushed, of those that are: */
    unsigned slots[2], busy[2]; /* jobs that may compute, and that do */
    int64_t served_ns[2];       /* how long the suspended job that was resumed last had had turns */
    uint64_t given[2];          /* slots given so far */
    unsigned resumed[2];        /* suspended jobs that have had a slot since a new one had */
};

void tl_job_queue_init(struct tl_job_queue *queue);
/* Releases the references to the traces in it; then it is to be initialised again, or freed. */
void tl_job_queue_fini(struct tl_job_queue *queue);

/* Let the trace's job wait behind those of its kind, live or of its rig, from `not_before_ns` on.
 * It must not be waiting. References are the caller's. */
void tl_job_queue_add(struct tl_job_queue *queue, struct tl_trace *trace);
/* Returns whether it was waiting. */
bool tl_job_queue_remove(struct tl_job_queue *queue, struct tl_trace *trace);
/* Is a job of a live capture, or of another, due? */
bool tl_job_queue_has(struct tl_job_queue *queue, bool live);
/* Take the first one of those: of rigs in turn. NULL: none is due. */
struct tl_trace *tl_job_queue_take(struct tl_job_queue *queue, bool live);
/* Time until one of those that are not due is. < 0: there are none. */
int64_t tl_job_queue_wait_ns(const struct tl_job_queue *queue);

#endif
