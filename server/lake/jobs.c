/* SPDX-License-Identifier: MIT */
/*
 * A few raw bytes can take hours to decode, so a job is interrupted in the middle of whatever it
 * does: its thread sleeps within the decoder's sink until the next turn, and another thread runs
 * the next job. So there are as many threads as there are suspended jobs, and slots for those that
 * compute; and some that are idle, since a job that leaves its slot needs another thread there.
 *
 * A capture that is being pushed goes before others: somebody watches it, while one that is
 * complete waits in line. Every fourth slot is for the others, so that they go on, too.
 *
 * A slot is for computing: a job that stores what it has decoded leaves its slot to others until
 * the medium is done.
 *
 * Of equals the slot goes to the suspended job that has had one for the least time, since a turn
 * can last longer than it should. A live capture that had little lately is a bit ahead, so that
 * what came in the meantime is decoded at once.
 *
 * A new job goes before suspended ones: nearly all are short. Once a suspended one has waited for
 * long, they alternate.
 */
#include "lake/jobs.h"

#include "base/crew.h"
#include "base/processors.h"

#include <errno.h>
#include <stdlib.h>

#define TURN_NS     INT64_C(10000000)
#define PATIENCE_NS INT64_C(100000000) /* a suspended job waits so long for newer ones */
#define LOOK_NS     INT64_C(200000000) /* between two looks whether it is wanted */
#define AHEAD_NS    INT64_C(50000000)  /* what a live one may have before others have their turn */
#define REST        4u                 /* one of so many slots is for those that are not live */
#define MAX_THREADS 1024u

/* A suspended job, on its thread's stack. */
struct tl_turn {
    struct tl_turn *next;
    pthread_cond_t cond;
    const struct tl_trace *trace;
    int64_t since_ns;
    bool granted; /* it has a slot, and has left the list */
};

/* ---- queue ---------------------------------------------------------------------------------- */

/* Is somebody tracing at this moment, here or, if it is followed, at another server? What is only
 * to be indexed behind the outline of it is not urgent. */
static bool is_live(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool outlined =
        trace->outline && atomic_load(&trace->outline->decoded) >= trace->raw_bytes;
    const bool live = !trace->complete && (trace->session || trace->edge) && !outlined;
    pthread_mutex_unlock(&trace->lock);
    return live;
}

/* See whether it is live. If that has changed, what it has had does not count among the others
 * there. Returns whether it has. */
static bool note_live_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    const bool live = is_live(trace);
    if (live == trace->live)
        return false;
    trace->live = live;
    trace->used_ns = lake->served_ns[live];
    return true;
}

/* The queue has the live ones first. */
static void enqueue_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    (void)note_live_locked(lake, trace);
    if (trace->job >= TL_JOB_RUNS) {
        trace->job = TL_JOB_RUNS_AGAIN; /* its thread looks when it is done */
        return;
    }
    trace->job = TL_JOB_QUEUED;
    struct tl_trace **p = trace->live ? &lake->jobs : lake->last_job;
    while (*p && (*p)->live)
        p = &(*p)->next_job;
    trace->next_job = *p;
    *p = tl_trace_get(trace);
    if (!trace->next_job)
        lake->last_job = &trace->next_job;
    pthread_cond_signal(&lake->work);
}

/* Remove the trace's job from the queue. The caller holds the lake's lock and a reference. */
static void remove_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_trace **p = &lake->jobs;
    while (*p && *p != trace)
        p = &(*p)->next_job;
    trace->job = trace->job >= TL_JOB_RUNS ? TL_JOB_RUNS : TL_JOB_NONE;
    if (!*p)
        return;
    *p = trace->next_job;
    if (!*p)
        lake->last_job = p;
    tl_trace_put(trace);
}

void tl_lake_queue(struct tl_lake *lake, struct tl_trace *trace, int64_t delay_ns)
{
    pthread_mutex_lock(&lake->lock);
    const int64_t when = delay_ns > 0 ? tl_monotonic_ns() + delay_ns : 0;
    if (trace->job == TL_JOB_NONE || trace->job == TL_JOB_RUNS) {
        trace->not_before_ns = when;
        enqueue_locked(lake, trace);
    } else if (note_live_locked(lake, trace) && trace->job == TL_JOB_QUEUED) { /* another place */
        remove_locked(lake, trace);
        enqueue_locked(lake, trace);
    }
    if (when < trace->not_before_ns) {
        trace->not_before_ns = when;
        pthread_cond_signal(&lake->work);
    }
    pthread_mutex_unlock(&lake->lock);
}

/* The place in the queue of the first job that is due; otherwise NULL, and `*wait` is the time
 * until one is (< 0: none). */
static struct tl_trace **find_due_locked(struct tl_lake *lake, int64_t *wait)
{
    const int64_t now = tl_monotonic_ns();
    *wait = -1;
    for (struct tl_trace **p = &lake->jobs; *p; p = &(*p)->next_job) {
        const int64_t left = (*p)->not_before_ns - now;
        if (left <= 0)
            return p;
        *wait = *wait < 0 || left < *wait ? left : *wait;
    }
    return NULL;
}

