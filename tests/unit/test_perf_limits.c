/* SPDX-License-Identifier: MIT */
/*
 * perf.data whose records would need work, or memory, out of proportion to the size of the file:
 * very many that wait for an earlier one, rounds without end, buffers and events without number.
 * Each is decoded with work that grows with the file; what is left out is named. None of them ended
 * in any reasonable time when records were sorted, or everything was searched, for each record.
 */
#include "base/buf.h"
#include "decode/decode.h"
#include "perf/container.h"
#include "perf/reader.h"
#include "setup/setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    SAMPLE_TYPE =
        TL_PERF_SAMPLE_TID | TL_PERF_SAMPLE_TIME | TL_PERF_SAMPLE_CPU | TL_PERF_SAMPLE_IDENTIFIER,
    ATTR = 136, /* bytes of an attribute, without its IDs */
    HEADER = 104
};

static void put(struct tl_buf *out, uint64_t value, size_t n)
{
    uint8_t bytes[8];
    tl_put_le64(bytes, value);
    assert_int_equal(tl_buf_add(out, bytes, n), TL_OK);
}

/* The head of a file with this many events, whose IDs are 1, 2, … */
static void put_head(struct tl_buf *out, unsigned events)
{
    const uint64_t attrs = HEADER, ids = attrs + (uint64_t)events * (ATTR + 16);
    const uint64_t data = ids + 8 * (uint64_t)events;
    put(out, TL_PERF_MAGIC, 8);
    put(out, HEADER, 8);
    put(out, ATTR + 16, 8);
    put(out, attrs, 8);
    put(out, (uint64_t)events * (ATTR + 16), 8);
    put(out, data, 8);
    put(out, 0, 8); /* the records extend to the end */
    while (out->n < HEADER)
        put(out, 0, 8);
    for (unsigned i = 0; i < events; i++) {
        const size_t at = out->n;
        put(out, 100, 4); /* a PMU's */
        put(out, ATTR, 4);
        put(out, i, 8); /* config */
        put(out, 0, 8);
        put(out, SAMPLE_TYPE, 8);
        put(out, 0, 8);
        put(out, UINT64_C(1) << TL_PERF_SAMPLE_ID_ALL, 8);
        while (out->n < at + ATTR)
            put(out, 0, 8);
        put(out, ids + 8 * (uint64_t)i, 8);
        put(out, 8, 8);
    }
    for (unsigned i = 0; i < events; i++)
        put(out, i + 1, 8);
}

static void put_record(struct tl_buf *out, uint32_t type, uint16_t misc, size_t body)
{
    put(out, type, 4);
    put(out, misc, 2);
    put(out, body + 8, 2);
}

/* Thread `tid` runs from `time` on. */
static void put_switch(struct tl_buf *out, uint32_t tid, uint64_t time, uint32_t cpu)
{
    put_record(out, TL_PERF_SWITCH, 0, 32);
    put(out, tid, 4);
    put(out, tid, 4);
    put(out, time, 8);
    put(out, cpu, 8);
    put(out, 1, 8);
}

struct said {
    uint64_t notes, streams, faults, time;
    bool back; /* time went back in a stream */
    char loss[160];
};

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    (void)stream;
    ((struct said *)context)->streams++;
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct said *const s = context;
    (void)stream;
    for (size_t i = 0; i < n; i++) {
        s->notes += items[i].kind == TL_ITEM_NOTE;
        if (items[i].kind == TL_ITEM_TIME) {
            s->back |= items[i].value < s->time;
            s->time = items[i].value;
        }
    }
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct said *const s = context;
    s->faults += loss->fault;
    if (strstr(loss->reason, "more than"))
        snprintf(s->loss, sizeof s->loss, "%s", loss->reason);
    return TL_OK;
}

