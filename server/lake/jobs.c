/* SPDX-License-Identifier: MIT */
/*
 * A few raw bytes can take hours to decode, so a job is interrupted in the middle of whatever it
 * does: its thread sleeps within the decoder's sink until the next turn, and another thread runs
 * the next job. So there are as many threads as there are suspended jobs, and slots for those that
 * compute; and some that are idle, since a job that leaves its slot needs another thread there.
 *
 * A capture that is being pushed goes before others: somebody watches it, while one that is
 * complete waits in line. Live ones have more slots than there are processors: where other programs
 * compute, too, the system lets each thread wait for some of its slices, and what twenty rigs send
 * must not stand in line behind two such threads. The others have what slots per processor the live
 * ones leave, at least one, so that they go on, too.
 *
 * A slot is for computing: a job that stores what it has decoded leaves its slot to others until
 * the medium is done.
 *
 * Of equals the slot goes to the suspended job that has had one for the least time, since a turn
 * can last longer than it should. A live capture that had little lately is a bit ahead, so that
 * what came in the meantime is decoded at once.
 *
 * A new job goes before suspended ones: nearly all are short. Once a suspended one has waited for
 * long, they alternate. Each suspended job holds some megabytes: once there are many, all of them
 * have a turn before another one begins, so that what comes faster than it is decoded waits in the
 * queue, where it costs nothing. The same holds for those that wait for the medium: while they are
 * many, no other one begins that is not live.
 */
#include "lake/jobs.h"

#include "base/crew.h"
#include "base/processors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TURN_NS     INT64_C(10000000)
#define PATIENCE_NS INT64_C(100000000) /* a suspended job waits so long for newer ones */
#define LOOK_NS     INT64_C(200000000) /* between two looks whether it is wanted */
#define AHEAD_NS    INT64_C(50000000)  /* what a live one may have before others have their turn */
#define LIVE_SLOTS  3u                 /* for live captures, per slot for others */
#define MAX_THREADS 1024u

/* Suspended jobs are many if a new one would have to wait for too long, or if together they may
 * need too large a part of the memory for decoding; those that wait for the medium at twice that.
 */
#define MANY       8u
#define MANY_LEAST 2u
#define JOB_MEMORY ((uint64_t)64 << 20)

/* A suspended job, on its thread's stack. */
struct tl_turn {
    struct tl_turn *next;
    pthread_cond_t cond;
    struct tl_trace *trace;
    int64_t since_ns;
    bool granted; /* it has a slot, and has left the list */
};

/* ---- threads -------------------------------------------------------------------------------- */

static void *run_jobs(void *context);

/* Add a thread, which counts as one without a job from here on. Returns an errno. */
static int add_thread_locked(struct tl_lake *lake)
{
    pthread_t thread;
    if (lake->queue.n_threads >= MAX_THREADS)
        return EAGAIN;
    const int e = pthread_create(&thread, NULL, run_jobs, lake);
    if (e != 0)
        return e;
    pthread_detach(thread);
    lake->queue.n_threads++;
    lake->queue.n_idle++;
    return 0;
}

/* There may be a new job to run: have a thread look. Returns whether there is one: none before the
 * start. */
static bool call_thread_locked(struct tl_lake *lake)
{
    if (lake->queue.slots[true] == 0)
        return false;
    if (lake->queue.n_idle == 0 && add_thread_locked(lake) != 0)
        return false;
    pthread_cond_signal(&lake->queue.work);
    return true;
}

/* ---- new jobs ------------------------------------------------------------------------------- */

/* Is somebody tracing at this moment, here or, if it is followed, at another server? What is only
 * to be indexed behind the outline of it is not urgent. */
static bool is_live(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool outlined =
        trace->outline && atomic_load(&trace->outline->decoded) >= trace->raw_bytes;
    const bool live = !trace->complete && (trace->session || trace->edge.gen) && !outlined;
    pthread_mutex_unlock(&trace->lock);
    return live;
}

/* See whether it is live. If that has changed, what it has had does not count among the others
 * there. Returns whether it has. */
static bool note_live_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    const bool live = is_live(trace);
    if (live == trace->job.live)
        return false;
    trace->job.live = live;
    trace->job.used_ns = lake->queue.served_ns[live];
    return true;
}

