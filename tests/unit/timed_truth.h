/* SPDX-License-Identifier: MIT */
/*
 * The model of docs/time.md in plain, from a stream's flow text: the function and the times of each
 * position, one by one.
 */
#ifndef TL_TESTS_TIMED_TRUTH_H
#define TL_TESTS_TIMED_TRUTH_H

#include "base/buf.h"
#include "decode/point.h"
#include "shard/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

/* The stream by position: its function, and the moments before and after what ends there. */
struct timed_truth {
    enum tl_protocol protocol; /* set before reading */
    uint64_t n, cap;
    uint32_t *function;          /* of each position */
    uint64_t *end, *begin;       /* of positions 0 … n */
    uint64_t *pc;                /* of each position */
    uint64_t *cycles;            /* … as counted, 0 where that is not known */
    uint64_t counted;            /* the last count's position */
    bool uncounted;              /* trace is missing since then */
    uint64_t first, last;        /* knots */
    uint64_t *gap_from, *gap_to; /* of each gap */
    uint64_t *gap_at;
    uint8_t *gap_kind; /* enum tl_timed_kind */
    size_t n_gaps, cap_gaps;
    uint64_t exceptions;
};

struct timed_count {
    uint64_t position, cycles; /* in all since the knot */
};

struct timed_knot {
    bool any;
    uint64_t position, time;
    bool broken;
    bool on;         /* tracing goes on at the knot */
    uint8_t missing; /* enum tl_timed_kind, if it is broken */
    uint64_t broken_at;
    struct timed_count counts[100000];
    size_t n;
};

static inline void timed_grow(struct timed_truth *t)
{
    if (t->n + 2 < t->cap)
        return;
    t->cap = 2 * t->cap + 1024;
    t->function = realloc(t->function, t->cap * sizeof *t->function);
    t->end = realloc(t->end, t->cap * sizeof *t->end);
    t->begin = realloc(t->begin, t->cap * sizeof *t->begin);
    t->pc = realloc(t->pc, t->cap * sizeof *t->pc);
    t->cycles = realloc(t->cycles, t->cap * sizeof *t->cycles);
}

static inline uint64_t timed_part(uint64_t a, uint64_t b, uint64_t c)
{
    return (uint64_t)((unsigned __int128)a * b / c);
}

/* The time of position x between the knot and the next one at (to, time), without gaps. */
static inline uint64_t timed_spread(const struct timed_knot *k, uint64_t x, uint64_t to,
                                    uint64_t time)
{
    uint64_t before = k->position, at = k->time;
    const struct timed_count *const last = k->n > 0 ? &k->counts[k->n - 1] : NULL;
    const uint64_t span =
        last ? timed_part(last->position - k->position, time - k->time, to - k->position) : 0;
    for (size_t i = 0; i <= k->n; i++) {
        const bool end = i == k->n;
        const uint64_t next = end ? to : k->counts[i].position;
        const uint64_t then =
            end ? time : k->time + timed_part(k->counts[i].cycles, span, last->cycles);
        if (x < next)
            return at + timed_part(x - before, then - at, next - before);
        before = next;
        at = then;
    }
    return time;
}

static inline void timed_add_gap(struct timed_truth *t, const struct timed_knot *k, uint64_t time)
{
    if (t->n_gaps + 1 >= t->cap_gaps) {
        t->cap_gaps = 2 * t->cap_gaps + 64;
        t->gap_from = realloc(t->gap_from, t->cap_gaps * 8);
        t->gap_to = realloc(t->gap_to, t->cap_gaps * 8);
        t->gap_at = realloc(t->gap_at, t->cap_gaps * 8);
        t->gap_kind = realloc(t->gap_kind, t->cap_gaps);
    }
    t->gap_from[t->n_gaps] = k->time;
    t->gap_to[t->n_gaps] = time;
    t->gap_at[t->n_gaps] = k->broken_at;
    t->gap_kind[t->n_gaps++] = k->missing;
}

/* A timestamp: everything since the last one has its time. */
static inline void timed_set_times(struct timed_truth *t, const struct timed_knot *k, uint64_t to,
                                   uint64_t time)
{
    for (uint64_t x = k->position + 1; x <= to; x++) {
        const bool before = k->broken && x <= k->broken_at, after = k->broken && x > k->broken_at;
        t->end[x] = before ? k->time : after ? time : timed_spread(k, x, to, time);
        t->begin[x] = k->broken && x == k->broken_at ? time : t->end[x];
    }
    if (k->broken && k->broken_at == k->position)
        t->begin[k->position] = time;
    if (to == k->position && !k->broken) { /* the instruction before it waited */
        const bool lost = t->n_gaps > 0 && t->gap_at[t->n_gaps - 1] == to;
        t->begin[to] = time;
        if (!lost)
            t->end[to] = time;
    }
    if (k->broken)
        timed_add_gap(t, k, time);
}

