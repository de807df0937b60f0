/* SPDX-License-Identifier: MIT */
/*
 * Streams of what else perf.data tells, an entry each, in the order of time:
 *
 *   event.switch   which thread follows which on a CPU
 *   event.task     threads that begin, end, and take another name; files that are mapped
 *   event.NAME     samples of an event, as of a tracepoint
 *
 * Entries wait until nothing earlier can come any more, as in perf/sideband.h, which says what
 * threads are called. Not thread-safe.
 */
#ifndef TL_PERF_EVENT_H
#define TL_PERF_EVENT_H

#include "perf/record.h"
#include "perf/sample.h"

struct tl_perf_decode;

#define TL_PERF_EVENT "event." /* so begin the streams' names */

struct tl_perf_entry;

struct tl_perf_events {
    struct tl_perf_entry *waiting;
    size_t n, cap;
    uint64_t number; /* the order in which they came */
};

void tl_perf_events_fini(struct tl_perf_events *events);

/* Behind the reader's attributes. */
void tl_perf_events_state(struct tl_perf_decode *d, struct tl_state *state);

/* A record with a time, or a sample. TL_NOMEM. */
TL_MUST_USE int tl_perf_events_record(struct tl_perf_decode *d, const struct tl_perf_record *r);
TL_MUST_USE int tl_perf_events_sample(struct tl_perf_decode *d, const struct tl_perf_sample *s,
                                      uint64_t offset);
/* Deliver what is final by now. TL_NOMEM, or what the sink returned. */
TL_MUST_USE int tl_perf_events_go_on(struct tl_perf_decode *d);

/* Make '_' of what the name of a stream may not have; returns `name`. */
char *tl_perf_clean_name(char *name);
/* What the stream of an event is called, of its name as perf says it, or NULL of what its attribute
 * tells; returns `out`. */
char *tl_perf_event_stream(char *out, size_t size, const char *name,
                           const struct tl_perf_attr *attr);

#endif
