/* SPDX-License-Identifier: MIT */
/*
 * Who ran where and when, which thread belongs to which process and what it is called, and when
 * memory changed. Records of perf.data come CPU by CPU: each waits here until nothing earlier can
 * come any more (`final`), and only then takes part in the answers. Records without a time count
 * from the beginning. All times are ns of perf's clock. Not thread-safe.
 */
#ifndef TL_PERF_SIDEBAND_H
#define TL_PERF_SIDEBAND_H

#include "perf/map.h"
#include "perf/record.h"

#define TL_PERF_NAME 16 /* bytes of a thread's name, with its end */

/* From `time` on this thread runs on the CPU. */
struct tl_perf_run {
    uint64_t time;
    int32_t pid, tid;
};

/* What is known of a thread from `time` on. */
struct tl_perf_thread {
    uint64_t time;
    int32_t pid;
    int32_t before;          /* index of what was known of it earlier; -1: nothing was */
    char name[TL_PERF_NAME]; /* "": not told */
};

struct tl_perf_runs {
    struct tl_perf_run *v; /* by time */
    size_t n, cap;
};

/* Ascending. */
struct tl_perf_times {
    uint64_t *v;
    size_t n, cap;
};

/* A record that waits. */
struct tl_perf_waiting {
    uint64_t time, number; /* the order in which they came */
    uint8_t kind;
    uint32_t cpu;
    int32_t pid, tid, parent;
    char name[TL_PERF_NAME];
};

struct tl_perf_sideband {
    struct tl_perf_map by_cpu, by_tid; /* of `cpus`, and of the last entry of `threads` */
    struct tl_perf_runs *cpus;
    size_t n_cpus, cap_cpus;
    struct tl_perf_thread *threads;
    size_t n_threads, cap_threads;
    struct tl_perf_times changes; /* when memory changed */
    struct tl_perf_times named;   /* when something new was told of a thread */
    uint64_t timeless;            /* records without a time so far */
    struct tl_perf_waiting *heap; /* the earliest first */
    size_t n_heap, cap_heap;
    uint64_t number;
    uint64_t latest;        /* largest time so far, … */
    uint64_t before_marker; /* … in front of the last FINISHED_ROUND, … */
    uint64_t final;         /* … and up to which there will be nothing more */
};

void tl_perf_sideband_fini(struct tl_perf_sideband *s);

void tl_perf_sideband_state(struct tl_perf_sideband *s, struct tl_state *state);

/* Any record. TL_NOMEM. */
TL_MUST_USE int tl_perf_sideband_add(struct tl_perf_sideband *s,
                                     const struct tl_perf_record *record);
/* A FINISHED_ROUND record: what was there at the one before is final. */
TL_MUST_USE int tl_perf_sideband_round(struct tl_perf_sideband *s);
/* What is there is taken to be final. */
TL_MUST_USE int tl_perf_sideband_hurry(struct tl_perf_sideband *s);
/* There is nothing more. */
TL_MUST_USE int tl_perf_sideband_end(struct tl_perf_sideband *s);

/* The last run on this CPU that had begun by `time`; NULL: none is known. */
const struct tl_perf_run *tl_perf_sideband_run(const struct tl_perf_sideband *s, uint32_t cpu,
                                               uint64_t time);
/* The thread as it was at `time`; NULL: nothing is known of it. */
const struct tl_perf_thread *tl_perf_sideband_thread(const struct tl_perf_sideband *s, int32_t tid,
                                                     uint64_t time);
/* When this CPU (-1: none), memory or a thread next changes behind `time`; UINT64_MAX: not that is
 * known. */
uint64_t tl_perf_sideband_next(const struct tl_perf_sideband *s, int32_t cpu, uint64_t time);
/* The last time up to `time` at which memory changed; 0: there is none. */
uint64_t tl_perf_sideband_changed(const struct tl_perf_sideband *s, uint64_t time);

#endif
