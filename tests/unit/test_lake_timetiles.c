/* SPDX-License-Identifier: MIT */
/* Tiles on the time axis, at every level, against what the flow text says of times (docs/time.md):
 * with idle times, interrupts, losses and switched-off spans. */
#include "lake_lanes.h"
#include "lake_tiles.h"
#include "sim_capture.h"

#include "lake/timed_walk.h"

#include <inttypes.h>

enum { SHARD = 1 << 16, INSNS = 2600000, LEVELS = 18, TICK = 10 /* ns */ };

static struct tl_backend *backends[2];
static struct tl_lake *stored, *virtual;

/* What ran when, as the text says: runs of a function, or of nothing, ascending. */
struct ran {
    uint64_t from, to; /* ns */
    uint32_t function; /* symbol index + 1 */
    uint8_t kind;      /* enum tl_timed_kind */
};
static struct ran *truth;
static size_t n_truth, cap_truth;
static uint64_t n_insns, n_events;

/* A position's function, and the knots and breaks between them. */
struct reading {
    const struct tl_image *image;
    uint32_t *functions; /* since the last timestamp */
    size_t n, cap;
    bool timed, broken, off, idle;
    size_t place;  /* if broken: of those functions */
    uint64_t time; /* of the last timestamp, in ticks */
    uint32_t last;
    uint8_t missing;
};

static void add_ran(uint64_t from, uint64_t to, uint32_t function, uint8_t kind)
{
    struct ran *const last = n_truth > 0 ? &truth[n_truth - 1] : NULL;
    if (from == to)
        return;
    if (last && last->kind == kind && last->function == function && last->to == from * TICK) {
        last->to = to * TICK;
        return;
    }
    assert_int_equal(tl_grow(&truth, &cap_truth, n_truth + 1, sizeof *truth), TL_OK);
    truth[n_truth++] = (struct ran){from * TICK, to * TICK, function, kind};
}

static void read_time(struct reading *r, uint64_t ticks)
{
    const uint64_t span = r->timed ? ticks - r->time : 0;
    uint64_t time = r->time;
    for (size_t i = 0; i < r->n && r->timed && !r->broken; i++) {
        const uint64_t to = r->time + span * (i + 1) / r->n;
        add_ran(time, to, r->functions[i], TL_TIMED_RUN);
        time = to;
    }
    if (r->n > 0) {
        r->last = r->functions[r->n - 1];
        r->idle = !r->broken || r->place < r->n;
    }
    if (r->broken) {
        r->missing = r->off ? TL_TIMED_OFF : TL_TIMED_LOST;
        if (r->timed)
            add_ran(time, ticks, 0, r->missing);
        time = ticks;
    } else if (r->timed && time < ticks) {
        add_ran(time, ticks, r->idle ? r->last : 0, r->idle ? TL_TIMED_RUN : r->missing);
    }
    r->time = ticks;
    r->n = 0;
    r->broken = false;
    r->timed = true;
}

static void read_break(struct reading *r, bool off)
{
    if (!r->broken) {
        r->place = r->n;
        r->idle = false;
    }
    r->off = r->broken ? r->off && off : off;
    r->broken = true;
}

static void read_line(struct reading *r, const char *line)
{
    switch (*line) {
    case 'I':
        assert_int_equal(tl_grow(&r->functions, &r->cap, r->n + 1, sizeof *r->functions), TL_OK);
        r->functions[r->n++] =
            (uint32_t)(tl_image_symbol_index(r->image, strtoull(line + 2, NULL, 16)) + 1);
        n_insns++;
        break;
    case 'T':
        read_time(r, strtoull(line + 2, NULL, 10));
        break;
    case 'G':
        read_break(r, strncmp(line, "G off", 5) == 0);
        break;
    case 'O':
        read_break(r, true);
        break;
    case 'X':
    case 'V':
        n_events++;
        break;
    default:
        break;
    }
}