static inline void timed_read_time(struct timed_truth *t, struct timed_knot *k, uint64_t time)
{
    if (k->any && time < k->time)
        time = k->time;
    if (k->on && !k->broken && t->n == k->position) { /* nothing has run: it was off until here */
        k->broken = true;
        k->broken_at = t->n;
        k->missing = TL_TIMED_OFF;
    }
    if (!k->any) {
        for (uint64_t x = 0; x <= t->n; x++)
            t->end[x] = t->begin[x] = time;
        t->first = time;
    } else {
        timed_set_times(t, k, t->n, time);
    }
    k->any = true;
    k->position = t->n;
    k->time = time;
    k->broken = k->on = false;
    k->n = 0;
    t->last = time;
}

/* Cycles since the last count are those of the positions since then. */
static inline void timed_read_cycles(struct timed_truth *t, uint64_t cycles)
{
    const uint64_t from = t->counted, n = t->n - from;
    for (uint64_t i = 0; i < n && !t->uncounted; i++)
        t->cycles[from + i] = timed_part(i + 1, cycles, n) - timed_part(i, cycles, n);
    if (n == 0 && t->n > 0 && !t->uncounted) /* the last instruction waited */
        t->cycles[t->n - 1] += cycles;
    t->counted = t->n;
    t->uncounted = false;
}

static inline void timed_read_line(struct timed_truth *t, struct timed_knot *k, const char *line)
{
    const char kind = *line;
    const bool missing =
        kind == 'G' || (kind == 'O' && tl_item_is_break(t->protocol, TL_ITEM_TRACE_ON));
    timed_grow(t);
    if (kind == 'I' || kind == 'N') {
        t->cycles[t->n] = 0;
        t->pc[t->n++] = strtoull(line + 2, NULL, 16);
    } else if (kind == 'T') {
        timed_read_time(t, k, strtoull(line + 2, NULL, 10));
    } else if (kind == 'Y' && !k->broken && t->n > k->position && k->any) {
        const uint64_t cycles = strtoull(line + 2, NULL, 10);
        const uint64_t before = k->n > 0 ? k->counts[k->n - 1].cycles : 0;
        if (cycles > 0 && (k->n == 0 || k->counts[k->n - 1].position < t->n))
            k->n++;
        if (cycles > 0)
            k->counts[k->n - 1] = (struct timed_count){t->n, before + cycles};
    } else if (missing) {
        const uint8_t why = kind == 'O' || !strncmp(line, "G off", 5) ? TL_TIMED_OFF
                            : !strncmp(line, "G switched-out", 14)    ? TL_TIMED_SWITCHED_OUT
                                                                      : TL_TIMED_LOST;
        if (!k->broken || why == TL_TIMED_LOST ||
            (why == TL_TIMED_SWITCHED_OUT && k->missing == TL_TIMED_OFF))
            k->missing = why;
        k->broken_at = k->broken ? k->broken_at : t->n;
        k->broken = true;
    }
    k->on |= kind == 'O' && t->n == k->position;
    t->exceptions += kind == 'X';
    t->uncounted |= missing;
    if (kind == 'Y')
        timed_read_cycles(t, strtoull(line + 2, NULL, 10));
}

/* Read a text, which is cut into lines, into a zeroed truth; `image` may be NULL. */
static inline void timed_truth_read(struct timed_truth *t, struct tl_buf *text,
                                    const struct tl_image *image)
{
    struct timed_knot *const k = calloc(1, sizeof *k);
    const struct tl_flow_now now = {0};
    assert_non_null(k);
    assert_int_equal(tl_buf_add(text, "", 1), TL_OK);
    for (char *p = strtok((char *)text->p, "\n"); p; p = strtok(NULL, "\n"))
        timed_read_line(t, k, p);
    for (uint64_t x = k->position + 1; x <= t->n; x++) /* after the last knot */
        t->end[x] = t->begin[x] = k->time;
    free(k);
    for (uint64_t x = 0; x < t->n; x++)
        t->function[x] = image ? tl_flow_now_function(&now, image, t->pc[x]) : TL_NO_FUNCTION;
}

/* Number of gaps that took any time. */
static inline size_t timed_truth_gaps(const struct timed_truth *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_gaps; i++)
        n += t->gap_to[i] > t->gap_from[i];
    return n;
}

static inline void timed_truth_fini(struct timed_truth *t)
{
    free(t->function);
    free(t->end);
    free(t->begin);
    free(t->pc);
    free(t->cycles);
    free(t->gap_from);
    free(t->gap_to);
    free(t->gap_at);
    free(t->gap_kind);
    *t = (struct timed_truth){0};
}

#endif