static void enqueue_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    struct tl_job *const job = &trace->job;
    if (job->state >= TL_JOB_RUNS) {
        job->state = TL_JOB_RUNS_AGAIN; /* its thread looks when it is done */
        return;
    }
    job->state = TL_JOB_QUEUED;
    tl_job_queue_add(&lake->queue, tl_trace_get(trace));
}

/* Remove the trace's job from the queue. The caller holds the lake's lock and a reference. */
static void remove_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    trace->job.state = trace->job.state >= TL_JOB_RUNS ? TL_JOB_RUNS : TL_JOB_NONE;
    if (tl_job_queue_remove(&lake->queue, trace))
        tl_trace_put(trace);
}

/* How many jobs of live captures, or of others, may compute at the moment. */
static unsigned most_locked(const struct tl_lake *lake, bool live)
{
    const struct tl_job_queue *const queue = &lake->queue;
    if (live)
        return queue->slots[true];
    return queue->busy[true] + 1 < queue->slots[false] ? queue->slots[false] - queue->busy[true]
                                                       : 1;
}

static bool is_free_locked(const struct tl_lake *lake, bool live)
{
    return lake->queue.busy[live] < most_locked(lake, live);
}

static unsigned many(const struct tl_lake *lake)
{
    const uint64_t n = lake->decode_limit / JOB_MEMORY;
    return n > MANY ? MANY : n < MANY_LEAST ? MANY_LEAST : (unsigned)n;
}

/* Is there a new job of these that is due, and may it begin? */
static bool is_new_due_locked(struct tl_lake *lake, bool live)
{
    return (live || lake->queue.storing < 2 * many(lake)) && tl_job_queue_has(&lake->queue, live);
}

static void take_slot_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    trace->job.has_slot = true;
    trace->job.slot_is_live = trace->job.live;
    trace->job.begun_ns = tl_monotonic_ns();
    lake->queue.busy[trace->job.live]++;
    lake->queue.given[trace->job.live]++;
    tl_crew_enter(lake->crew);
}

/* Take a due job off the queue, if there is a slot for it. */
static struct tl_trace *take_job_locked(struct tl_lake *lake)
{
    struct tl_trace *trace = NULL;
    for (int live = true; !trace && live >= false; live--)
        if (is_free_locked(lake, live) && is_new_due_locked(lake, live))
            trace = tl_job_queue_take(&lake->queue, live);
    if (!trace)
        return NULL;
    trace->job.state = TL_JOB_RUNS;
    take_slot_locked(lake, trace);
    lake->queue.resumed[trace->job.live] = 0;
    lake->queue.n_idle--;
    if (lake->queue.n_waiting > 0)
        (void)call_thread_locked(lake);
    return trace;
}

/* ---- turns ---------------------------------------------------------------------------------- */

static void remove_turn_locked(struct tl_lake *lake, const struct tl_turn *turn)
{
    struct tl_turn **p = &lake->queue.turns;
    while (*p != turn)
        p = &(*p)->next;
    *p = turn->next;
    if (!*p)
        lake->queue.last_turn = p;
}

/* Of the suspended jobs of live captures, or of the others, the one that has had least; of equal
 * ones the one that has waited longest. NULL: there is none. */
static struct tl_turn *least_served_locked(const struct tl_lake *lake, bool live)
{
    struct tl_turn *least = NULL;
    for (struct tl_turn *t = lake->queue.turns; t; t = t->next)
        if (t->trace->job.live == live &&
            (!least || t->trace->job.used_ns < least->trace->job.used_ns))
            least = t;
    return least;
}

/* Is a new job of these due that goes before suspended ones? */
static bool is_new_first_locked(struct tl_lake *lake, bool live)
{
    int64_t longest = 0;
    unsigned n = 0;
    for (const struct tl_turn *t = lake->queue.turns; t; t = t->next)
        if (t->trace->job.live == live && n++ == 0)
            longest = tl_monotonic_ns() - t->since_ns;
    const bool is_next = n < many(lake) ? longest < PATIENCE_NS || lake->queue.resumed[live] > 0
                                        : lake->queue.resumed[live] >= n;
    return is_next && is_new_due_locked(lake, live);
}

