/* SPDX-License-Identifier: MIT */
/* Call-stack slices of a long trace with deep calls, compared with the truth. */
#define STREAM "stf.0"
#define INSNS  5000000 /* long enough that not everything is walked */

#include "lake_lanes.h"
#include "lake_tiles.h"
#include "made_calls.h"

static struct tl_backend *backend;
static struct tl_lake *lake;

static int set_up(void **state)
{
    struct capture c = {0};
    (void)state;
    make_trace();
    lake = open_memory_lake(&backend, 1000000, 2);
    c.bytes = core.stf;
    assert_int_equal(tl_buf_printf(&c.setup, "[trace]\nformat=stf\n"), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    push_sealed(lake, "t", &c, 1 << 20);
    capture_free(&c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(core.calls);
    close_memory_lake(backend, lake);
    return 0;
}

/* ---- an answer ------------------------------------------------------------------------------ */

static void ask(struct tl_slices *a, uint64_t from, uint64_t to, uint32_t columns)
{
    struct tl_fail fail = {0};
    const struct tl_slices_request request = {.trace = "t",
                                              .stream = STREAM,
                                              .axis = TL_UNIT_INSN,
                                              .from = from,
                                              .to = to,
                                              .columns = columns};
    if (tl_lake_slices(lake, &request, a, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_true(a->n <= 4096);
}

static int by_place(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->depth != y->depth)
        return x->depth < y->depth ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static const struct call *find_call(uint32_t depth, uint64_t from)
{
    const struct call wanted = {.depth = depth, .from = from};
    return bsearch(&wanted, core.calls, core.n_calls, sizeof(*core.calls), by_place);
}

/* Find a slice; they are ordered by position. */
static bool find_slice(const struct tl_slices *a, const struct call *call)
{
    size_t low = 0, high = a->n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct tl_stack_slice *const s = &a->p[middle];
        if (s->depth == call->depth && s->from == call->from)
            return true;
        if (s->depth < call->depth || (s->depth == call->depth && s->from < call->from))
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

/*
 * Check that every slice is a real call, whose end is exact if it is marked so, and otherwise not
 * much later, and that every call of sufficient width is present. Returns the number of exact ends.
 */
static size_t check(const struct tl_slices *a, uint64_t from, uint64_t to)
{
    size_t exact = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct tl_stack_slice *const slice = &a->p[i];
        const struct call *const call = find_call(slice->depth, slice->from);
        if (!call || call->pc != slice->pc)
            fail_msg("nothing at depth %u was called at %llu", slice->depth,
                     (unsigned long long)slice->from);
        const uint64_t end = call->to < to ? call->to : to;
        exact += slice->exact;
        if (slice->exact ? slice->to != end : slice->to < end || slice->to - end > a->resolution)
            fail_msg("depth %u, from %llu: ends at %llu, not %llu", slice->depth,
                     (unsigned long long)slice->from, (unsigned long long)slice->to,
                     (unsigned long long)end);
    }
    for (size_t i = 0; i < core.n_calls; i++) {
        const struct call *const call = &core.calls[i];
        const uint64_t begin = call->from > from ? call->from : from;
        const uint64_t end = call->to < to ? call->to : to;
        if (end > begin && end - begin > a->resolution && !find_slice(a, call))
            fail_msg("depth %u, [%llu, %llu) is missing", call->depth,
                     (unsigned long long)call->from, (unsigned long long)call->to);
    }
    return exact;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void long_ranges_have_exact_ends(void **state)
{
    static const struct {
        uint64_t from, to;
        uint32_t columns;
        bool all; /* few enough columns for all ends to be exact */
    } ranges[] = {
        {0, UINT64_MAX, 16, true},         {0, UINT64_MAX, 100, true},
        {0, UINT64_MAX, 0, false},         {123456, INSNS - 77777, 7, true},
        {400001, UINT64_MAX, 4096, false},
    };
    (void)state;
    qsort(core.calls, core.n_calls, sizeof(*core.calls), by_place);
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
        const uint64_t to = ranges[i].to < core.insns ? ranges[i].to : core.insns;
        const uint64_t columns = ranges[i].columns ? ranges[i].columns : 1024;
        struct tl_slices a;
        ask(&a, ranges[i].from, ranges[i].to, ranges[i].columns);
        const size_t exact = check(&a, ranges[i].from, to);
        assert_true(a.truncated);
        assert_true(a.resolution <= (to - ranges[i].from) / columns + 2 * TL_CHUNK_MARKERS);
        assert_true(exact > 30);
        if (ranges[i].all)
            assert_int_equal(exact, a.n);
        tl_slices_fini(&a);
    }
}

static void short_ranges_have_everything(void **state)
{
    (void)state;
    qsort(core.calls, core.n_calls, sizeof(*core.calls), by_place);
    core.random = 17;
    for (unsigned i = 0; i < 6; i++) {
        const uint64_t length = UINT64_C(10) << 3 * i;
        const uint64_t from = below(INSNS - length);
        struct tl_slices a;
        ask(&a, from, from + length, 0);
        assert_int_equal(check(&a, from, from + length), a.n);
        assert_true(a.truncated == (a.resolution > 0));
        if (length < 10000)
            assert_false(a.truncated);
        tl_slices_fini(&a);
    }
}

/* More calls than fit into an answer. */
static void the_widest_are_kept(void **state)
{
    struct tl_slices a;
    (void)state;
    qsort(core.calls, core.n_calls, sizeof(*core.calls), by_place);
    ask(&a, 1000000, 3000000, 0);
    assert_true(a.truncated);
    assert_int_equal(a.n, 4096);
    assert_int_equal(check(&a, 1000000, 3000000), a.n);
    for (size_t i = 0; i < a.n; i++)
        assert_true(a.p[i].to - a.p[i].from >= a.resolution);
    tl_slices_fini(&a);
}

static void too_many_columns_are_refused(void **state)
{
    const struct tl_slices_request request = {
        .trace = "t", .stream = STREAM, .axis = TL_UNIT_INSN, .to = UINT64_MAX, .columns = 4097};
    struct tl_slices slices;
    struct tl_fail fail = {0};
    (void)state;
    assert_int_equal(tl_lake_slices(lake, &request, &slices, &fail), TL_USAGE);
    assert_int_equal(slices.n, 0);
}

/* The depth of the call stack at each instruction, computed from all calls. */
static uint8_t *depths(void)
{
    uint8_t *const at = calloc(core.insns, 1);
    assert_non_null(at);
    for (size_t i = 0; i < core.n_calls; i++) {
        const struct call *const call = &core.calls[i];
        for (uint64_t k = call->from; k < call->to; k++)
            at[k] = call->depth + 1 > at[k] ? (uint8_t)(call->depth + 1) : at[k];
    }
    return at;
}

static void check_tile(const uint8_t *depths, unsigned level, uint64_t index)
{
    struct tl_tile tile;
    struct tl_fail fail = {0};
    if (tl_lake_tile(lake, "t", TL_UNIT_INSN, level, index, 0, 0, 1, &tile, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tile.n_lanes, 1);
    const struct tl_tile_lane *const lane = tile.lanes[0];
    for (size_t i = 0; i < 512; i++) {
        const uint64_t from = tile.first + i * tile.bucket, to = from + tile.bucket;
        unsigned low = 255, high = 0;
        for (uint64_t k = from; k < to && k < core.insns; k++) {
            low = depths[k] < low ? depths[k] : low;
            high = depths[k] > high ? depths[k] : high;
        }
        low = high == 0 ? 0 : low; /* after the end of the trace */
        if (lane->depth_min[i] != low || lane->depth_max[i] != high)
            fail_msg("level %u, from %llu: depth %u to %u, not %u to %u", level,
                     (unsigned long long)from, lane->depth_min[i], lane->depth_max[i], low, high);
    }
    tl_tile_fini(&tile);
}

/* The same from instructions (up to level 4) and from stored buckets. */
static void tiles_tell_the_depth(void **state)
{
    uint8_t *const at = depths();
    (void)state;
    for (unsigned level = 0; level < 8; level++) {
        const uint64_t tiles = core.insns / (UINT64_C(512) << 2 * level) + 1;
        const uint64_t step = tiles > 20 ? tiles / 17 : 1;
        for (uint64_t index = 0; index < tiles; index += step)
            check_tile(at, level, index);
    }
    free(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_ranges_have_exact_ends),
        cmocka_unit_test(short_ranges_have_everything),
        cmocka_unit_test(the_widest_are_kept),
        cmocka_unit_test(too_many_columns_are_refused),
        cmocka_unit_test(tiles_tell_the_depth),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
