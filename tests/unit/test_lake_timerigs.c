/* SPDX-License-Identifier: MIT */
/*
 * Tiles of every level and slices, on both axes, for the formats that have times: against what the
 * flow text of the same stream says of each position by the model of docs/time.md. Programs are
 * random, with idle times, interrupts, losses and switched-off spans.
 */
#include "nexus_world.h"
#include "query/timing.h"
#include "rig/rig.h"
#include "sim/small_elf.h"
#include "sim_capture.h"
#include "timed_truth.h"

#include <inttypes.h>

enum { SHARD = 20000, LEVELS = 18, TILES = 3 /* of a level */, FUNCTIONS = 64, WALKED = 1 << 20 };

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

static void add_ran(struct rans *r, uint64_t from, uint64_t to, uint32_t function, uint8_t kind)
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
static void add_missing(struct rigged *r, uint64_t x, size_t *next, uint8_t *kind)
{
    const struct timed_truth *const t = &r->truth;
    uint64_t time = t->end[x];
    for (; *next < t->n_gaps && t->gap_at[*next] <= x; ++*next) {
        add_ran(&r->times, time, t->gap_from[*next], 0, *kind);
        *kind = t->gap_off[*next] ? TL_TIMED_OFF : TL_TIMED_LOST;
        add_ran(&r->times, t->gap_from[*next], t->gap_to[*next], 0, *kind);
        time = t->gap_to[*next];
    }
    add_ran(&r->times, time, t->begin[x], 0, *kind);
}

static void make_rans(struct rigged *r)
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

static int note_call(void *context, const struct tl_timing_call *call)
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

static void open_rigged(struct rigged *r, const struct capture *c, const char *stream)
{
    struct tl_buf text = {0};
    struct tl_fail fail = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = stream, .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    const struct tl_timing_sinks sinks = {.end = note_call, .context = r};
    push_all(r->lake, "t", c, 10000);
    assert_int_equal(wait_done(r->lake, "t"), TL_TRACE_SEALED);
    fetch(r->lake, &request, &text);
    assert_int_equal(tl_cut_open(&r->cut, r->lake, "t", stream, &fail), TL_OK);
    const struct tl_image *const image = tl_gen_image(r->cut.gen);
    r->axis = tl_lane_axis(r->cut.lane);
    timed_truth_read(&r->truth, &text, image);
    assert_int_equal(r->truth.n, r->cut.end);
    assert_true(r->truth.last > r->truth.first && r->cut.n_rows > 2);
    tl_image_symbols(image, &r->n_functions);
    make_rans(r);
    if (r->truth.n <= WALKED)
        assert_int_equal(tl_timing_walk(&r->cut, 0, UINT64_MAX, &sinks, &fail), TL_OK);
    tl_buf_fini(&text);
}

static void close_rigged(struct rigged *r)
{
    free(r->times.p);
    free(r->positions.p);
    free(r->calls);
    timed_truth_fini(&r->truth);
    tl_cut_close(&r->cut);
    close_memory_lake(r->backend, r->lake);
}