/* Take a due job off the queue, if there is a slot for it; else as above. */
static struct tl_trace *take_job_locked(struct tl_lake *lake, int64_t *wait)
{
    *wait = -1;
    struct tl_trace **const p = lake->busy < lake->slots ? find_due_locked(lake, wait) : NULL;
    if (!p)
        return NULL;
    struct tl_trace *const trace = *p;
    *p = trace->next_job;
    if (!*p)
        lake->last_job = p;
    trace->job = TL_JOB_RUNS;
    trace->has_slot = true;
    trace->begun_ns = tl_monotonic_ns();
    lake->busy++;
    tl_crew_enter(lake->crew);
    lake->given[trace->live]++;
    lake->resumed = false;
    return trace;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void remove_turn_locked(struct tl_lake *lake, const struct tl_turn *turn)
{
    struct tl_turn **p = &lake->turns;
    while (*p != turn)
        p = &(*p)->next;
    *p = turn->next;
    if (!*p)
        lake->last_turn = p;
}

/* Of the suspended jobs of live captures, or of the others, the one that has had least; of equal
 * ones the one that has waited longest. NULL: there is none. */
static struct tl_turn *least_served_locked(const struct tl_lake *lake, bool live)
{
    struct tl_turn *least = NULL;
    for (struct tl_turn *t = lake->turns; t; t = t->next)
        if (t->trace->live == live && (!least || t->trace->used_ns < least->trace->used_ns))
            least = t;
    return least;
}

/* Is the next slot one for the live ones, if there are any? */
static bool is_for_live_locked(const struct tl_lake *lake)
{
    return (lake->given[false] + lake->given[true]) % REST != 0;
}

static struct tl_turn *next_turn_locked(const struct tl_lake *lake)
{
    const bool live = is_for_live_locked(lake);
    struct tl_turn *const turn = least_served_locked(lake, live);
    return turn ? turn : least_served_locked(lake, !live);
}

/* Does the first of the new jobs, if any is due and somebody is there to run it, go before this
 * suspended one? */
static bool is_new_first_locked(const struct tl_lake *lake, struct tl_trace *const *due,
                                const struct tl_turn *turn)
{
    if (!due || lake->n_idle == 0)
        return false;
    if ((*due)->live != turn->trace->live)
        return (*due)->live == is_for_live_locked(lake);
    return lake->resumed || tl_monotonic_ns() - lake->turns->since_ns < PATIENCE_NS;
}

/* A slot may be free: give it to somebody. */
static void pass_on_locked(struct tl_lake *lake)
{
    int64_t wait;
    struct tl_turn *turn;
    while (lake->busy < lake->slots && (turn = next_turn_locked(lake))) {
        if (is_new_first_locked(lake, find_due_locked(lake, &wait), turn))
            break;
        remove_turn_locked(lake, turn);
        turn->granted = lake->resumed = true;
        lake->served_ns[turn->trace->live] = turn->trace->used_ns;
        lake->given[turn->trace->live]++;
        lake->busy++;
        pthread_cond_signal(&turn->cond);
    }
    if (lake->busy < lake->slots)
        pthread_cond_signal(&lake->work);
}

static int add_thread_locked(struct tl_lake *lake);

/* Does anybody wait for a slot? If these are only new jobs, there must be a thread for them. */
static bool is_wanted_locked(struct tl_lake *lake)
{
    int64_t wait;
    const bool due = find_due_locked(lake, &wait) != NULL;
    const bool served = due && (lake->n_idle > 0 || add_thread_locked(lake) == 0);
    return lake->turns || served;
}

/* Count the turn that ends now. One that comes later does not get what others have had before. */
static void count_turn_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    const bool changed = note_live_locked(lake, trace);
    const int64_t least = lake->served_ns[trace->live] - (trace->live ? AHEAD_NS : 0);
    if (!changed && trace->used_ns < least)
        trace->used_ns = least;
    trace->used_ns += tl_monotonic_ns() - trace->begun_ns;
}

/* Its slot is free. */
static void leave_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    trace->has_slot = false;
    lake->busy--;
    tl_crew_exit(lake->crew);
}

static void wait_for_turn_locked(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    struct tl_turn turn = {.trace = turns->trace, .since_ns = tl_monotonic_ns()};
    pthread_cond_init(&turn.cond, NULL);
    *lake->last_turn = &turn;
    lake->last_turn = &turn.next;
    pass_on_locked(lake);
    while (!turn.granted && !turns->unwanted(turns->context))
        (void)tl_cond_wait_until(&turn.cond, &lake->lock, tl_monotonic_ns() + LOOK_NS);
    if (!turn.granted) { /* it only unwinds, for which it needs no slot of its own */
        remove_turn_locked(lake, &turn);
        lake->busy++;
    }
    tl_crew_enter(lake->crew);
    pthread_cond_destroy(&turn.cond);
    turns->trace->has_slot = true;
    turns->trace->begun_ns = tl_monotonic_ns();
}

