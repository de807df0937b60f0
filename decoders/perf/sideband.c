/* SPDX-License-Identifier: MIT */
/*
 * Records wait in a heap by time and become answers in that order, so that the result does not
 * depend on the order of CPUs in the file. Answers are arrays sorted by time, since questions
 * concern any time, not only the latest.
 */
#include "perf/sideband.h"

#include "base/search.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { RUN, THREAD, CHANGE };

#define MAX_BEFORE 256 /* maximum entries of a thread that are searched */

void tl_perf_sideband_fini(struct tl_perf_sideband *s)
{
    for (size_t i = 0; i < s->n_cpus; i++)
        free(s->cpus[i].v);
    free(s->cpus);
    for (size_t i = 0; i < s->n_left; i++)
        free(s->left[i].v);
    free(s->left);
    free(s->threads);
    free(s->changes.v);
    free(s->named.v);
    free(s->heap);
    tl_perf_map_fini(&s->by_cpu);
    tl_perf_map_fini(&s->by_tid);
    tl_perf_map_fini(&s->by_left);
    *s = (struct tl_perf_sideband){0};
}

/* ---- times ----------------------------------------------------------------------------------- */

static int add_time(struct tl_perf_times *times, uint64_t time)
{
    if (times->n > 0 && time <= times->v[times->n - 1])
        return TL_OK;
    if (tl_grow(&times->v, &times->cap, times->n + 1, sizeof *times->v) < 0)
        return TL_NOMEM;
    times->v[times->n++] = time;
    return TL_OK;
}

/* Number of times up to `time`. */
static size_t count_to(const struct tl_perf_times *times, uint64_t time)
{
    return tl_count_upto(times->v, sizeof *times->v, 0, times->n, time);
}

static uint64_t first_after(const struct tl_perf_times *times, uint64_t time)
{
    const size_t n = count_to(times, time);
    return n < times->n ? times->v[n] : UINT64_MAX;
}

/* ---- who runs -------------------------------------------------------------------------------- */

/* A processor's number, of a virtual machine or (0) the host. */
static uint64_t processor(int32_t machine, uint32_t cpu)
{
    return (uint64_t)(uint32_t)machine << 32 | cpu;
}

/* A thread's number, likewise. */
static uint64_t thread_of(int32_t machine, int32_t tid)
{
    return (uint64_t)(uint32_t)machine << 32 | (uint32_t)tid;
}

static int add_run(struct tl_perf_sideband *s, uint64_t cpu, struct tl_perf_run run)
{
    int64_t i = tl_perf_map_get(&s->by_cpu, cpu);
    if (i < 0) {
        if (tl_grow(&s->cpus, &s->cap_cpus, s->n_cpus + 1, sizeof *s->cpus) < 0 ||
            tl_perf_map_set(&s->by_cpu, cpu, s->n_cpus) < 0)
            return TL_NOMEM;
        i = (int64_t)s->n_cpus++;
        s->cpus[i] = (struct tl_perf_runs){0};
    }
    struct tl_perf_runs *const r = &s->cpus[i];
    if (r->n > 0 && run.time < r->v[r->n - 1].time)
        return TL_OK; /* without a time, after others that have one */
    if (r->n > 0 && run.time == r->v[r->n - 1].time) { /* that one never ran */
        r->v[r->n - 1] = run;
        return TL_OK;
    }
    if (tl_grow(&r->v, &r->cap, r->n + 1, sizeof *r->v) < 0)
        return TL_NOMEM;
    r->v[r->n++] = run;
    s->n_runs++;
    return TL_OK;
}

/* A CPU's runs; `*begun`: number that began at or before `time`. NULL: unknown CPU. */
static const struct tl_perf_runs *runs_of(const struct tl_perf_sideband *s, uint64_t cpu,
                                          uint64_t time, size_t *begun)
{
    const int64_t i = tl_perf_map_get(&s->by_cpu, cpu);
    const struct tl_perf_runs *const r = i < 0 ? NULL : &s->cpus[i];
    *begun = r ? tl_count_upto(TL_KEYS(r->v, time), r->n, time) : 0;
    return r;
}