/* Slots may be free: give them to somebody. */
static void pass_on_locked(struct tl_lake *lake)
{
    const bool called = lake->queue.n_waiting > 0 && call_thread_locked(lake);
    struct tl_turn *turn;
    for (int live = true; live >= false; live--) {
        while (is_free_locked(lake, live) && (turn = least_served_locked(lake, live)) &&
               !(called && is_new_first_locked(lake, live))) {
            remove_turn_locked(lake, turn);
            turn->granted = true;
            lake->queue.resumed[live]++;
            lake->queue.served_ns[live] = turn->trace->job.used_ns;
            take_slot_locked(lake, turn->trace);
            pthread_cond_signal(&turn->cond);
        }
    }
}

/* Must the job leave its slot: is that for other captures, are there too many, or does anybody wait
 * for it whom a thread can serve? */
static bool is_slot_wanted_locked(struct tl_lake *lake, const struct tl_job *job)
{
    const bool live = job->slot_is_live;
    return job->live != live || lake->queue.busy[live] > most_locked(lake, live) ||
           least_served_locked(lake, live) ||
           (is_new_due_locked(lake, live) && call_thread_locked(lake));
}

/* Count the turn that ends now. One that comes later does not get what others have had before. */
static void count_turn_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    const bool changed = note_live_locked(lake, trace);
    const int64_t least = lake->queue.served_ns[trace->job.live] - (trace->job.live ? AHEAD_NS : 0);
    if (!changed && trace->job.used_ns < least)
        trace->job.used_ns = least;
    trace->job.used_ns += tl_monotonic_ns() - trace->job.begun_ns;
}

/* Its slot is free. */
static void leave_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    trace->job.has_slot = false;
    lake->queue.busy[trace->job.slot_is_live]--;
    tl_crew_exit(lake->crew);
}

static void wait_for_turn_locked(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    struct tl_turn turn = {.trace = turns->trace, .since_ns = tl_monotonic_ns()};
    pthread_cond_init(&turn.cond, NULL);
    *lake->queue.last_turn = &turn;
    lake->queue.last_turn = &turn.next;
    pass_on_locked(lake);
    while (!turn.granted && !turns->unwanted(turns->context))
        (void)tl_cond_wait_until(&turn.cond, &lake->lock, tl_monotonic_ns() + LOOK_NS);
    if (!turn.granted) { /* it only unwinds, for which it needs no free slot */
        remove_turn_locked(lake, &turn);
        take_slot_locked(lake, turns->trace);
    }
    pthread_cond_destroy(&turn.cond);
}

int tl_jobs_give_way(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    struct tl_trace *const trace = turns->trace;
    if (turns->unwanted(turns->context))
        return TL_CANCELLED;
    if (tl_monotonic_ns() - trace->job.begun_ns < TURN_NS)
        return TL_OK;
    turns->changes(turns->context, false);
    pthread_mutex_lock(&lake->lock);
    count_turn_locked(lake, trace);
    trace->job.begun_ns = tl_monotonic_ns();
    if (is_slot_wanted_locked(lake, &trace->job)) {
        leave_locked(lake, trace);
        wait_for_turn_locked(lake, turns);
    }
    pthread_mutex_unlock(&lake->lock);
    turns->changes(turns->context, true);
    return turns->unwanted(turns->context) ? TL_CANCELLED : TL_OK;
}

void tl_jobs_leave(struct tl_lake *lake, struct tl_trace *trace, enum tl_job_pause pause)
{
    pthread_mutex_lock(&lake->lock);
    count_turn_locked(lake, trace);
    leave_locked(lake, trace);
    trace->job.stores = pause == TL_JOB_STORES && !trace->job.live;
    lake->queue.storing += trace->job.stores;
    pass_on_locked(lake);
    pthread_mutex_unlock(&lake->lock);
}

static void end_pause_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    lake->queue.storing -= trace->job.stores;
    trace->job.stores = false;
}

void tl_jobs_return(struct tl_lake *lake, const struct tl_turns_of *turns)
{
    pthread_mutex_lock(&lake->lock);
    end_pause_locked(lake, turns->trace);
    wait_for_turn_locked(lake, turns);
    pthread_mutex_unlock(&lake->lock);
}

