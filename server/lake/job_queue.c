/* SPDX-License-Identifier: MIT */
/*
 * A line of jobs for each rig, and the rigs in turn: who sends one capture does not wait for the
 * thousand that a neighbour has sent before. Jobs that are not due yet wait elsewhere, so that
 * nobody looks through them; they move into their lines when somebody asks for one that is due.
 */
#include "lake/job_queue.h"

#include "base/hash.h"
#include "base/now.h"
#include "lake/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one line ------------------------------------------------------------------------------- */

/* Insert it behind `prev`; NULL: at the front. */
static void insert(struct tl_job_line *line, struct tl_trace *prev, struct tl_trace *trace)
{
    struct tl_trace *const next = prev ? prev->job.next : line->first;
    trace->job.line = line;
    trace->job.prev = prev;
    trace->job.next = next;
    *(prev ? &prev->job.next : &line->first) = trace;
    *(next ? &next->job.prev : &line->last) = trace;
}

static void take_out(struct tl_trace *trace)
{
    struct tl_job *const job = &trace->job;
    *(job->prev ? &job->prev->job.next : &job->line->first) = job->next;
    *(job->next ? &job->next->job.prev : &job->line->last) = job->prev;
    job->next = job->prev = NULL;
    job->line = NULL;
}

/* ---- lines of rigs -------------------------------------------------------------------------- */

static struct tl_job_line **bucket_of(struct tl_job_queue *queue, const char *rig)
{
    return &queue->by_rig[tl_fnv_text(rig) % TL_JOB_RIGS];
}

/* Its turn is behind that of the others. */
static void append_rig(struct tl_job_queue *queue, struct tl_job_line *line)
{
    line->prev = queue->last_rig;
    line->next = NULL;
    *(line->prev ? &line->prev->next : &queue->rigs) = line;
    queue->last_rig = line;
}

static void take_out_rig(struct tl_job_queue *queue, struct tl_job_line *line)
{
    *(line->prev ? &line->prev->next : &queue->rigs) = line->next;
    *(line->next ? &line->next->prev : &queue->last_rig) = line->prev;
}

static struct tl_job_line *line_of(struct tl_job_queue *queue, const char *rig)
{
    struct tl_job_line **const bucket = bucket_of(queue, rig), *line = *bucket;
    while (line && strcmp(line->rig, rig) != 0)
        line = line->same_hash;
    if (line)
        return line;
    line = calloc(1, sizeof *line);
    if (!line)
        return &queue->rest;
    snprintf(line->rig, sizeof line->rig, "%s", rig);
    line->same_hash = *bucket;
    *bucket = line;
    append_rig(queue, line);
    return line;
}

/* Nobody may be waiting in it any more. */
static void tidy(struct tl_job_queue *queue, struct tl_job_line *line)
{
    if (line->first || line == &queue->live || line == &queue->later || line == &queue->rest)
        return;
    struct tl_job_line **p = bucket_of(queue, line->rig);
    while (*p != line)
        p = &(*p)->same_hash;
    *p = line->same_hash;
    take_out_rig(queue, line);
    free(line);
}

/* ---- the queue ------------------------------------------------------------------------------ */

void tl_job_queue_init(struct tl_job_queue *queue)
{
    *queue = (struct tl_job_queue){0};
    pthread_cond_init(&queue->work, NULL);
    queue->last_turn = &queue->turns;
}

static void put_all(struct tl_job_queue *queue, struct tl_job_line *line)
{
    for (struct tl_trace *t; (t = line->first);) {
        take_out(t);
        tl_trace_put(t);
    }
    tidy(queue, line);
}

void tl_job_queue_fini(struct tl_job_queue *queue)
{
    put_all(queue, &queue->live);
    put_all(queue, &queue->later);
    put_all(queue, &queue->rest);
    while (queue->rigs)
        put_all(queue, queue->rigs);
    pthread_cond_destroy(&queue->work);
}

static void add_due(struct tl_job_queue *queue, struct tl_trace *trace)
{
    struct tl_job_line *const line = trace->job.live ? &queue->live : line_of(queue, trace->rig);
    insert(line, line->last, trace);
}

/* Delays are alike, so that this one is nearly the last. */
static void add_later(struct tl_job_queue *queue, struct tl_trace *trace)
{
    struct tl_trace *prev = queue->later.last;
    while (prev && prev->job.not_before_ns > trace->job.not_before_ns)
        prev = prev->job.prev;
    insert(&queue->later, prev, trace);
}

void tl_job_queue_add(struct tl_job_queue *queue, struct tl_trace *trace)
{
    queue->n_waiting++;
    if (trace->job.not_before_ns > tl_monotonic_ns())
        add_later(queue, trace);
    else
        add_due(queue, trace);
}

bool tl_job_queue_remove(struct tl_job_queue *queue, struct tl_trace *trace)
{
    struct tl_job_line *const line = trace->job.line;
    if (!line)
        return false;
    take_out(trace);
    tidy(queue, line);
    queue->n_waiting--;
    return true;
}

static void move_due(struct tl_job_queue *queue)
{
    const int64_t now = queue->later.first ? tl_monotonic_ns() : 0;
    for (struct tl_trace *t; (t = queue->later.first) && t->job.not_before_ns <= now;) {
        take_out(t);
        add_due(queue, t);
    }
}

bool tl_job_queue_has(struct tl_job_queue *queue, bool live)
{
    move_due(queue);
    return live ? queue->live.first != NULL : queue->rigs || queue->rest.first;
}

struct tl_trace *tl_job_queue_take(struct tl_job_queue *queue, bool live)
{
    if (!tl_job_queue_has(queue, live))
        return NULL;
    struct tl_job_line *const line = live ? &queue->live : queue->rigs ? queue->rigs : &queue->rest;
    struct tl_trace *const trace = line->first;
    if (line == queue->rigs) {
        take_out_rig(queue, line);
        append_rig(queue, line);
    }
    (void)tl_job_queue_remove(queue, trace);
    return trace;
}

int64_t tl_job_queue_wait_ns(const struct tl_job_queue *queue)
{
    const struct tl_trace *const first = queue->later.first;
    const int64_t left = first ? first->job.not_before_ns - tl_monotonic_ns() : -1;
    return first && left < 0 ? 0 : left;
}
