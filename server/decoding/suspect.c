/* SPDX-License-Identifier: MIT */
/*
 * The records are lines of fixed size, so that each is one small write, and a fatal signal's
 * handler only has to replace one character. The first line tells the boot of the machine: what
 * follows is valid within it, since nothing is synced.
 */
#include "decoding/suspect.h"

#include "base/now.h"
#include "decoding/decode_job.h"
#include "lake/jobs.h"
#include "lake/lakeint.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE    128u
#define RECORDS 256u               /* turns at a time, and suspects; more are not noted */
#define LOOK_NS INT64_C(200000000) /* between two looks whether one that waits is wanted */

enum state { IDLE = ' ', TURN = '+', CRASHED = '!' };

struct tl_suspect {
    char trace[64]; /* "": the record is free */
    uint64_t generation;
    unsigned ends; /* of the server, in its turn */
    char state;
    unsigned long ms; /* of computing before this turn, since it was begun or cleared */
    bool owned;       /* by a generation */
};

/* A suspect that waits, on its thread's stack. */
struct waiter {
    struct waiter *next;
};

struct tl_suspects {
    pthread_mutex_t lock; /* a leaf */
    pthread_cond_t cond;
    int fd;
    char boot[TL_BOOT_BYTES];
    bool taken;           /* a suspect has its turn */
    struct waiter *first; /* others that wait for the end of it */
    struct tl_suspect all[RECORDS];
};

/* ---- crashes -------------------------------------------------------------------------------- */

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

/* What the handler needs; < 0: nobody watches, or there is no file. */
static struct sigaction before[sizeof fatal / sizeof *fatal];
static atomic_bool watching;
static atomic_int watched = -1;
/* Where the record of this thread's turn is; 0, the first line: it has none. */
static _Thread_local volatile off_t own_line;

static void note_crash(int number)
{
    const char state = CRASHED;
    const int fd = atomic_load(&watched);
    if (fd >= 0 && pwrite(fd, &state, 1, own_line) < 0)
        atomic_store(&watched, -1); /* nothing can be done about it */
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        if (fatal[i] == number)
            (void)sigaction(number, &before[i], NULL);
    (void)raise(number);
}

void tl_lake_watch_crashes(void)
{
    struct sigaction action = {.sa_handler = note_crash};
    if (atomic_exchange(&watching, true))
        return;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        (void)sigaction(fatal[i], &action, &before[i]);
}

/* ---- the file ------------------------------------------------------------------------------- */

static void write_text(struct tl_suspects *s, size_t line, const char *text)
{
    char out[LINE];
    const size_t n = strlen(text);
    memset(out, ' ', sizeof out);
    memcpy(out, text, n < LINE - 1 ? n : LINE - 1);
    out[LINE - 1] = '\n';
    if (pwrite(s->fd, out, sizeof out, (off_t)(line * LINE)) < 0)
        return; /* an end is not noticed */
}

static size_t line_of(const struct tl_suspects *s, const struct tl_suspect *record)
{
    return 1 + (size_t)(record - s->all);
}

static void write_record(struct tl_suspects *s, const struct tl_suspect *record)
{
    char text[LINE] = "";
    if (record->trace[0])
        snprintf(text, sizeof text, "%c %u %lu %llu %s", record->state, record->ends, record->ms,
                 (unsigned long long)record->generation, record->trace);
    write_text(s, line_of(s, record), text);
}

/* Read the records of the last process. Returns whether it crashed in a thread that has none. */
static bool read_records(struct tl_suspects *s)
{
    char text[LINE + 1] = "", boot[TL_BOOT_BYTES] = "";
    if (pread(s->fd, text, LINE, 0) < (ssize_t)LINE || sscanf(text + 1, "%39s", boot) != 1 ||
        strcmp(boot, s->boot) != 0)
        return false;
    const bool crashed = text[0] == CRASHED;
    for (size_t i = 0; i < RECORDS && pread(s->fd, text, LINE, (off_t)((i + 1) * LINE)) == LINE;
         i++) {
        struct tl_suspect *const record = &s->all[i];
        unsigned long long generation;
        if (sscanf(text + 1, "%u %lu %llu %63s", &record->ends, &record->ms, &generation,
                   record->trace) == 4) {
            record->state = text[0];
            record->generation = generation;
        } else
            *record = (struct tl_suspect){0};
    }
    return crashed;
}