void tl_lake_queue(struct tl_lake *lake, struct tl_trace *trace, int64_t delay_ns)
{
    pthread_mutex_lock(&lake->lock);
    const int64_t when = delay_ns > 0 ? tl_monotonic_ns() + delay_ns : 0;
    bool changed = note_live_locked(lake, trace); /* it has slots of another kind */
    if (trace->job.state == TL_JOB_QUEUED) {
        changed |= when < trace->job.not_before_ns;
        if (changed) { /* it has another place */
            remove_locked(lake, trace);
            if (when < trace->job.not_before_ns)
                trace->job.not_before_ns = when;
            enqueue_locked(lake, trace);
        }
    } else {
        if (trace->job.state != TL_JOB_RUNS_AGAIN || when < trace->job.not_before_ns)
            trace->job.not_before_ns = when;
        enqueue_locked(lake, trace);
        changed |= trace->job.state == TL_JOB_QUEUED;
    }
    if (changed)
        pass_on_locked(lake);
    pthread_mutex_unlock(&lake->lock);
}

/* ---- running -------------------------------------------------------------------------------- */

static void wait_locked(struct tl_lake *lake, int64_t ns)
{
    if (ns < 0)
        pthread_cond_wait(&lake->queue.work, &lake->lock);
    else
        (void)tl_cond_wait_until(&lake->queue.work, &lake->lock, tl_monotonic_ns() + ns);
}

static void run_locked(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_unlock(&lake->lock);
    const int64_t delay = lake->rooms->run_job(trace);
    pthread_mutex_lock(&lake->lock);
    if (trace->job.has_slot) {
        count_turn_locked(lake, trace);
        leave_locked(lake, trace);
    }
    end_pause_locked(lake, trace);
    const bool again = trace->job.state == TL_JOB_RUNS_AGAIN;
    trace->job.state = TL_JOB_NONE;
    if (again || delay >= 0) {
        if (!again)
            trace->job.not_before_ns = delay > 0 ? tl_monotonic_ns() + delay : 0;
        (void)note_live_locked(lake, trace);
        enqueue_locked(lake, trace);
    }
    /* Before a deleting thread continues: this is not the last reference, which that thread
     * frees. */
    tl_trace_put(trace);
    lake->queue.n_idle++;
    pthread_cond_broadcast(&lake->idle);
    pass_on_locked(lake);
}

static void *run_jobs(void *context)
{
    struct tl_lake *lake = context;
    pthread_mutex_lock(&lake->lock);
    while (!atomic_load(&lake->closing)) {
        struct tl_trace *const trace = take_job_locked(lake);
        if (trace)
            run_locked(lake, trace);
        else if (lake->queue.n_idle <= 2 * lake->queue.slots[true])
            wait_locked(lake, tl_job_queue_wait_ns(&lake->queue));
        else
            break; /* one of those that took the place of suspended ones */
    }
    lake->queue.n_idle--;
    lake->queue.n_threads--;
    pthread_cond_broadcast(&lake->idle);
    pthread_mutex_unlock(&lake->lock);
    return NULL;
}

int tl_jobs_start(struct tl_lake *lake, struct tl_fail *fail)
{
    int e = 0;
    pthread_mutex_lock(&lake->lock);
    lake->queue.slots[false] =
        lake->options.decode_threads ? lake->options.decode_threads : tl_processors();
    lake->queue.slots[true] = LIVE_SLOTS * lake->queue.slots[false];
    while (e == 0 && lake->queue.n_threads < lake->queue.slots[true])
        e = add_thread_locked(lake);
    pthread_mutex_unlock(&lake->lock);
    errno = e;
    return e ? tl_fail_set(fail, TL_IO, "cannot start a decode thread: %s", strerror(e)) : TL_OK;
}

void tl_jobs_stop(struct tl_lake *lake)
{
    pthread_mutex_lock(&lake->lock);
    atomic_store(&lake->closing, true);
    for (struct tl_turn *turn = lake->queue.turns; turn; turn = turn->next)
        pthread_cond_signal(&turn->cond);
    while (lake->queue.n_threads > 0) {
        pthread_cond_broadcast(&lake->queue.work);
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
    while (trace->job.state >= TL_JOB_RUNS) {
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