static const struct tl_perf_run *run_at(const struct tl_perf_sideband *s, uint64_t cpu,
                                        uint64_t time)
{
    size_t begun;
    const struct tl_perf_runs *const r = runs_of(s, cpu, time, &begun);
    return begun > 0 ? &r->v[begun - 1] : NULL;
}

const struct tl_perf_run *tl_perf_sideband_run(const struct tl_perf_sideband *s, uint32_t cpu,
                                               uint64_t time)
{
    return run_at(s, cpu, time);
}

const struct tl_perf_run *tl_perf_sideband_guest(const struct tl_perf_sideband *s,
                                                 const struct tl_perf_vcpu *vcpu, uint64_t time)
{
    return run_at(s, processor(vcpu->machine, vcpu->number), time);
}

/* The thread of the host is switched out at `time`. */
static int add_left(struct tl_perf_sideband *s, int32_t tid, uint64_t time)
{
    int64_t i = tl_perf_map_get(&s->by_left, (uint32_t)tid);
    if (i < 0) {
        if (tl_grow(&s->left, &s->cap_left, s->n_left + 1, sizeof *s->left) < 0 ||
            tl_perf_map_set(&s->by_left, (uint32_t)tid, s->n_left) < 0)
            return TL_NOMEM;
        i = (int64_t)s->n_left++;
        s->left[i] = (struct tl_perf_times){0};
    }
    const size_t before = s->left[i].n;
    const int rc = add_time(&s->left[i], time);
    s->n_leaves += s->left[i].n - before;
    return rc;
}

static uint64_t next_left(const struct tl_perf_sideband *s, int32_t tid, uint64_t time)
{
    const int64_t i = tid > 0 ? tl_perf_map_get(&s->by_left, (uint32_t)tid) : -1;
    return i < 0 ? UINT64_MAX : first_after(&s->left[i], time);
}

bool tl_perf_sideband_left(const struct tl_perf_sideband *s, int32_t tid, uint64_t since,
                           uint64_t time)
{
    return next_left(s, tid, since) <= time;
}