/* ---- whose fault it was --------------------------------------------------------------------- */

struct end {
    bool own;     /* it crashed in the turn of some trace: only that one may be it */
    bool crashed; /* in another thread */
    bool known;   /* one of those that may be it was suspect before */
};

static bool may_be(const struct end *end, const struct tl_suspect *record)
{
    const bool lasted = record->ms >= (unsigned long)(TL_SUSPECT_CPU_NS / 1000000);
    return record->state == CRASHED ||
           (record->state == TURN && !end->own && (end->crashed || lasted));
}

static void judge(struct tl_suspects *s, bool crashed)
{
    struct end end = {.crashed = crashed};
    for (size_t i = 0; i < RECORDS; i++)
        end.own = end.own || s->all[i].state == CRASHED;
    for (size_t i = 0; i < RECORDS; i++)
        end.known = end.known || (s->all[i].ends > 0 && may_be(&end, &s->all[i]));
    for (size_t i = 0; i < RECORDS; i++) {
        struct tl_suspect *const record = &s->all[i];
        record->ends += may_be(&end, record) && (!end.known || record->ends > 0);
    }
}

/* Keep the suspects only, with no turn. */
static void begin_records(struct tl_suspects *s)
{
    char head[LINE];
    snprintf(head, sizeof head, "%c %s", IDLE, s->boot);
    for (size_t i = 0; i < RECORDS; i++) {
        struct tl_suspect *const record = &s->all[i];
        if (record->ends == 0)
            record->trace[0] = '\0';
        record->state = IDLE;
        write_record(s, record);
    }
    write_text(s, 0, head);
}

void tl_suspects_open(struct tl_lake *lake)
{
    struct tl_backend *const backend = lake->backend;
    struct tl_suspects *const s =
        lake->shared || !backend->ops->turns ? NULL : calloc(1, sizeof *s);
    if (!s)
        return;
    s->fd = backend->ops->turns(backend, NULL);
    tl_lake_boot(s->boot);
    if (s->fd < 0 || !s->boot[0]) {
        if (s->fd >= 0)
            close(s->fd);
        free(s);
        return;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->cond, NULL);
    const bool crashed = read_records(s);
    judge(s, crashed);
    begin_records(s);
    lake->suspects = s;
    if (atomic_load(&watching))
        atomic_store(&watched, s->fd);
}

