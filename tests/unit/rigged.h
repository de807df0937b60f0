/* SPDX-License-Identifier: MIT */
/*
 * Traces of random programs in all formats that have times, in a lake with shards of any length,
 * and what ran when in them by the flow text (timed_truth.h).
 */
#ifndef TL_TESTS_RIGGED_H
#define TL_TESTS_RIGGED_H

#include "nexus_world.h"
#include "query/timing.h"
#include "rig/rig.h"
#include "sim/small_elf.h"
#include "sim_capture.h"
#include "timed_truth.h"

#include <inttypes.h>

enum { SHARD = 20000, FUNCTIONS = 64, WALKED = 1 << 20 };

/* How a trace is made and stored. */
struct shape {
    uint64_t seed;
    uint64_t shard; /* positions */
    bool is_long;   /* more than is walked for a tile */
};

/* What ran when, or for how many positions: ascending. */
struct ran {
    uint64_t from, to;
    uint32_t function; /* symbol index + 1 */
    uint8_t kind;      /* enum tl_timed_kind */
};

struct rans {
    struct ran *p;
    size_t n, cap;
};

struct called {
    uint64_t from, to, begin, end; /* positions, ticks */
    uint64_t pc;
    uint32_t depth;
};

/* A trace of one format, and the truth about it. */
struct rigged {
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct tl_cut cut;
    struct tl_axis axis;
    struct timed_truth truth;
    struct rans times, positions;
    struct called *calls;
    size_t n_calls, cap_calls;
    size_t n_functions;
};

/* ---- the truth ------------------------------------------------------------------------------ */

static inline void add_ran(struct rans *r, uint64_t from, uint64_t to, uint32_t function,
                           uint8_t kind)
{
    struct ran *const last = r->n > 0 ? &r->p[r->n - 1] : NULL;
    if (from >= to)
        return;
    if (last && last->kind == kind && last->function == function && last->to == from) {
        last->to = to;
        return;
    }
    assert_int_equal(tl_grow(&r->p, &r->cap, r->n + 1, sizeof *r->p), TL_OK);
    r->p[r->n++] = (struct ran){from, to, function, kind};
}

/* What is missing at position `x`; `*next` is the first gap that may be there, `*kind` the last. */
static inline void add_missing(struct rigged *r, uint64_t x, size_t *next, uint8_t *kind)
{
    const struct timed_truth *const t = &r->truth;
    uint64_t time = t->end[x];
    for (; *next < t->n_gaps && t->gap_at[*next] <= x; ++*next) {
        add_ran(&r->times, time, t->gap_from[*next], 0, *kind);
        *kind = t->gap_kind[*next];
        add_ran(&r->times, t->gap_from[*next], t->gap_to[*next], 0, *kind);
        time = t->gap_to[*next];
    }
    add_ran(&r->times, time, t->begin[x], 0, *kind);
}

static inline void make_rans(struct rigged *r)
{
    const struct timed_truth *const t = &r->truth;
    uint8_t kind = TL_TIMED_LOST;
    size_t next = 0;
    add_ran(&r->times, t->first, t->end[0], 0, TL_TIMED_LOST);
    for (uint64_t x = 0; x <= t->n; x++) {
        add_missing(r, x, &next, &kind);
        if (x == t->n)
            break;
        const uint32_t function = t->function[x] == TL_NO_FUNCTION ? 0 : t->function[x] + 1;
        add_ran(&r->times, t->begin[x], t->end[x + 1], function, TL_TIMED_RUN);
        add_ran(&r->positions, x, x + 1, function, TL_TIMED_RUN);
    }
}

static inline int note_call(void *context, const struct tl_timing_call *call)
{
    struct rigged *const r = context;
    assert_int_equal(tl_grow(&r->calls, &r->cap_calls, r->n_calls + 1, sizeof *r->calls), TL_OK);
    r->calls[r->n_calls++] = (struct called){.from = call->frame.insn,
                                             .to = call->end,
                                             .begin = call->from.time,
                                             .end = call->to.time,
                                             .pc = call->frame.pc,
                                             .depth = call->depth};
    return TL_OK;
}

/* ---- captures ------------------------------------------------------------------------------- */

static inline void open_rigged(struct rigged *r, const struct capture *c, const char *stream)
{
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = stream, .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    const struct tl_timing_sinks sinks = {.end = note_call, .context = r};
    push_sealed(r->lake, "t", c, 10000);
    fetch(r->lake, &request, &text);
    assert_int_equal(tl_cut_open(&r->cut, r->lake, "t", stream, &fail), TL_OK);
    const struct tl_image *const image = tl_gen_image(r->cut.gen);
    r->axis = tl_lane_axis(r->cut.lane);
    r->truth.protocol = (enum tl_protocol)r->cut.lane->protocol;
    timed_truth_read(&r->truth, &text, image);
    assert_int_equal(r->truth.n, r->cut.end);
    assert_true(r->truth.last > r->truth.first && r->cut.n_rows > 2);
    tl_image_symbols(image, &r->n_functions);
    make_rans(r);
    assert_int_equal(tl_timing_walk(&r->cut, 0, UINT64_MAX, &sinks, &fail), TL_OK);
    tl_buf_fini(&text);
}

static inline void close_rigged(struct rigged *r)
{
    free(r->times.p);
    free(r->positions.p);
    free(r->calls);
    timed_truth_fini(&r->truth);
    tl_cut_close(&r->cut);
    close_memory_lake(r->backend, r->lake);
}

