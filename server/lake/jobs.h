/* SPDX-License-Identifier: MIT */
/*
 * Decode jobs: the queue of traces that have one, the threads that run them, and their turns. As
 * many of them compute at a time as the options say; each in turn, for some milliseconds. Locking:
 * the lake's lock.
 */
#ifndef TL_LAKE_JOBS_H
#define TL_LAKE_JOBS_H

#include "lake/lakeint.h"

/* Start and stop the threads. Stopping cancels jobs (lake->closing), and waits for their end. */
TL_MUST_USE int tl_jobs_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_jobs_stop(struct tl_lake *lake);

/* What a job must be asked, and told, for its turns. */
struct tl_turns_of {
    struct tl_trace *trace; /* whose job it is */
    bool (*unwanted)(void *context);
    /* Called without any lock held when the turn ends, and when the next one begins. */
    void (*changes)(void *context, bool begins);
    void *context;
};

/*
 * Called by a job, on its thread, with no lock held: if its turn is over and others wait, let them
 * have theirs, and return when it is this job's turn again. TL_CANCELLED: `unwanted`, which must be
 * cheap and is called with the lake's lock held.
 */
TL_MUST_USE int tl_jobs_give_way(struct tl_lake *lake, const struct tl_turns_of *turns);

enum tl_job_pause {
    TL_JOB_STORES, /* it waits for the medium, and keeps what is to be stored */
    TL_JOB_WAITS,  /* for other jobs */
};

/*
 * Called by a job, on its thread, with no lock held: it does not compute, or only has to be ended,
 * so others may compute. It ends like this, or has its turn again once tl_jobs_return() returns.
 */
void tl_jobs_leave(struct tl_lake *lake, struct tl_trace *trace, enum tl_job_pause pause);
void tl_jobs_return(struct tl_lake *lake, const struct tl_turns_of *turns);

/* Wait until no job of it is queued or running. The caller holds the lake's lock, which is released
 * while waiting, and a reference. */
void tl_jobs_end_locked(struct tl_lake *lake, struct tl_trace *trace);

#endif