uint64_t tl_perf_sideband_next(const struct tl_perf_sideband *s, int32_t cpu, int32_t tid,
                               uint64_t time)
{
    const uint64_t change = first_after(&s->changes, time), name = first_after(&s->named, time);
    const uint64_t left = next_left(s, tid, time);
    uint64_t next = change < name ? change : name;
    next = left < next ? left : next;
    size_t begun;
    const struct tl_perf_runs *const r = cpu < 0 ? NULL : runs_of(s, (uint32_t)cpu, time, &begun);
    if (r && begun < r->n && r->v[begun].time < next)
        next = r->v[begun].time;
    return next;
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct tl_perf_thread *find_thread(const struct tl_perf_sideband *s, int32_t machine,
                                          int32_t tid, uint64_t time)
{
    int64_t i = tl_perf_map_get(&s->by_tid, thread_of(machine, tid));
    if (i < 0)
        return NULL;
    /* If `time` is before everything known, use the earliest entry. */
    for (unsigned n = 0; n < MAX_BEFORE && s->threads[i].time > time; n++) {
        if (s->threads[i].before < 0)
            break;
        i = s->threads[i].before;
    }
    return &s->threads[i];
}

const struct tl_perf_thread *tl_perf_sideband_thread(const struct tl_perf_sideband *s,
                                                     int32_t machine, int32_t tid, uint64_t time)
{
    return find_thread(s, machine, tid, time);
}

/* Without a name, keep the previous one, or use the parent's. */
static int add_thread(struct tl_perf_sideband *s, const struct tl_perf_waiting *w)
{
    const struct tl_perf_thread *const old = find_thread(s, w->machine, w->tid, w->time);
    const struct tl_perf_thread *const from =
        old && old->pid == w->pid ? old : find_thread(s, w->machine, w->parent, w->time);
    struct tl_perf_thread t = {.time = w->time, .pid = w->pid, .before = -1};
    memcpy(t.name, w->name[0] || !from ? w->name : from->name, sizeof t.name);
    if (old && old->pid == t.pid && strcmp(old->name, t.name) == 0)
        return TL_OK;
    if (s->n_threads >= INT32_MAX || add_time(&s->named, w->time) < 0 ||
        tl_grow(&s->threads, &s->cap_threads, s->n_threads + 1, sizeof *s->threads) < 0)
        return TL_NOMEM;
    const int64_t last = tl_perf_map_get(&s->by_tid, thread_of(w->machine, w->tid));
    const int32_t index = (int32_t)s->n_threads++;
    s->threads[index] = t;
    if (last >= 0 && t.time < s->threads[last].time) { /* earlier than all known entries */
        struct tl_perf_thread *const first = find_thread(s, w->machine, w->tid, 0);
        s->threads[index].before = first->before;
        first->before = index;
        return TL_OK;
    }
    s->threads[index].before = (int32_t)last;
    return tl_perf_map_set(&s->by_tid, thread_of(w->machine, w->tid), (size_t)index);
}

/* ---- memory ---------------------------------------------------------------------------------- */

uint64_t tl_perf_sideband_changed(const struct tl_perf_sideband *s, uint64_t time)
{
    const size_t n = count_to(&s->changes, time);
    return n > 0 ? s->changes.v[n - 1] : 0;
}

/*
 * ---- processing in order of time ----------------------------------------------------------------
 */

static int apply(struct tl_perf_sideband *s, const struct tl_perf_waiting *w)
{
    if (w->kind == CHANGE)
        return add_time(&s->changes, w->time);
    if (w->kind == THREAD)
        return add_thread(s, w);
    if (w->left > 0 && add_left(s, w->left, w->time) < 0)
        return TL_NOMEM;
    if (w->tid < 0)
        return TL_OK;
    struct tl_perf_run run = {w->time, w->pid, w->tid};
    const struct tl_perf_thread *const t = run.pid < 0
                                               ? find_thread(s, w->machine, run.tid, run.time)
                                               : NULL; /* the thread is exiting */
    run.pid = t ? t->pid : run.pid < 0 ? run.tid : run.pid;
    /* Which CPU the virtual one is on is known only by the host's records: look at all. */
    if (w->machine && add_time(&s->named, w->time) < 0)
        return TL_NOMEM;
    return add_run(s, processor(w->machine, w->cpu), run);
}

static bool is_before(const struct tl_perf_waiting *a, const struct tl_perf_waiting *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void drop_first(struct tl_perf_sideband *s)
{
    const struct tl_perf_waiting last = s->heap[--s->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->n_heap; i = child) {
        if (child + 1 < s->n_heap && is_before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!is_before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
}

static int apply_until(struct tl_perf_sideband *s, uint64_t time)
{
    int rc = TL_OK;
    s->final = time > s->final ? time : s->final;
    while (rc == TL_OK && s->n_heap > 0 && s->heap[0].time <= s->final) {
        rc = apply(s, &s->heap[0]);
        drop_first(s);
    }
    return rc;
}

/* Apply records because a limit is met, although earlier ones may still come: these are late then.
 */
static int guess_until(struct tl_perf_sideband *s, uint64_t time)
{
    const int rc = apply_until(s, time);
    s->guessed = s->final;
    return rc;
}

/* Treat the earliest records as final, until only `n` wait. */
static int apply_first(struct tl_perf_sideband *s, size_t n)
{
    int rc = TL_OK;
    while (rc == TL_OK && s->n_heap > n)
        rc = guess_until(s, s->heap[0].time);
    return rc;
}

uint64_t tl_perf_sideband_time(struct tl_perf_sideband *s, uint64_t time)
{
    if (time > s->final || s->final == UINT64_MAX)
        return time;
    s->late += time > 0 && time <= s->guessed;
    return s->final + 1;
}

static int wait_for(struct tl_perf_sideband *s, struct tl_perf_waiting w)
{
    if (w.time == 0) {
        s->timeless++;
        return apply(s, &w);
    }
    if (tl_grow(&s->heap, &s->cap_heap, s->n_heap + 1, sizeof *s->heap) < 0)
        return TL_NOMEM;
    w.time = tl_perf_sideband_time(s, w.time);
    w.number = s->number++;
    size_t i = s->n_heap++;
    for (; i > 0 && is_before(&w, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = w;
    return s->n_heap < TL_PERF_WAITING_MAX ? TL_OK : apply_first(s, TL_PERF_WAITING_MAX / 2);
}

int tl_perf_sideband_round(struct tl_perf_sideband *s)
{
    const int rc = apply_until(s, s->before_marker);
    if (s->before_marker >= s->guessed)
        s->guessed = 0;
    s->before_marker = s->latest;
    return rc;
}

int tl_perf_sideband_hurry(struct tl_perf_sideband *s)
{
    return guess_until(s, s->latest);
}

int tl_perf_sideband_advance(struct tl_perf_sideband *s, uint64_t time)
{
    return guess_until(s, time);
}

size_t tl_perf_sideband_bytes(const struct tl_perf_sideband *s)
{
    return s->n_runs * sizeof(struct tl_perf_run) + s->n_cpus * sizeof *s->cpus +
           s->n_leaves * sizeof *s->left->v + s->cap_left * sizeof *s->left +
           s->cap_threads * sizeof *s->threads +
           (s->changes.cap + s->named.cap) * sizeof *s->changes.v + s->cap_heap * sizeof *s->heap +
           tl_perf_map_memory(&s->by_cpu) + tl_perf_map_memory(&s->by_tid) +
           tl_perf_map_memory(&s->by_left);
}

int tl_perf_sideband_end(struct tl_perf_sideband *s)
{
    return apply_until(s, UINT64_MAX - 1);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Without CPU_WIDE only the threads recorded have records, and nobody says who runs between. */
static int add_switch(struct tl_perf_sideband *s, const struct tl_perf_record *r)
{
    const bool out = r->misc & TL_PERF_MISC_OUT;
    const bool is_of_host = out && r->has_time && r->has_tid && !r->machine;
    struct tl_perf_waiting w = {.kind = RUN,
                                .time = r->time,
                                .cpu = r->machine ? r->vcpu : r->cpu,
                                .machine = r->machine,
                                .pid = r->pid,
                                .tid = r->has_tid ? r->tid : -1,
                                .left = is_of_host && r->tid > 0 ? r->tid : 0};
    if (out && r->type == TL_PERF_SWITCH_CPU_WIDE) {
        w.pid = r->who.pid;
        w.tid = r->who.tid;
    } else if (out) {
        w.tid = -1;
    }
    if (!r->has_cpu && !r->machine)
        w.tid = -1;
    return w.tid >= 0 || w.left > 0 ? wait_for(s, w) : TL_OK;
}

static int report_thread(struct tl_perf_sideband *s, const struct tl_perf_record *r, int32_t pid,
                         int32_t tid, int32_t parent, const char *name)
{
    struct tl_perf_waiting w = {.kind = THREAD,
                                .time = r->time,
                                .machine = r->machine,
                                .pid = pid,
                                .tid = tid,
                                .parent = parent};
    snprintf(w.name, sizeof w.name, "%s", name);
    for (char *p = w.name; *p; p++) /* names become part of lines of text */
        *p = iscntrl((unsigned char)*p) ? '?' : *p;
    return tid < 0 ? TL_OK : wait_for(s, w);
}

int tl_perf_sideband_add(struct tl_perf_sideband *s, const struct tl_perf_record *r)
{
    const struct tl_perf_waiting change = {.kind = CHANGE, .time = r->time};
    int rc = TL_OK;
    if (r->has_time && r->time > s->latest && r->time < UINT64_MAX - 1)
        s->latest = r->time;
    switch (r->type) {
    case TL_PERF_SWITCH:
    case TL_PERF_SWITCH_CPU_WIDE:
        return add_switch(s, r);
    case TL_PERF_ITRACE_START: {
        const struct tl_perf_waiting w = {
            .kind = RUN, .time = r->time, .cpu = r->cpu, .pid = r->who.pid, .tid = r->who.tid};
        rc = report_thread(s, r, r->who.pid, r->who.tid, r->who.pid, "");
        return rc < 0 || !r->has_cpu || w.tid < 0 ? rc : wait_for(s, w);
    }
    case TL_PERF_COMM:
        rc = report_thread(s, r, r->comm.pid, r->comm.tid, r->comm.pid, r->comm.name);
        return rc < 0 || !(r->misc & TL_PERF_MISC_EXEC) ? rc : wait_for(s, change);
    case TL_PERF_FORK:
        rc = report_thread(s, r, r->task.pid, r->task.tid, r->task.ptid, "");
        return rc < 0 || r->task.pid == r->task.ppid ? rc : wait_for(s, change);
    case TL_PERF_MMAP:
    case TL_PERF_MMAP2:
        rc = report_thread(s, r, r->mapping.pid, r->mapping.tid, r->mapping.pid, "");
        return rc < 0 ? rc : wait_for(s, change);
    case TL_PERF_TEXT_POKE:
    case TL_PERF_KSYMBOL:
        return wait_for(s, change);
    default:
        return TL_OK;
    }
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

static void times_state(struct tl_perf_times *times, struct tl_state *s)
{
    tl_state_array(s, &times->v, &times->n, &times->cap, sizeof *times->v);
}

static void runs_state(struct tl_perf_sideband *b, struct tl_state *s)
{
    tl_state_count(s, &b->cpus, &b->n_cpus, &b->cap_cpus, sizeof *b->cpus, sizeof(uint64_t));
    if (tl_state_loads(s) && b->n_cpus > 0)
        memset(b->cpus, 0, b->n_cpus * sizeof *b->cpus);
    for (size_t i = 0; i < b->n_cpus; i++)
        tl_state_array(s, &b->cpus[i].v, &b->cpus[i].n, &b->cpus[i].cap, sizeof *b->cpus[i].v);
    for (size_t i = 0; tl_state_loads(s) && i < b->n_cpus; i++)
        b->n_runs += b->cpus[i].n;
    tl_perf_map_state(&b->by_cpu, s, b->n_cpus);
}

static void left_state(struct tl_perf_sideband *b, struct tl_state *s)
{
    tl_state_count(s, &b->left, &b->n_left, &b->cap_left, sizeof *b->left, sizeof(uint64_t));
    if (tl_state_loads(s) && b->n_left > 0)
        memset(b->left, 0, b->n_left * sizeof *b->left);
    for (size_t i = 0; i < b->n_left; i++)
        times_state(&b->left[i], s);
    for (size_t i = 0; tl_state_loads(s) && i < b->n_left; i++)
        b->n_leaves += b->left[i].n;
    tl_perf_map_state(&b->by_left, s, b->n_left);
}

static void threads_state(struct tl_perf_sideband *b, struct tl_state *s)
{
    tl_state_array(s, &b->threads, &b->n_threads, &b->cap_threads, sizeof *b->threads);
    tl_state_check(s, b->n_threads <= INT32_MAX);
    for (size_t i = 0; tl_state_loads(s) && i < b->n_threads; i++) {
        const struct tl_perf_thread *const t = &b->threads[i];
        tl_state_check(s, t->before >= -1 && t->before < (int64_t)b->n_threads &&
                              !t->name[TL_PERF_NAME - 1]);
    }
    tl_perf_map_state(&b->by_tid, s, b->n_threads);
}

static void waiting_state(struct tl_perf_waiting *w, struct tl_state *s)
{
    tl_state_u64(s, &w->time);
    tl_state_u64(s, &w->number);
    tl_state_u8(s, &w->kind, CHANGE);
    tl_state_u32(s, &w->cpu);
    tl_state_i32(s, &w->machine);
    tl_state_i32(s, &w->pid);
    tl_state_i32(s, &w->tid);
    tl_state_i32(s, &w->parent);
    tl_state_i32(s, &w->left);
    tl_state_bytes(s, w->name, sizeof w->name);
    tl_state_check(s, !w->name[TL_PERF_NAME - 1]);
}

void tl_perf_sideband_state(struct tl_perf_sideband *b, struct tl_state *s)
{
    enum { WAITING_MIN = 16 };
    runs_state(b, s);
    left_state(b, s);
    threads_state(b, s);
    times_state(&b->changes, s);
    times_state(&b->named, s);
    tl_state_u64(s, &b->timeless);
    tl_state_count(s, &b->heap, &b->n_heap, &b->cap_heap, sizeof *b->heap, WAITING_MIN);
    for (size_t i = 0; i < b->n_heap; i++)
        waiting_state(&b->heap[i], s);
    tl_state_u64(s, &b->number);
    tl_state_u64(s, &b->latest);
    tl_state_u64(s, &b->before_marker);
    tl_state_u64(s, &b->final);
    tl_state_u64(s, &b->guessed);
    tl_state_u64(s, &b->late);
}
