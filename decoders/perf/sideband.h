/* SPDX-License-Identifier: MIT */
/*
 * Tracks which thread ran where and when, the process and name of each thread, and when memory
 * changed. Records of perf.data come CPU by CPU: each is kept here until nothing earlier can arrive
 * (`final`), and only then affects the answers. Records without a time apply from the beginning.
 * All times are ns of perf's clock. Not thread-safe.
 */
#ifndef TL_PERF_SIDEBAND_H
#define TL_PERF_SIDEBAND_H

#include "perf/map.h"
#include "perf/record.h"

#define TL_PERF_NAME 16 /* bytes of a thread's name, including NUL */
/* Records that wait for earlier ones, at most; the earliest of more than that are taken as final.
 */
#define TL_PERF_WAITING_MAX (1u << 20)

/* This thread runs on the CPU from `time` on. */
struct tl_perf_run {
    uint64_t time;
    int32_t pid, tid;
};

/* What is known about a thread from `time` on. */
struct tl_perf_thread {
    uint64_t time;
    int32_t pid;
    int32_t before;          /* index of the previous entry for the same thread; -1: none */
    char name[TL_PERF_NAME]; /* "": unknown */
};

struct tl_perf_runs {
    struct tl_perf_run *v; /* sorted by time */
    size_t n, cap;
};

/* Ascending. */
struct tl_perf_times {
    uint64_t *v;
    size_t n, cap;
};

/* A pending record. */
struct tl_perf_waiting {
    uint64_t time, number; /* time; arrival order */
    uint8_t kind;
    uint32_t cpu;    /* of a virtual machine: its own */
    int32_t machine; /* 0: the host */
    int32_t pid, tid, parent;
    int32_t left; /* thread of the host that is switched out then; 0: none */
    char name[TL_PERF_NAME];
};

struct tl_perf_sideband {
    struct tl_perf_map by_cpu, by_tid; /* index in `cpus`; index of the last entry in `threads` */
    struct tl_perf_map by_left;        /* index in `left`, by the host's threads */
    struct tl_perf_runs *cpus;
    size_t n_cpus, cap_cpus;
    size_t n_runs;              /* of all of them */
    struct tl_perf_times *left; /* when a thread was switched out */
    size_t n_left, cap_left;
    size_t n_leaves; /* times of all of them */
    struct tl_perf_thread *threads;
    size_t n_threads, cap_threads;
    struct tl_perf_times changes; /* when memory changed */
    struct tl_perf_times named;   /* when anything about a thread changed */
    uint64_t timeless;            /* records without a time so far */
    struct tl_perf_waiting *heap; /* earliest first */
    size_t n_heap, cap_heap;
    uint64_t number;
    uint64_t latest;        /* largest time so far */
    uint64_t before_marker; /* largest time before the last FINISHED_ROUND */
    uint64_t final;         /* no more records up to this time will arrive */
    uint64_t guessed;       /* as far as a limit, not a round, says so; 0: not at all */
    uint64_t late;          /* records that came up to that time, after it */
};

void tl_perf_sideband_fini(struct tl_perf_sideband *s);

void tl_perf_sideband_state(struct tl_perf_sideband *s, struct tl_state *state);

/* Add any record. Returns TL_NOMEM. */
TL_MUST_USE int tl_perf_sideband_add(struct tl_perf_sideband *s,
                                     const struct tl_perf_record *record);
/* Process a FINISHED_ROUND record: everything received before the previous one is final. */
TL_MUST_USE int tl_perf_sideband_round(struct tl_perf_sideband *s);
/* Treat everything received as final, since a limit is met: what comes for earlier times is late.
 */
TL_MUST_USE int tl_perf_sideband_hurry(struct tl_perf_sideband *s);
/* The same up to `time`. */
TL_MUST_USE int tl_perf_sideband_advance(struct tl_perf_sideband *s, uint64_t time);
/* Time from which a record counts: a late one from when it can still take effect. */
uint64_t tl_perf_sideband_time(struct tl_perf_sideband *s, uint64_t time);
/* Bytes of memory in use. */
size_t tl_perf_sideband_bytes(const struct tl_perf_sideband *s);
/* End of input. */
TL_MUST_USE int tl_perf_sideband_end(struct tl_perf_sideband *s);

/* The last run on this CPU that began at or before `time`; NULL: unknown. */
const struct tl_perf_run *tl_perf_sideband_run(const struct tl_perf_sideband *s, uint32_t cpu,
                                               uint64_t time);
/* The same for a virtual processor, with the machine's own numbers. */
const struct tl_perf_run *tl_perf_sideband_guest(const struct tl_perf_sideband *s,
                                                 const struct tl_perf_vcpu *vcpu, uint64_t time);
/* The thread's state at `time`, of a virtual machine or (0) the host; NULL: unknown. */
const struct tl_perf_thread *tl_perf_sideband_thread(const struct tl_perf_sideband *s,
                                                     int32_t machine, int32_t tid, uint64_t time);
/* Was this thread of the host switched out after `since`, and not after `time`? */
bool tl_perf_sideband_left(const struct tl_perf_sideband *s, int32_t tid, uint64_t since,
                           uint64_t time);
/* Time of the next change after `time`: of memory or of a thread, of this CPU (-1: none), or that
 * this thread (-1: none) is switched out; UINT64_MAX: none known. */
uint64_t tl_perf_sideband_next(const struct tl_perf_sideband *s, int32_t cpu, int32_t tid,
                               uint64_t time);
/* Time of the last memory change up to `time`; 0: none. */
uint64_t tl_perf_sideband_changed(const struct tl_perf_sideband *s, uint64_t time);

#endif