/* The text of the first stream; events behind the last instruction are not in tiles. */
static void read_text(const struct tl_buf *text, const struct tl_image *image)
{
    struct reading r = {.image = image};
    const char *p = (const char *)text->p, *const end = p + text->n;
    uint64_t events = 0;
    for (const char *line = p; line < end; line = strchr(line, '\n') + 1) {
        if (*line == '#' && line > p)
            break;
        read_line(&r, line);
        if (*line == 'I')
            events = n_events;
    }
    n_events = events;
    free(r.functions);
}

static struct tl_lake *open_with(unsigned i, bool is_virtual)
{
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 2,
                                            .min_free_bytes = 1,
                                            .virtual_shards = is_virtual};
    struct tl_lake *lake;
    assert_int_equal(tl_backend_memory(&backends[i]), TL_OK);
    if (tl_lake_open_on(&lake, backends[i], &options, &fail) < 0)
        fail_msg("%s", fail.text);
    return lake;
}

static int set_up(void **state)
{
    (void)state;
    const struct sim_options options = {
        .seed = 11, .insns = INSNS, .cores = 1, .image = true, .events = true};
    struct capture c;
    stored = open_with(0, false);
    virtual = open_with(1, true);
    sim_capture(virtual, &options, &c);
    push_all(virtual, "t", &c, 1 << 16);
    capture_free(&c);
    sim_capture(stored, &options, &c);
    push_sealed(stored, "t", &c, 5000);
    assert_int_equal(wait_done(virtual, "t"), TL_TRACE_SEALED);
    struct tl_trace *trace = tl_lake_find_trace(stored, "t");
    struct tl_gen *gen = tl_trace_serving(trace);
    read_text(&c.text, tl_gen_image(gen));
    tl_gen_put(gen);
    tl_trace_put(trace);
    capture_free(&c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(truth);
    close_memory_lake(backends[0], stored);
    close_memory_lake(backends[1], virtual);
    return 0;
}

/* ---- comparing ------------------------------------------------------------------------------ */

struct sums {
    uint64_t kinds[3];
    uint64_t *functions; /* ns */
    size_t n;            /* functions */
    uint32_t winner;
};

/* What ran in [from, to). `*at`: where to begin in the truth, since buckets are asked in order. */
static void sum_up(struct sums *s, uint64_t from, uint64_t to, size_t *at)
{
    memset(s->functions, 0, s->n * sizeof *s->functions);
    memset(s->kinds, 0, sizeof s->kinds);
    s->winner = 0;
    while (*at < n_truth && truth[*at].to <= from)
        ++*at;
    for (size_t i = *at; i < n_truth && truth[i].from < to; i++) {
        const struct ran *const r = &truth[i];
        const uint64_t ns = (r->to < to ? r->to : to) - (r->from > from ? r->from : from);
        s->kinds[r->kind] += ns;
        if (r->kind != TL_TIMED_RUN)
            continue;
        s->functions[r->function] += ns;
        if (s->functions[r->function] > s->functions[s->winner])
            s->winner = r->function;
    }
}

struct verdict {
    size_t buckets, wrong_winner, wrong_share, wrong_cover;
};

static bool is_near(uint8_t of_255, uint64_t part, uint64_t whole, double points)
{
    const double shown = (of_255 + (of_255 > 0 && of_255 < 255 ? 0.5 : 0)) / 255 * 100,
                 is = whole > 0 ? 100.0 * (double)part / (double)whole : 0;
    return shown - is < points && is - shown < points;
}

static void compare(const struct tl_tile_lane *lane, size_t i, uint64_t width, const struct sums *s,
                    struct verdict *v)
{
    const uint64_t ran = s->kinds[TL_TIMED_RUN];
    /* A tick belongs to the bucket in which it begins. */
    const double tick = 100.0 * TICK / (double)width;
    v->wrong_cover += !is_near(lane->coverage[i], ran, width, 1 + 2 * tick) ||
                      !is_near(lane->lost[i], s->kinds[TL_TIMED_LOST], width, 1 + 2 * tick);
    if (ran < 2 * TICK)
        return;
    v->buckets++;
    v->wrong_winner += s->functions[lane->function[i]] + 2 * TICK < s->functions[s->winner];
    v->wrong_share +=
        !is_near(lane->share[i], s->functions[lane->function[i]], ran,
                 2 + 200.0 * TICK / (double)ran) ||
        (lane->share2[i] > 0 && !is_near(lane->share2[i], s->functions[lane->function2[i]], ran,
                                         2 + 200.0 * TICK / (double)ran));
}

static void get_tile(struct tl_lake *lake, unsigned level, uint64_t index, struct tl_tile *out)
{
    struct tl_fail fail = {0};
    if (tl_lake_tile(lake, "t", TL_UNIT_TIME, level, index, 0, 0, 1, out, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(out->n_lanes, 1);
}

/* All tiles of a level, or some. */
static void check_level(struct tl_lake *lake, unsigned level, struct sums *s)
{
    const uint64_t width = UINT64_C(1) << 2 * level, tile_width = width * TL_TILE_BUCKETS;
    const uint64_t first = truth[0].from / tile_width, last = truth[n_truth - 1].to / tile_width,
                   step = (last - first) / 12 + 1;
    struct verdict v = {0};
    uint64_t insns = 0, events = 0;
    size_t at = 0;
    for (uint64_t index = first; index <= last; index += step) {
        struct tl_tile tile;
        get_tile(lake, level, index, &tile);
        const struct tl_tile_lane *const lane = tile.lanes[0];
        for (size_t i = 0; i < TL_TILE_BUCKETS; i++) {
            const uint64_t from = index * tile_width + i * width;
            sum_up(s, from, from + width, &at);
            compare(lane, i, width, s, &v);
            insns += lane->insns[i];
            events += lane->event_count[i];
        }
        tl_tile_fini(&tile);
    }
    print_message("level %u: %zu buckets, wrong: %zu winners, %zu shares, %zu covers\n", level,
                  v.buckets, v.wrong_winner, v.wrong_share, v.wrong_cover);
    assert_int_equal(v.wrong_winner, 0);
    assert_int_equal(v.wrong_share, 0);
    assert_int_equal(v.wrong_cover, 0);
    if (step == 1) {
        assert_int_equal(insns, n_insns);
        assert_int_equal(events, n_events);
    }
}

static void check_levels(struct tl_lake *lake)
{
    size_t n = 0;
    struct tl_trace *trace = tl_lake_find_trace(lake, "t");
    struct tl_gen *gen = tl_trace_serving(trace);
    tl_image_symbols(tl_gen_image(gen), &n);
    struct sums s = {.functions = calloc(n + 1, sizeof *s.functions), .n = n + 1};
    assert_non_null(s.functions);
    for (unsigned level = 0; level < LEVELS; level++)
        check_level(lake, level, &s);
    free(s.functions);
    tl_gen_put(gen);
    tl_trace_put(trace);
}

/* Every shard has its buckets, which make up the whole time. */
static void check_shards(struct tl_lake *lake)
{
    struct tl_cut cut;
    struct tl_fail fail = {0};
    uint64_t ticks = 0, insns = 0, events = 0;
    assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", &fail), TL_OK);
    assert_true(cut.n_rows > 30);
    for (size_t i = 0; i < cut.n_rows; i++) {
        struct tl_view *view;
        assert_int_equal(tl_cut_view(&cut, i, &view, &fail), TL_OK);
        assert_true(view->index.times.n >= 2);
        const struct tl_time_level *const level = &view->index.times.levels[0];
        assert_true(level->n <= 16 + SHARD / 8192 && level->n > 4);
        for (size_t k = 0; k < level->n; k++) {
            insns += level->p[k].insns;
            events += level->p[k].events;
            for (size_t j = 0; j < 3; j++)
                ticks += level->p[k].ticks[j];
        }
        tl_view_put(view);
    }
    tl_cut_close(&cut);
    assert_int_equal(ticks * TICK, truth[n_truth - 1].to - truth[0].from);
    assert_int_equal(insns, n_insns);
    assert_int_equal(events, n_events);
}

static void shards_have_buckets(void **state)
{
    (void)state;
    check_shards(stored);
    check_shards(virtual);
}

static void all_levels_are_right(void **state)
{
    (void)state;
    check_levels(stored);
}

static void also_of_virtual_shards(void **state)
{
    (void)state;
    check_levels(virtual);
}

/* ---- slices --------------------------------------------------------------------------------- */

/* A call, with its time in ticks. */
struct called {
    uint64_t begin, end, pc;
    uint32_t depth;
    bool begun;
};
static struct called *calls;
static size_t n_calls, cap_calls;

static int note_call(void *context, const struct tl_timed_call *call)
{
    (void)context;
    assert_int_equal(tl_grow(&calls, &cap_calls, n_calls + 1, sizeof *calls), TL_OK);
    calls[n_calls++] = (struct called){.begin = call->begun ? call->begin_time : 0,
                                       .end = call->end_time,
                                       .pc = call->frame->pc,
                                       .depth = call->depth,
                                       .begun = call->begun};
    return TL_OK;
}

static void walk_calls(struct tl_lake *lake)
{
    const struct tl_timed_sinks sinks = {.call = note_call};
    struct tl_cut cut;
    struct tl_fail fail = {0};
    n_calls = 0;
    assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", &fail), TL_OK);
    assert_int_equal(tl_timed_walk(&cut, 0, UINT64_MAX, &sinks, &fail), TL_OK);
    tl_cut_close(&cut);
}

static bool has_slice(const struct tl_slices *slices, const struct called *call)
{
    for (size_t i = 0; i < slices->n; i++) {
        const struct tl_stack_slice *const s = &slices->p[i];
        const uint64_t from = call->begin * TICK;
        if (s->depth == call->depth && s->pc == call->pc &&
            (!call->begun ||
             (s->from <= from + slices->resolution && from <= s->from + slices->resolution)))
            return true;
    }
    return false;
}

/* Every call that is wider than the resolution is there, which is two columns or less. */
static void check_slices(struct tl_lake *lake, uint64_t from, uint64_t to, uint32_t columns)
{
    const struct tl_slices_request request = {.trace = "t",
                                              .stream = "cs.10",
                                              .axis = TL_UNIT_TIME,
                                              .from = from,
                                              .to = to,
                                              .columns = columns};
    struct tl_slices slices;
    struct tl_fail fail = {0};
    size_t wide = 0;
    if (tl_lake_slices(lake, &request, &slices, &fail) < 0)
        fail_msg("%s", fail.text);
    const uint64_t low = from / TICK, high = to / TICK;
    for (size_t i = 0; i < n_calls; i++) {
        const struct called *const call = &calls[i];
        const uint64_t a = call->begin > low ? call->begin : low,
                       b = call->end < high ? call->end : high;
        if (a >= b || (b - a) * TICK <= slices.resolution + TICK)
            continue;
        wide++;
        if (!has_slice(&slices, call))
            fail_msg("depth %u, pc %" PRIx64 ", %" PRIu64 " to %" PRIu64 " is missing", call->depth,
                     call->pc, call->begin * TICK, call->end * TICK);
    }
    print_message("%" PRIu64 " to %" PRIu64 ": %zu slices, %zu wider than %" PRIu64 "\n", from, to,
                  slices.n, wide, slices.resolution);
    assert_true(wide > 0 || columns < 100);
    if (slices.n < 4096)
        assert_true(slices.resolution <= 2 * (to - from) / columns + 2 * TICK);
    tl_slices_fini(&slices);
}

static void slices_are_the_widest_in_time(void **state)
{
    (void)state;
    const uint64_t first = truth[0].from, end = truth[n_truth - 1].to, whole = end - first;
    walk_calls(stored);
    for (unsigned i = 0; i < 2; i++) {
        struct tl_lake *const lake = i ? virtual : stored;
        check_slices(lake, 0, end + 1000, 256);
        check_slices(lake, first, end, 1024);
        check_slices(lake, first + whole / 50, end - whole / 50, 37);
        check_slices(lake, first + whole / 3, first + whole / 3 + whole / 30, 1024);
        check_slices(lake, first + whole / 2, first + whole / 2 + whole / 1000, 1024);
    }
    free(calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_have_buckets),
        cmocka_unit_test(all_levels_are_right),
        cmocka_unit_test(also_of_virtual_shards),
        cmocka_unit_test(slices_are_the_widest_in_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
