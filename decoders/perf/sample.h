/* SPDX-License-Identifier: MIT */
/*
 * SAMPLE records of perf.data: occurrences of an event. The attribute determines which members are
 * present. Pure functions; thread-safe.
 *
 * Source: Linux perf_event_open(2), "PERF_RECORD_SAMPLE".
 */
#ifndef TL_PERF_SAMPLE_H
#define TL_PERF_SAMPLE_H

#include "perf/reader.h"

struct tl_perf_sample {
    size_t attr; /* index of its attribute in the file */
    bool has_ip, has_cpu, has_period, has_address;
    uint64_t ip, time, address, period; /* time 0: unknown */
    int32_t pid, tid;                   /* -1: unknown */
    uint32_t cpu;
    struct tl_bytes raw; /* data of the event itself, such as a tracepoint's fields; borrowed */
    struct tl_bytes aux; /* preceding trace, as in a snapshot; borrowed */
};

/* Returns TL_BAD: too short for its attribute; TL_NOTFOUND: unknown attribute. */
TL_MUST_USE int tl_perf_sample_read(struct tl_perf_sample *out, const struct tl_perf_raw *record,
                                    bool swap, const struct tl_perf_attrs *attrs);

/* Describe its trace like an AUXTRACE record: of its CPU, else of its thread. */
static inline struct tl_perf_area tl_perf_sample_area(const struct tl_perf_sample *s)
{
    const bool by_cpu = s->has_cpu && s->cpu <= INT32_MAX;
    return (struct tl_perf_area){
        .size = s->aux.n, .tid = by_cpu ? -1 : s->tid, .cpu = by_cpu ? (int32_t)s->cpu : -1};
}

/* The fields of sched:sched_switch. */
struct tl_perf_sched_switch {
    int32_t from, to;    /* threads */
    const char *to_name; /* borrowed, terminated within 16 bytes */
};

/* Are these the fields of that tracepoint, hit by thread `tid`? If so, parse them. */
bool tl_perf_sched_switch_read(struct tl_perf_sched_switch *out, struct tl_bytes raw, bool swap,
                               int32_t tid);

#endif
