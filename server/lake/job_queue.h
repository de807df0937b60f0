/* SPDX-License-Identifier: MIT */
/*
 * The queue of decode jobs, as the lake has it, and what each trace has of it: lake/jobs.h. All of
 * it is guarded by the lake's lock.
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
    struct tl_trace *next; /* in the queue */
    enum tl_job_state state;
    bool live;             /* it was being pushed when its job was queued last, or had a turn */
    bool has_slot;         /* its job may compute */
    bool slot_is_live;     /* and it is one of the slots for live captures */
    uint64_t rank;         /* place in line, if it is not live: lower ones begin first */
    int64_t not_before_ns; /* monotonic: earliest start of the job */
    int64_t begun_ns;      /* begin of the job's turn: monotonic */
    int64_t used_ns;       /* how long it has had turns, on the scale of `served_ns` */
};

struct tl_job_queue {
    pthread_cond_t work;                /* a job was queued, or the lake is closing */
    struct tl_trace *first;             /* live ones, then the others by rank */
    uint64_t rank;                      /* the highest one of those that have begun */
    unsigned n_threads, n_idle;         /* threads, and those without a job */
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

#endif