void tl_suspects_close(struct tl_lake *lake)
{
    struct tl_suspects *const s = lake->suspects;
    if (!s)
        return;
    lake->suspects = NULL;
    int fd = s->fd;
    (void)atomic_compare_exchange_strong(&watched, &fd, -1);
    close(s->fd);
    pthread_cond_destroy(&s->cond);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- of a generation ------------------------------------------------------------------------ */

static void free_record_locked(struct tl_suspects *s, struct tl_suspect *record)
{
    *record = (struct tl_suspect){.state = IDLE};
    write_record(s, record);
}

void tl_suspects_settle(struct tl_lake *lake)
{
    struct tl_suspects *const s = lake->suspects;
    for (size_t i = 0; s && i < RECORDS; i++)
        if (s->all[i].trace[0] && !s->all[i].owned)
            free_record_locked(s, &s->all[i]);
}

void tl_suspect_revive(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_suspects *const s = gen->lake->suspects;
    for (size_t i = 0; s && i < RECORDS && !job->suspect; i++) {
        struct tl_suspect *const record = &s->all[i];
        if (strcmp(record->trace, gen->trace) == 0 && record->generation == gen->number) {
            job->suspect = record;
            record->owned = true;
        }
    }
}

int tl_suspect_check(const struct tl_decode_job *job, struct tl_fail *fail)
{
    if (!job->suspect || job->suspect->ends < TL_SUSPECT_ENDS)
        return TL_OK;
    return tl_fail_set(fail, TL_LIMIT,
                       "the server ended %d times while this trace was being decoded: it is not "
                       "begun again by itself, but by 'tracelake redecode %.60s'",
                       TL_SUSPECT_ENDS, job->gen->trace);
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) < 0
               ? 0
               : t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The generation's own record, or a free one; NULL: all are in use. */
static struct tl_suspect *take_record_locked(struct tl_suspects *s, struct tl_decode_job *job)
{
    const struct tl_gen *const gen = job->gen;
    for (size_t i = 0; i < RECORDS && !job->suspect; i++)
        if (!s->all[i].trace[0])
            job->suspect = &s->all[i];
    struct tl_suspect *const record = job->suspect;
    if (!record)
        return NULL;
    snprintf(record->trace, sizeof record->trace, "%s", gen->trace);
    record->generation = gen->number;
    record->owned = true;
    return record;
}

/* Is no other suspect's turn, or before this one? Then it is this one's. */
static bool take_turn_locked(struct tl_suspects *s, const struct waiter *own)
{
    if (s->taken || s->first != own)
        return false;
    s->taken = true;
    return true;
}

/* Wait for the ends of others' turns, each of which may last as long as a medium takes. False: it
 * is unwanted. */
static bool wait_for_others_locked(struct tl_suspects *s, const struct tl_turns_of *turns)
{
    struct waiter own = {0}, **p = &s->first;
    bool has;
    while (*p)
        p = &(*p)->next;
    *p = &own;
    while (!(has = take_turn_locked(s, &own)) && !turns->unwanted(turns->context))
        (void)tl_cond_wait_until(&s->cond, &s->lock, tl_monotonic_ns() + LOOK_NS);
    for (p = &s->first; *p != &own;)
        p = &(*p)->next;
    *p = own.next;
    pthread_cond_broadcast(&s->cond); /* for the next one, if this one has given up */
    return has;
}

/* The slots are for others meanwhile. */
static void wait_for_others(struct tl_suspects *s, struct tl_decode_job *job)
{
    struct tl_lake *const lake = job->gen->lake;
    tl_jobs_leave(lake, job->turns.trace, TL_JOB_WAITS);
    pthread_mutex_lock(&s->lock);
    job->alone = wait_for_others_locked(s, &job->turns);
    pthread_mutex_unlock(&s->lock);
    tl_jobs_return(lake, &job->turns);
}

void tl_suspect_enter(struct tl_decode_job *job)
{
    struct tl_suspects *const s = job->gen->lake->suspects;
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    struct tl_suspect *const record = take_record_locked(s, job);
    const bool suspect = record && record->ends > 0;
    job->alone = suspect && take_turn_locked(s, NULL);
    pthread_mutex_unlock(&s->lock);
    if (suspect && !job->alone)
        wait_for_others(s, job);
    job->turn_cpu_ns = cpu_ns();
    if (!record)
        return;
    record->state = TURN;
    record->ms = (unsigned long)(job->cpu_ns / 1000000);
    write_record(s, record);
    own_line = (off_t)(line_of(s, record) * LINE);
}

/* If it is no suspect, others can have its record. */
static void end_turn(struct tl_suspects *s, struct tl_decode_job *job)
{
    struct tl_suspect *const record = job->suspect;
    own_line = 0;
    record->state = IDLE;
    if (record->ends > 0) {
        write_record(s, record);
        return;
    }
    job->suspect = NULL;
    pthread_mutex_lock(&s->lock);
    free_record_locked(s, record);
    pthread_mutex_unlock(&s->lock);
}

void tl_suspect_leave(struct tl_decode_job *job)
{
    struct tl_suspects *const s = job->gen->lake->suspects;
    if (!s)
        return;
    job->cpu_ns += cpu_ns() - job->turn_cpu_ns;
    if (job->suspect)
        end_turn(s, job);
    if (!job->alone)
        return;
    pthread_mutex_lock(&s->lock);
    s->taken = false;
    pthread_cond_broadcast(&s->cond);
    pthread_mutex_unlock(&s->lock);
}

void tl_suspect_clear(struct tl_decode_job *job)
{
    job->cpu_ns = 0;
    job->turn_cpu_ns = cpu_ns();
    if (job->suspect && job->suspect->ends > 0) {
        job->suspect->ends = 0;
        write_record(job->gen->lake->suspects, job->suspect);
    }
}

void tl_suspect_forget(struct tl_decode_job *job)
{
    struct tl_suspects *const s = job->gen->lake->suspects;
    if (!s || !job->suspect)
        return;
    pthread_mutex_lock(&s->lock);
    free_record_locked(s, job->suspect);
    pthread_mutex_unlock(&s->lock);
}