static inline void write_setup(struct rigged *r, struct tl_setup *setup, struct capture *c)
{
    char hash[72];
    if (c->elf.n > 0) {
        sim_put_image(r->lake, &c->elf, hash);
        assert_true(tl_setup_add_image(setup, hash, NULL) >= 0);
    }
    assert_int_equal(tl_setup_write(setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
}

static inline void open_kind(struct rigged *r, const struct rig_kind *kind, const char *stream,
                             size_t size, const struct shape *shape, const struct tl_buf *elf)
{
    struct rig *rig;
    struct tl_setup setup;
    struct capture c = {0};
    *r = (struct rigged){0};
    r->lake = open_memory_lake(&r->backend, shape->shard, 2);
    tl_setup_init(&setup);
    assert_int_equal(kind->start(&rig, shape->seed, false), TL_OK);
    assert_int_equal(kind->describe(rig, &setup, &c.elf), TL_OK);
    if (elf)
        assert_int_equal(tl_buf_add(&c.elf, elf->p, elf->n), TL_OK);
    write_setup(r, &setup, &c);
    while (c.bytes.n < size)
        assert_int_equal(kind->more(rig, size - c.bytes.n, &c.bytes), TL_OK);
    kind->stop(rig);
    tl_setup_fini(&setup);
    open_rigged(r, &c, stream);
    capture_free(&c);
}

static inline void open_etm(struct rigged *r, const struct shape *shape)
{
    const struct sim_options options = {.seed = shape->seed,
                                        .insns = shape->is_long ? 1150000 : 200000,
                                        .cores = 1,
                                        .image = true,
                                        .events = true,
                                        .cycles = shape->seed % 2};
    struct capture c;
    *r = (struct rigged){0};
    r->lake = open_memory_lake(&r->backend, shape->shard, 2);
    sim_capture(r->lake, &options, &c);
    open_rigged(r, &c, "cs.10");
    capture_free(&c);
}

/* A program with functions that begin at these offsets. */
static inline void make_elf(struct tl_buf *out, uint64_t base, struct tl_bytes code,
                            const uint64_t *begins, size_t n)
{
    struct tl_sim_elf_symbol symbols[FUNCTIONS];
    char names[FUNCTIONS][16];
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "f%zu", i);
        symbols[i] =
            (struct tl_sim_elf_symbol){.name = names[i],
                                       .address = base + begins[i],
                                       .size = (i + 1 < n ? begins[i + 1] : code.n) - begins[i]};
    }
    const struct tl_sim_elf elf = {.machine = EM_RISCV,
                                   .wide = true,
                                   .address = base,
                                   .code = code,
                                   .symbols = symbols,
                                   .n_symbols = n};
    assert_int_equal(tl_sim_elf_make(&elf, out), TL_OK);
}

static inline void open_di(struct rigged *r, const struct shape *shape)
{
    static const uint8_t code[40 * 0x400];
    struct tl_buf elf = {0};
    uint64_t begins[40];
    for (size_t i = 0; i < 40; i++)
        begins[i] = i * 0x400;
    make_elf(&elf, 0x80001000, (struct tl_bytes){code, sizeof code}, begins, 40);
    open_kind(r, &rig_di, "di.0.1", shape->is_long ? 37500000 : 300000, shape, &elf);
    tl_buf_fini(&elf);
}

/* Functions of a program, at places that nothing falls through: a block that does is of the
 * function in which it begins. */
static inline size_t find_begins(const struct tl_sim_riscv_run *run,
                                 uint64_t begins[static FUNCTIONS])
{
    const uint32_t ends = 1u << TL_SIM_RV_JUMP | 1u << TL_SIM_RV_INDIRECT | 1u << TL_SIM_RV_SWAP |
                          1u << TL_SIM_RV_RETURN | 1u << TL_SIM_RV_MRET;
    size_t n = 1;
    begins[0] = 0;
    for (uint32_t i = 1; i < run->n_insns && n < FUNCTIONS; i++) {
        const struct tl_sim_riscv_insn *const before = &run->insns[i - 1];
        if (ends >> before->kind & 1 && !before->link)
            begins[n++] = run->insns[i].pc - run->insns[0].pc;
    }
    return n;
}

static inline void open_nexus(struct rigged *r, const struct shape *shape)
{
    const uint64_t seed = shape->seed;
    struct nexus_world w = {.options = {.seed = seed,
                                        .history = seed % 2,
                                        .stack = 8,
                                        .times = true,
                                        .gaps = true,
                                        .xlen = 64,
                                        .history_bits = 31,
                                        .icnt_max = 1 << 20,
                                        .sync_every = 100}};
    const struct tl_sim_riscv_options program = {.seed = seed * 7 + 1,
                                                 .xlen = 64,
                                                 .base = 0x80000000,
                                                 .events = shape->is_long ? 1250000 : 200000,
                                                 .trap_per_mille = 5,
                                                 .true_returns = true};
    uint64_t begins[FUNCTIONS];
    struct capture c = {0};
    *r = (struct rigged){0};
    r->lake = open_memory_lake(&r->backend, shape->shard, 2);
    assert_int_equal(tl_sim_riscv_run(&w.run, &program), TL_OK);
    nexus_encode(&w, program.base);
    nexus_configure(&w, false, true);
    make_elf(&c.elf, program.base, (struct tl_bytes){w.run.code.p, w.run.code.n}, begins,
             find_begins(&w.run, begins));
    write_setup(r, &w.setup, &c);
    assert_int_equal(tl_buf_add(&c.bytes, w.trace.p, w.trace.n), TL_OK);
    open_rigged(r, &c, "nt.0");
    capture_free(&c);
    nexus_world_fini(&w);
}

static inline void open_pt(struct rigged *r, const struct shape *shape)
{
    open_kind(r, &rig_pt, "pt.0", shape->is_long ? 1000000 : 150000, shape, NULL);
}

#endif