int tl_jobs_give_way(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    struct tl_trace *const trace = turns->trace;
    if (turns->unwanted(turns->context))
        return TL_CANCELLED;
    if (tl_monotonic_ns() - trace->begun_ns < TURN_NS)
        return TL_OK;
    turns->changes(turns->context, false);
    pthread_mutex_lock(&lake->lock);
    count_turn_locked(lake, trace);
    trace->begun_ns = tl_monotonic_ns();
    if (is_wanted_locked(lake)) {
        leave_locked(lake, trace);
        wait_for_turn_locked(lake, turns);
    }
    pthread_mutex_unlock(&lake->lock);
    turns->changes(turns->context, true);
    return turns->unwanted(turns->context) ? TL_CANCELLED : TL_OK;
}

void tl_jobs_leave(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_lock(&lake->lock);
    count_turn_locked(lake, trace);
    leave_locked(lake, trace);
    /* For jobs that come now; without it they wait for this one. */
    if (lake->busy + lake->n_idle < lake->slots)
        (void)add_thread_locked(lake);
    pass_on_locked(lake);
    pthread_mutex_unlock(&lake->lock);
}

void tl_jobs_return(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    pthread_mutex_lock(&lake->lock);
    wait_for_turn_locked(lake, turns);
    pthread_mutex_unlock(&lake->lock);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void wait_locked(struct tl_lake *lake, int64_t ns)
{
    lake->n_idle++;
    if (ns < 0)
        pthread_cond_wait(&lake->work, &lake->lock);
    else
        (void)tl_cond_wait_until(&lake->work, &lake->lock, tl_monotonic_ns() + ns);
    lake->n_idle--;
}

static void run_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_unlock(&lake->lock);
    const int64_t delay = lake->rooms->run_job(trace);
    pthread_mutex_lock(&lake->lock);
    if (trace->has_slot) {
        count_turn_locked(lake, trace);
        leave_locked(lake, trace);
    }
    const bool again = trace->job == TL_JOB_RUNS_AGAIN;
    trace->job = TL_JOB_NONE;
    if (again || delay >= 0) {
        if (!again)
            trace->not_before_ns = delay > 0 ? tl_monotonic_ns() + delay : 0;
        enqueue_locked(lake, trace);
    }
    /* Before a deleting thread continues: this is not the last reference, which that thread
     * frees. */
    tl_trace_put(trace);
    pthread_cond_broadcast(&lake->idle);
    pass_on_locked(lake);
}

static void *run_jobs(void *context)
{
    struct tl_lake *lake = context;
    pthread_mutex_lock(&lake->lock);
    while (!atomic_load(&lake->closing)) {
        int64_t wait;
        struct tl_trace *const trace = take_job_locked(lake, &wait);
        if (trace)
            run_locked(lake, trace);
        else if (lake->n_idle < 2 * lake->slots)
            wait_locked(lake, wait);
        else
            break; /* one of those that took the place of suspended ones */
    }
    lake->n_threads--;
    pthread_cond_broadcast(&lake->idle);
    pthread_mutex_unlock(&lake->lock);
    return NULL;
}

/* Returns an errno. */
static int add_thread_locked(struct tl_lake *lake)
{
    pthread_t thread;
    if (lake->n_threads >= MAX_THREADS)
        return EAGAIN;
    const int e = pthread_create(&thread, NULL, run_jobs, lake);
    if (e != 0)
        return e;
    pthread_detach(thread);
    lake->n_threads++;
    return 0;
}

int tl_jobs_start(struct tl_lake *lake, struct tl_fail *fail)
{
    int e = 0;
    pthread_mutex_lock(&lake->lock);
    lake->slots = lake->options.decode_threads ? lake->options.decode_threads : tl_processors();
    while (e == 0 && lake->n_threads < lake->slots)
        e = add_thread_locked(lake);
    pthread_mutex_unlock(&lake->lock);
    errno = e;
    return e ? tl_fail_set(fail, TL_IO, "cannot start a decode thread: %s", strerror(e)) : TL_OK;
}

void tl_jobs_stop(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    atomic_store(&lake->closing, true);
    for (struct tl_turn *turn = lake->turns; turn; turn = turn->next)
        pthread_cond_signal(&turn->cond);
    while (lake->n_threads > 0) {
        pthread_cond_broadcast(&lake->work);
        pthread_cond_wait(&lake->idle, &lake->lock);
    }
    pthread_mutex_unlock(&lake->lock);
}

/* ---- ends ---------------------------------------------------------------------------------- */

/*
 * Wait until no decode job of it is queued or running. Without this a job that ends last would free
 * the trace under the lock, which is released while waiting.
 */
void tl_jobs_end_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    remove_locked(lake, trace);
    while (trace->job >= TL_JOB_RUNS) {
        pthread_cond_wait(&lake->idle, &lake->lock);
        remove_locked(lake, trace); /* it may have queued itself again */
    }
}

void tl_lake_end_job(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_lock(&lake->lock);
    tl_jobs_end_locked(lake, trace);
    pthread_mutex_unlock(&lake->lock);
}