/* With this limit of trace that waits for records; 0: as it is. */
static void decode_with(const struct tl_buf *file, uint64_t held_max, struct said *s)
{
    const struct tl_decode_sink sink = {
        .context = s, .stream = on_stream, .items = on_items, .loss = on_loss};
    struct tl_setup setup;
    struct tl_decode *d;
    *s = (struct said){0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf,threads=yes,events=yes", NULL), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, NULL), TL_OK);
    if (held_max)
        ((struct tl_perf_decode *)d)->held_max = held_max;
    for (size_t at = 0; at < file->n; at += 65536)
        assert_int_equal(
            tl_decode_push(d, file->p + at, file->n - at < 65536 ? file->n - at : 65536), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
}

static void decode(const struct tl_buf *file, struct said *s)
{
    decode_with(file, 0, s);
}

/* All of them wait, since no round ends: at one time, so that advancing time does not help. Those
 * that come too late for the limit are told. */
static void waiting_records(void **state)
{
    enum { N = 1200000 };
    (void)state;
    for (unsigned rising = 0; rising < 3; rising++) {
        struct tl_buf file = {0};
        struct said s;
        put_head(&file, 1);
        for (unsigned i = 0; i < N; i++)
            put_switch(&file, i % 3, rising == 2 ? N - i : rising ? i + 1 : 1, i % 2);
        decode(&file, &s);
        assert_int_equal(s.notes, N);
        assert_false(s.back);
        assert_string_equal(
            s.loss, rising == 1 ? ""
                                : "a record comes after more than 524288 later ones, or 256 "
                                  "MiB of trace: it, and others like it, count as later "
                                  "than they were");
        tl_buf_fini(&file);
    }
}

/* An AUXTRACE record of CPU `cpu`, with `bytes` of trace after it. */
static void put_area(struct tl_buf *out, uint32_t cpu, size_t bytes)
{
    put_record(out, TL_PERF_AUXTRACE, 0, 40);
    put(out, bytes, 8);
    put(out, 0, 8);
    put(out, 0, 8);
    put(out, cpu, 4);
    put(out, UINT32_MAX, 4);
    put(out, cpu, 8);
    for (size_t i = 0; i < bytes; i += 8)
        put(out, 0, 8);
}

/* Records that come behind more trace than waits for them: only those that are late are told. */
static void records_behind_trace(void **state)
{
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        struct tl_buf file = {0};
        struct said s;
        put_head(&file, 1);
        put_switch(&file, 1, 1000, 0);
        put_area(&file, 0, (size_t)3 << 20);
        put_switch(&file, 2, late ? 999 : 1001, 1);
        decode_with(&file, 1 << 20, &s);
        assert_int_equal(s.notes, 2);
        assert_string_equal(s.loss, late ? "a record comes after more than 524288 later ones, or 1 "
                                           "MiB of trace: it, and others like it, count as later "
                                           "than they were"
                                         : "");
        tl_buf_fini(&file);
    }
}

/* The records are about Intel PT, whose time is that of the records. */
static void put_info(struct tl_buf *out)
{
    enum { WORDS = 17 };
    static const uint8_t clock[] = {100, 0, 1, 0,
                                    1}; /* PMU, shift, factor, start; they are right */
    put_record(out, TL_PERF_AUXTRACE_INFO, 0, 8 + 8 * WORDS);
    put(out, 1, 8); /* Intel PT */
    for (unsigned i = 0; i < WORDS; i++)
        put(out, i < sizeof clock ? clock[i] : 0, 8);
}

/* Trace of CPU `cpu`, which executed something at `time`, behind `before` bytes of its own; then
 * `pads` bytes of nothing. */
static void put_trace(struct tl_buf *out, uint32_t cpu, uint8_t time, size_t before, size_t pads)
{
    /* PSB, TSC, MODE, PSBEND, TIP.PGE, TIP.PGD */
    uint8_t psb[40] = {2,    0x82, 2,    0x82, 2,    0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                       2,    0x82, 2,    0x82, 0x19, time, 0, 0,    0, 0,    0, 0,
                       0x99, 0x01, 0x02, 0x23, 0x71, 0,    0, 0x10, 0, 0,    0, 1};
    put_record(out, TL_PERF_AUXTRACE, 0, 40);
    put(out, sizeof psb + pads, 8);
    put(out, before, 8);
    put(out, 0, 8);
    put(out, cpu, 4);
    put(out, UINT32_MAX, 4);
    put(out, cpu, 8);
    assert_int_equal(tl_buf_add(out, psb, sizeof psb), TL_OK);
    for (; pads > 0; pads -= 8)
        put(out, 0, 8);
}

/* Intel PT of processors, each with a thread of its own. */
static void threads_with_trace(void **state)
{
    enum { THREADS = 520 };
    struct tl_buf file = {0};
    struct said s;
    (void)state;
    put_head(&file, 1);
    put_info(&file);
    for (unsigned i = 0; i < THREADS; i++) {
        put_switch(&file, i + 1, 1, i);
        put_trace(&file, i, 5, 0, 0);
    }
    decode(&file, &s);
    assert_int_equal(s.streams, 1 + THREADS + 512);
    assert_int_equal(s.faults, 1);
    assert_string_equal(s.loss, "there are more than 512 threads: others have no stream");
    tl_buf_fini(&file);
}

/* A thread moves from one CPU to another, whose trace comes behind more than waits for it; or soon
 * enough. */
static void trace_behind_trace(void **state)
{
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        struct tl_buf file = {0};
        struct said s;
        size_t n = 0;
        put_head(&file, 1);
        put_info(&file);
        for (unsigned i = 0; i < 4; i++)
            put_switch(&file, 7, 10 + 10 * i, i == 1);
        for (unsigned i = 0; i < 4; i++)
            if (i != 1)
                put_trace(&file, 0, (uint8_t)(15 + 10 * i), 40 * n++, 0);
        put_trace(&file, 0, 90, 40 * n, late ? (size_t)3 << 20 : 0);
        for (unsigned i = 0; i < 3; i++)
            put_record(&file, TL_PERF_FINISHED_ROUND, 0, 0);
        put_trace(&file, 1, 25, 0, 0);
        decode_with(&file, 4 << 20, &s);
        assert_string_equal(s.loss, late ? "trace of CPU 1 comes after more than 2 MiB of later "
                                           "trace: it stands too late in its threads' streams"
                                         : "");
        tl_buf_fini(&file);
    }
}

