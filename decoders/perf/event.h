/* SPDX-License-Identifier: MIT */
/*
 * Streams of the other events in perf.data, one entry each, in order of time:
 *
 *   event.switch   context switches per CPU
 *   event.task     start, end and renaming of threads; mapping of files
 *   event.NAME     samples of an event, such as a tracepoint
 *
 * Entries stay pending until nothing earlier can arrive, as in perf/sideband.h, which also provides
 * thread names. Not thread-safe.
 */
#ifndef TL_PERF_EVENT_H
#define TL_PERF_EVENT_H

#include "perf/record.h"
#include "perf/sample.h"

struct tl_perf_decode;

#define TL_PERF_EVENT "event." /* prefix of the streams' names */

struct tl_perf_entry;

struct tl_perf_events {
    struct tl_perf_entry *waiting; /* a heap: the earliest first */
    size_t n, cap;
    size_t text_bytes; /* of all of them */
    uint64_t number;   /* arrival order */
    /* Their streams by attribute: index + 1 in the container's list, 0: none yet, UINT32_MAX: it
     * has none, since there are too many. */
    uint32_t *streams;
    size_t n_streams, cap_streams;
    uint32_t n_named; /* number of streams */
};

void tl_perf_events_fini(struct tl_perf_events *events);
/* Bytes of memory in use. */
size_t tl_perf_events_bytes(const struct tl_perf_events *events);

/* Save or restore; call after the reader's attributes, and then, once the container's streams are
 * restored too, the other function. */
void tl_perf_events_state(struct tl_perf_decode *d, struct tl_state *state);
void tl_perf_events_check(const struct tl_perf_decode *d, struct tl_state *state);

/* Add a record with a time, or a sample. Returns TL_NOMEM. */
TL_MUST_USE int tl_perf_events_record(struct tl_perf_decode *d, const struct tl_perf_record *r);
TL_MUST_USE int tl_perf_events_sample(struct tl_perf_decode *d, const struct tl_perf_sample *s,
                                      uint64_t offset);
/* Deliver entries that are final. Returns TL_NOMEM, or what the sink returned. */
TL_MUST_USE int tl_perf_events_continue(struct tl_perf_decode *d);

/* Replace characters not allowed in a stream name by '_'; returns `name`. */
char *tl_perf_clean_name(char *name);
/* Build an event's stream name, from perf's name for it, or, if `name` is NULL, from its attribute;
 * returns `out`. */
char *tl_perf_event_stream(char *out, size_t size, const char *name,
                           const struct tl_perf_attr *attr);

#endif
