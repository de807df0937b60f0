/* SPDX-License-Identifier: MIT */
/*
 * Tiles of every level and slices, on both axes, for the formats that have times: against what the
 * flow text of the same stream says of each position by the model of docs/time.md. Programs are
 * random, with idle times, interrupts, losses and switched-off spans.
 */
#include "lake_lanes.h"
#include "lake_tiles.h"
#include "rigged.h"

enum { LEVELS = 18, TILES = 3 /* of a level */ };

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
        (lane->share2[i] > 0 &&
         !is_near(lane->share2[i], (double)s->functions[lane->function2[i]], ran, 100 * one / ran));
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
    for (unsigned level = 0; level < LEVELS; level++) {
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
                  shape->seed, shape->shard, r.truth.n, r.truth.first, r.truth.last, r.truth.n_gaps,
                  r.n_calls);
    assert_true(r.truth.n > WALKED || !shape->is_long);
    check_tiles(&r);
    check_all_slices(&r, TL_UNIT_TIME);
    check_all_slices(&r, TL_UNIT_INSN);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_etm),     cmocka_unit_test(of_long_etm),   cmocka_unit_test(of_pt),
        cmocka_unit_test(of_long_pt), cmocka_unit_test(of_di),         cmocka_unit_test(of_long_di),
        cmocka_unit_test(of_nexus),   cmocka_unit_test(of_long_nexus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