/* A large file may have more areas than a small one. */
static void areas_with_trace(void **state)
{
    enum { AREAS = 5000 };
    (void)state;
    for (unsigned small = 0; small < 2; small++) {
        struct tl_buf file = {0};
        struct said s;
        put_head(&file, 1);
        for (unsigned i = 0; i < AREAS; i++)
            put_area(&file, i, small ? 64 : 4096);
        decode(&file, &s);
        assert_int_equal(strstr(s.loss, "AUX areas in the first") != NULL, small);
        tl_buf_fini(&file);
    }
}

/* Buffers of more CPUs than there can be, and a round after each few bytes. */
static void rounds_and_areas(void **state)
{
    enum { AREAS = 5000, ROUNDS = 200000 };
    struct tl_buf file = {0};
    struct said s;
    (void)state;
    put_head(&file, 1);
    for (unsigned i = 0; i < AREAS; i++)
        put_area(&file, i, 8);
    for (unsigned i = 0; i < ROUNDS; i++) {
        put_switch(&file, 1, i + 1, 0);
        put_record(&file, TL_PERF_FINISHED_ROUND, 0, 0);
    }
    decode(&file, &s);
    assert_int_equal(s.notes, ROUNDS);
    assert_false(s.back);
    assert_string_equal(s.loss,
                        "there are more than 4152 AUX areas in the first 232824 bytes of the "
                        "file: the bytes of others are left out");
    tl_buf_fini(&file);
}

static void kinds_of_events(void **state)
{
    enum { KINDS = 20000, SAMPLES = 400000 };
    struct tl_buf file = {0};
    struct said s;
    (void)state;
    put_head(&file, KINDS);
    for (unsigned i = 0; i < SAMPLES; i++) {
        put_record(&file, TL_PERF_SAMPLE, 0, 32);
        put(&file, i % KINDS + 1, 8);
        put(&file, 7, 4);
        put(&file, 7, 4);
        put(&file, i + 1, 8);
        put(&file, 0, 8);
    }
    decode(&file, &s);
    assert_int_equal(s.streams, 512);
    assert_int_equal(s.notes, 512 * (SAMPLES / KINDS));
    assert_int_equal(s.faults, 1);
    assert_string_equal(s.loss, "there are more than 512 kinds of events: others have no stream");
    tl_buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waiting_records),    cmocka_unit_test(records_behind_trace),
        cmocka_unit_test(threads_with_trace), cmocka_unit_test(trace_behind_trace),
        cmocka_unit_test(rounds_and_areas),   cmocka_unit_test(areas_with_trace),
        cmocka_unit_test(kinds_of_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
