/* SPDX-License-Identifier: MIT */
/*
 * A rig for rigged.h: two threads that take turns on a processor with Intel PT, in a perf.data
 * whose records tell the switches. The stream is that of one of them, which is switched out while
 * the other runs.
 */
#ifndef TL_TESTS_RIGGED_THREADS_H
#define TL_TESTS_RIGGED_THREADS_H

#include "perf_made.h"
#include "rigged.h"
#include "sim/program_rng.h"
#include "sim/pt_flow_encoder.h"

enum {
    THREADS_TID = 2,
    THREADS_TIME = 4,
    THREADS_CPU = 128,
    THREADS_SWITCH = 14,
    THREADS_SWITCHES = 200
};

/* The file up to its records: an attribute of the processor's trace, whose records have a trailer.
 */
static inline void threads_begin(struct tl_buf *b)
{
    enum { ATTR = 0x68, ATTR_SIZE = 0x88, DATA = 0x100, SAMPLE_ID_ALL = 1 << 18 };
    const uint64_t words[] = {0x68, ATTR_SIZE + 16, ATTR, ATTR_SIZE + 16, DATA, 0, 0, 0};
    const uint64_t config = 1 << 9 | 1 << 10 | TL_SIM_PT_MTC_FREQ << 14;
    assert_int_equal(tl_buf_add(b, "PERFILE2", 8), TL_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        perf_put(b, words[i], 8);
    perf_put_zeros(b, ATTR);
    perf_put(b, PERF_PMU, 4);
    perf_put(b, ATTR_SIZE, 4);
    perf_put(b, config, 8);
    perf_put(b, 0, 8);
    perf_put(b, THREADS_TID | THREADS_TIME | THREADS_CPU, 8);
    perf_put(b, 0, 8);
    perf_put(b, SAMPLE_ID_ALL, 8);
    perf_put_zeros(b, DATA);
}

static inline void threads_head(struct tl_buf *b, uint32_t type, size_t size)
{
    perf_put(b, type, 4);
    perf_put(b, 0, 2);
    perf_put(b, 8 + size, 2);
}

/* The clock's nanoseconds are ticks of the TSC. */
static inline void threads_info(struct tl_buf *b)
{
    const uint64_t words[] = {1,
                              PERF_PMU,
                              0,
                              1,
                              0,
                              1,
                              1 << 10,
                              1 << 11,
                              2,
                              0,
                              1,
                              1 << 9,
                              15 << 14,
                              TL_SIM_PT_TSC_RATIO,
                              TL_SIM_PT_CRYSTAL,
                              1 << 1,
                              TL_SIM_PT_NOM_FREQ};
    threads_head(b, 70, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        perf_put(b, words[i], 8);
}

/* From this time on the thread runs on processor 0. */
static inline void threads_switch(struct tl_buf *b, uint64_t time, uint32_t tid)
{
    threads_head(b, THREADS_SWITCH, 24);
    perf_put(b, 100, 4);
    perf_put(b, tid, 4);
    perf_put(b, time, 8);
    perf_put(b, 0, 8);
}

static inline void threads_trace(struct tl_buf *b, const struct tl_buf *trace)
{
    threads_head(b, 71, 40);
    perf_put(b, trace->n, 8);
    perf_put(b, 0, 8);
    perf_put(b, 0, 8);
    perf_put(b, 0, 4);
    perf_put(b, UINT32_MAX, 4);
    perf_put(b, 0, 8);
    assert_int_equal(tl_buf_add(b, trace->p, trace->n), TL_OK);
}

/* The capture of a processor becomes that of its threads, which take turns from `first` to `last`.
 */
static inline void threads_make(struct tl_buf *b, uint64_t seed, uint64_t first, uint64_t last)
{
    struct tl_sim_rng rng = {seed};
    struct tl_buf file = {0};
    uint8_t size[8];
    threads_begin(&file);
    const size_t data = file.n;
    threads_info(&file);
    threads_switch(&file, 1, 101);
    const uint64_t each = (last - first) / THREADS_SWITCHES;
    for (uint32_t i = 0; i < THREADS_SWITCHES; i++)
        threads_switch(&file, first + i * each + tl_sim_below(&rng, each), 101 + (i + 1) % 2);
    threads_trace(&file, b);
    tl_put_le64(size, file.n - data);
    memcpy(file.p + 48, size, sizeof size);
    tl_buf_fini(b);
    *b = file;
}

static inline void open_threads(struct rigged *r, const struct shape *shape)
{
    struct rig *rig;
    struct tl_setup setup;
    struct capture c = {0};
    open_pt(r, shape);
    const uint64_t first = r->truth.first, last = r->truth.last;
    close_rigged(r);
    *r = (struct rigged){0};
    r->lake = open_memory_lake(&r->backend, shape->shard, 2);
    assert_int_equal(rig_pt.start(&rig, shape->seed, false), TL_OK);
    tl_setup_init(&setup);
    assert_int_equal(rig_pt.describe(rig, &setup, &c.elf), TL_OK);
    tl_setup_fini(&setup);
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf,threads=yes", NULL), TL_OK);
    write_setup(r, &setup, &c);
    while (c.bytes.n < 150000)
        assert_int_equal(rig_pt.more(rig, 150000 - c.bytes.n, &c.bytes), TL_OK);
    rig_pt.stop(rig);
    tl_setup_fini(&setup);
    threads_make(&c.bytes, shape->seed, first, last);
    open_rigged(r, &c, "thread.101");
    capture_free(&c);
}

#endif