static void write_setup(struct rigged *r, struct tl_setup *setup, struct capture *c)
{
    char hash[72];
    if (c->elf.n > 0) {
        sim_put_image(r->lake, &c->elf, hash);
        assert_true(tl_setup_add_image(setup, hash, NULL) >= 0);
    }
    assert_int_equal(tl_setup_write(setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
}

static void open_kind(struct rigged *r, const struct rig_kind *kind, const char *stream,
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

static void open_etm(struct rigged *r, const struct shape *shape)
{
    const struct sim_options options = {.seed = shape->seed,
                                        .insns = shape->is_long ? 1400000 : 200000,
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
static void make_elf(struct tl_buf *out, uint64_t base, struct tl_bytes code,
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

static void open_di(struct rigged *r, const struct shape *shape)
{
    static const uint8_t code[40 * 0x400];
    struct tl_buf elf = {0};
    uint64_t begins[40];
    for (size_t i = 0; i < 40; i++)
        begins[i] = i * 0x400;
    make_elf(&elf, 0x80001000, (struct tl_bytes){code, sizeof code}, begins, 40);
    open_kind(r, &rig_di, "di.0.1", shape->is_long ? 40000000 : 300000, shape, &elf);
    tl_buf_fini(&elf);
}

/* Functions of a program, at places that nothing falls through: a block that does is of the
 * function in which it begins. */
static size_t find_begins(const struct tl_sim_riscv_run *run, uint64_t begins[static FUNCTIONS])
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

static void open_nexus(struct rigged *r, const struct shape *shape)
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
                                                 .events = shape->is_long ? 1500000 : 200000,
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

static void open_pt(struct rigged *r, const struct shape *shape)
{
    open_kind(r, &rig_pt, "pt.0", shape->is_long ? 1500000 : 150000, shape, NULL);
}

/* ---- tiles ---------------------------------------------------------------------------------- */

struct sums {
    uint64_t kinds[3];
    uint64_t *functions;
    size_t n;
    uint32_t winner;
};

static size_t first_in(const struct rans *r, uint64_t from)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (r->p[middle].to <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What ran in [from, to). */
static void sum_up(struct sums *s, const struct rans *r, uint64_t from, uint64_t to)
{
    memset(s->functions, 0, s->n * sizeof *s->functions);
    memset(s->kinds, 0, sizeof s->kinds);
    s->winner = 0;
    for (size_t i = first_in(r, from); i < r->n && r->p[i].from < to; i++) {
        const struct ran *const x = &r->p[i];
        const uint64_t n = (x->to < to ? x->to : to) - (x->from > from ? x->from : from);
        s->kinds[x->kind] += n;
        if (x->kind != TL_TIMED_RUN)
            continue;
        s->functions[x->function] += n;
        if (s->functions[x->function] > s->functions[s->winner])
            s->winner = x->function;
    }
}

struct verdict {
    size_t buckets, wrong_winner, wrong_share, wrong_cover;
};

/* Within two points, of which the byte may have half a step. */
static bool is_near(uint8_t of_255, double part, double whole, double slack)
{
    const double shown = (of_255 + (of_255 > 0 && of_255 < 255 ? 0.5 : 0)) / 255 * 100,
                 is = whole > 0 ? 100 * part / whole : 0,
                 apart = shown > is ? shown - is : is - shown;
    return apart < 2 + slack;
}

/* `one`: what cannot be told apart, a tick or two of the axis. `unit`: of what is shown; where
 * instructions are, one ran. */
static void compare(const struct tl_tile_lane *lane, size_t i, double width, double one,
                    double unit, const struct sums *s, struct verdict *v)
{
    const double ran = (double)s->kinds[TL_TIMED_RUN], slack = 100 * (one + unit) / width;
    const double covered = ran < unit && lane->insns[i] > 0 ? unit : ran;
    v->wrong_cover += !is_near(lane->coverage[i], covered, width, slack) ||
                      !is_near(lane->lost[i], (double)s->kinds[TL_TIMED_LOST], width, slack);
    if (ran <= one)
        return;
    v->buckets++;
    const double has = (double)s->functions[lane->function[i]];
    v->wrong_winner += has + one < (double)s->functions[s->winner];
    v->wrong_share +=
        !is_near(lane->share[i], has, ran, 100 * one / ran) ||
        (lane->share2[i] > 0 && !is_near(lane->share2[i], (double)s->functions[lane->function2[i]],
                                         ran, 100 * one / ran));
}

/* The length of a tick as shown. */
static double tick_of(const struct rigged *r)
{
    const uint64_t many = 1000000;
    return (double)(tl_axis_shown(&r->axis, many) - tl_axis_shown(&r->axis, 0)) / (double)many;
}

/* A tile in time: a tick belongs to the bucket in which it begins. Longer ones than what is shown
 * may be divided. */
static void check_time_tile(struct rigged *r, const struct tl_tile *tile, struct sums *s,
                            struct verdict *v)
{
    const double tick = tick_of(r), width = (double)tile->bucket / tick;
    for (size_t i = 0; i < TL_TILE_BUCKETS; i++) {
        const uint64_t from = tl_axis_ticks(&r->axis, tile->first + i * tile->bucket),
                       to = tl_axis_ticks(&r->axis, tile->first + (i + 1) * tile->bucket);
        if (to <= from)
            continue;
        sum_up(s, &r->times, from, to);
        compare(tile->lanes[0], i, width, tick > 1 ? 2 : 0, 1 / tick, s, v);
    }
}

/* A tile in positions. */
static void check_insn_tile(struct rigged *r, const struct tl_tile *tile, struct sums *s,
                            struct verdict *v)
{
    for (size_t i = 0; i < TL_TILE_BUCKETS; i++) {
        const uint64_t from = tile->first + i * tile->bucket;
        sum_up(s, &r->positions, from, from + tile->bucket);
        s->functions[0] = 0; /* code without a symbol is told by its page */
        s->winner = 0;
        for (uint32_t f = 1; f < s->n; f++)
            s->winner = s->functions[f] > s->functions[s->winner] ? f : s->winner;
        compare(tile->lanes[0], i, (double)tile->bucket, 0, 0, s, v);
        assert_int_equal(tile->lanes[0]->insns[i], s->kinds[TL_TIMED_RUN]);
    }
}

static void check_level(struct rigged *r, enum tl_range_unit axis, unsigned level, struct sums *s)
{
    const bool time = axis == TL_UNIT_TIME;
    const uint64_t width = (UINT64_C(1) << 2 * level) * TL_TILE_BUCKETS;
    const uint64_t first = time ? tl_axis_shown(&r->axis, r->truth.first) / width : 0;
    const uint64_t last = (time ? tl_axis_shown(&r->axis, r->truth.last) : r->truth.n - 1) / width;
    const uint64_t step = (last - first) / TILES + 1;
    struct verdict v = {0};
    for (uint64_t index = first; index <= last; index += step) {
        struct tl_tile tile;
        struct tl_fail fail = {0};
        if (tl_lake_tile(r->lake, "t", axis, level, index, r->cut.lane->index, r->cut.lane->index,
                         1, &tile, &fail) < 0)
            fail_msg("%s", fail.text);
        (time ? check_time_tile : check_insn_tile)(r, &tile, s, &v);
        tl_tile_fini(&tile);
    }
    print_message("%s, level %u: %zu buckets, wrong: %zu winners, %zu shares, %zu covers\n",
                  time ? "time" : "insn", level, v.buckets, v.wrong_winner, v.wrong_share,
                  v.wrong_cover);
    assert_true(v.buckets > 0 || (time && 3 * tick_of(r) > (double)(UINT64_C(1) << 2 * level)));
    assert_int_equal(v.wrong_winner + v.wrong_share + v.wrong_cover, 0);
}

static void check_tiles(struct rigged *r)
{
    struct sums s = {.functions = calloc(r->n_functions + 1, sizeof *s.functions),
                     .n = r->n_functions + 1};
    assert_non_null(s.functions);
    for (unsigned level = r->n_calls > 0 ? 0 : TL_LEVEL_STORED; level < LEVELS; level++) {
        check_level(r, TL_UNIT_TIME, level, &s);
        check_level(r, TL_UNIT_INSN, level, &s);
    }
    free(s.functions);
}

/* ---- slices --------------------------------------------------------------------------------- */

static bool has_slice(const struct tl_slices *slices, const struct called *call, uint64_t begin)
{
    for (size_t i = 0; i < slices->n; i++) {
        const struct tl_stack_slice *const s = &slices->p[i];
        if (s->depth == call->depth && s->pc == call->pc && s->from <= begin + slices->resolution &&
            begin <= s->from + slices->resolution)
            return true;
    }
    return false;
}

/* Every call that is wider than the resolution is there; and that is less than two columns, or it
 * is said that there are more. */
static size_t check_slices(struct rigged *r, enum tl_range_unit axis, uint64_t from, uint64_t to,
                           uint32_t columns)
{
    const bool time = axis == TL_UNIT_TIME;
    const uint64_t least = time ? (uint64_t)tick_of(r) + 1 : 0;
    const struct tl_slices_request request = {.trace = "t",
                                              .stream = r->cut.lane->name,
                                              .axis = axis,
                                              .from = from,
                                              .to = to,
                                              .columns = columns};
    struct tl_slices slices;
    struct tl_fail fail = {0};
    size_t wide = 0;
    if (tl_lake_slices(r->lake, &request, &slices, &fail) < 0)
        fail_msg("%s", fail.text);
    for (size_t i = 0; i < r->n_calls; i++) {
        const struct called *const call = &r->calls[i];
        const uint64_t begin = time ? tl_axis_shown(&r->axis, call->begin) : call->from,
                       end = time ? tl_axis_shown(&r->axis, call->end) : call->to;
        const uint64_t a = begin > from ? begin : from, b = end < to ? end : to;
        if (a >= b || b - a <= slices.resolution + least)
            continue;
        wide++;
        if (!has_slice(&slices, call, begin))
            fail_msg("%s %" PRIu64 "..%" PRIu64 ": depth %u, pc %" PRIx64 ", %" PRIu64
                     " to %" PRIu64 " is missing, resolution %" PRIu64,
                     time ? "time" : "insn", from, to, call->depth, call->pc, begin, end,
                     slices.resolution);
    }
    if (!slices.truncated)
        assert_true(slices.resolution <= 2 * ((to - from) / columns + least));
    tl_slices_fini(&slices);
    return wide;
}

static void check_all_slices(struct rigged *r, enum tl_range_unit axis)
{
    const bool time = axis == TL_UNIT_TIME;
    const uint64_t first = time ? tl_axis_shown(&r->axis, r->truth.first) : 0,
                   end = time ? tl_axis_shown(&r->axis, r->truth.last) : r->truth.n,
                   whole = end - first;
    assert_true(check_slices(r, axis, first, end, 1024) > 100);
    check_slices(r, axis, first, end, 100);
    check_slices(r, axis, first + whole / 50, end - whole / 50, 37);
    check_slices(r, axis, first + whole / 3, first + whole / 3 + whole / 30, 1024);
    check_slices(r, axis, first + whole / 2, first + whole / 2 + whole / 200, 1024);
}

/* ---- formats -------------------------------------------------------------------------------- */

typedef void open_format(struct rigged *r, const struct shape *shape);

static void check_format(open_format *open, const struct shape *shape)
{
    struct rigged r;
    open(&r, shape);
    print_message("seed %" PRIu64 ", shards of %" PRIu64 ": %" PRIu64 " positions, ticks %" PRIu64
                  " to %" PRIu64 ", %zu gaps, %zu calls\n",
                  shape->seed, shape->shard, r.truth.n, r.truth.first, r.truth.last,
                  r.truth.n_gaps, r.n_calls);
    assert_true(r.truth.n > WALKED || !shape->is_long);
    check_tiles(&r);
    if (r.n_calls > 0) {
        check_all_slices(&r, TL_UNIT_TIME);
        check_all_slices(&r, TL_UNIT_INSN);
    }
    close_rigged(&r);
}

static void check_short(open_format *open, uint64_t shard)
{
    for (uint64_t seed = 1; seed <= 2; seed++)
        check_format(open, &(struct shape){seed, shard, false});
}

/* More than is walked for a tile: answered from what shards of any size have counted. */
static void check_long(open_format *open, uint64_t seed, uint64_t shard)
{
    check_format(open, &(struct shape){seed, shard, true});
}

static void of_etm(void **state)
{
    (void)state;
    check_short(open_etm, SHARD);
}

static void of_long_etm(void **state)
{
    (void)state;
    check_long(open_etm, 11, SHARD);
    check_long(open_etm, 12, 1 << 18);
    check_long(open_etm, 13, 5003);
}

static void of_pt(void **state)
{
    (void)state;
    check_short(open_pt, SHARD);
}

static void of_long_pt(void **state)
{
    (void)state;
    check_long(open_pt, 21, SHARD);
    check_long(open_pt, 22, 70001);
}

static void of_di(void **state)
{
    (void)state;
    check_short(open_di, SHARD / 10);
}

static void of_long_di(void **state)
{
    (void)state;
    check_long(open_di, 31, SHARD);
}

static void of_nexus(void **state)
{
    (void)state;
    check_short(open_nexus, SHARD);
}

static void of_long_nexus(void **state)
{
    (void)state;
    check_long(open_nexus, 41, 5003);
    check_long(open_nexus, 42, 70001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_etm),   cmocka_unit_test(of_long_etm),
        cmocka_unit_test(of_pt),    cmocka_unit_test(of_long_pt),
        cmocka_unit_test(of_di),    cmocka_unit_test(of_long_di),
        cmocka_unit_test(of_nexus), cmocka_unit_test(of_long_nexus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
