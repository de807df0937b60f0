/* SPDX-License-Identifier: MIT */
/*
 * SAMPLE records of perf.data: an event of the file happened. Which members there are its
 * attribute says. Pure functions; thread-safe.
 *
 * Source: Linux perf_event_open(2), "PERF_RECORD_SAMPLE".
 */
#ifndef TL_PERF_SAMPLE_H
#define TL_PERF_SAMPLE_H

#include "perf/reader.h"

struct tl_perf_sample {
    size_t attr; /* index of its attribute in the file */
    bool has_ip, has_cpu, has_period, has_address;
    uint64_t ip, time, address, period; /* time 0: not told */
    int32_t pid, tid;                   /* -1: not told */
    uint32_t cpu;
    struct tl_bytes raw; /* what the event itself tells, as a tracepoint's fields; borrowed */
    struct tl_bytes aux; /* trace of just before, as of a snapshot; borrowed */
};

/* TL_BAD: it is too short for what its attribute says; TL_NOTFOUND: no attribute is known. */
TL_MUST_USE int tl_perf_sample_read(struct tl_perf_sample *out, const struct tl_perf_raw *record,
                                    bool swap, const struct tl_perf_attrs *attrs);

/* What its trace is, as an AUXTRACE record would say it: of its CPU, else of its thread. */
static inline struct tl_perf_area tl_perf_sample_area(const struct tl_perf_sample *s)
{
    const bool by_cpu = s->has_cpu && s->cpu <= INT32_MAX;
    return (struct tl_perf_area){
        .size = s->aux.n, .tid = by_cpu ? -1 : s->tid, .cpu = by_cpu ? (int32_t)s->cpu : -1};
}

/* The fields of sched:sched_switch. */
struct tl_perf_sched_switch {
    int32_t from, to;    /* threads */
    const char *to_name; /* borrowed, ends within 16 bytes */
};

/* Are these the fields of that tracepoint, by thread `tid`? */
bool tl_perf_sched_switch_read(struct tl_perf_sched_switch *out, struct tl_bytes raw, bool swap,
                               int32_t tid);

#endif
