/* SPDX-License-Identifier: MIT */
/* Tiles of a long trace are the same whether a stream keeps all its summaries in memory or only a
 * few. */
#include "lake_tiles.h"
#include "sim_capture.h"

#include "lake/cut.h"

enum { SHARD = 1 << 16, INSNS = 2600000, FEW = 8, LEVELS = 14, COARSE = 10 };

static struct tl_backend *backends[2];
static struct tl_lake *all, *few;

static struct tl_lake *open_lake_keeping(unsigned i, size_t buckets)
{
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 2,
                                            .min_free_bytes = 1,
                                            .virtual_shards = true,
                                            .summary_buckets = buckets};
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
        .seed = 3, .insns = INSNS, .cores = 1, .image = true, .events = true};
    struct capture c;
    all = open_lake_keeping(0, 0);
    few = open_lake_keeping(1, FEW);
    sim_capture(all, &options, &c);
    push_all(all, "t", &c, 1 << 16);
    capture_free(&c);
    sim_capture(few, &options, &c);
    push_all(few, "t", &c, 1 << 16);
    capture_free(&c);
    assert_int_equal(wait_done(all, "t"), TL_TRACE_SEALED);
    assert_int_equal(wait_done(few, "t"), TL_TRACE_SEALED);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backends[0], all);
    close_memory_lake(backends[1], few);
    return 0;
}

static void get_tile(struct tl_lake *lake, enum tl_range_unit axis, unsigned level, uint64_t index,
                     struct tl_tile *out)
{
    struct tl_fail fail = {0};
    if (tl_lake_tile(lake, "t", axis, level, index, 0, 0, 1, out, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(out->n_lanes, 1);
}

static size_t kept_buckets(struct tl_lake *lake, unsigned *level)
{
    struct tl_cut cut;
    struct tl_buckets buckets;
    struct tl_fail fail = {0};
    uint64_t shards;
    assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", &fail), TL_OK);
    assert_int_equal(tl_cut_summary(&cut, 0, UINT64_MAX, &buckets, &shards, &fail), TL_OK);
    assert_int_equal(shards, cut.n_rows);
    const size_t n = buckets.n;
    *level = buckets.level;
    tl_buckets_fini(&buckets);
    tl_cut_close(&cut);
    return n;
}

static void few_are_kept(void **state)
{
    (void)state;
    unsigned level;
    assert_true(kept_buckets(all, &level) > 2 * FEW);
    assert_int_equal(level, TL_LEVEL_SUMMARY);
    assert_true(kept_buckets(few, &level) <= FEW);
    assert_true(level > TL_LEVEL_SUMMARY && level <= COARSE);
}

/* Where the stored summaries are as fine as the tile, every column is the same. */
static void coarse_tiles_are_the_same(void **state)
{
    (void)state;
    for (unsigned level = COARSE; level < LEVELS; level++) {
        struct tl_tile a, b;
        get_tile(all, TL_UNIT_INSN, level, 0, &a);
        get_tile(few, TL_UNIT_INSN, level, 0, &b);
        assert_memory_equal(a.lanes[0]->insns, b.lanes[0]->insns, sizeof(a.lanes[0]->insns));
        assert_memory_equal(a.lanes[0]->event_count, b.lanes[0]->event_count,
                            sizeof(a.lanes[0]->event_count));
        assert_memory_equal(a.lanes[0]->event_mask, b.lanes[0]->event_mask,
                            sizeof(a.lanes[0]->event_mask));
        assert_memory_equal(a.lanes[0]->branches, b.lanes[0]->branches,
                            sizeof(a.lanes[0]->branches));
        tl_tile_fini(&a);
        tl_tile_fini(&b);
    }
}

/* Whatever number is kept, nothing is counted twice or omitted. */
static void sums_are_the_same(void **state)
{
    (void)state;
    for (unsigned level = 6; level < LEVELS; level++) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i << (9 + 2 * level) < INSNS; i++) {
            struct tl_tile tile;
            get_tile(few, TL_UNIT_INSN, level, i, &tile);
            for (size_t k = 0; k < TL_TILE_BUCKETS; k++)
                sum += tile.lanes[0]->insns[k];
            tl_tile_fini(&tile);
        }
        struct tl_tile whole;
        uint64_t all_of_it = 0;
        get_tile(all, TL_UNIT_INSN, LEVELS, 0, &whole);
        for (size_t k = 0; k < TL_TILE_BUCKETS; k++)
            all_of_it += whole.lanes[0]->insns[k];
        tl_tile_fini(&whole);
        assert_int_equal(sum, all_of_it);
    }
}

/* If the summaries in memory are too coarse for a part, it is read from the catalog at the
 * catalog's resolution. */
static void parts_are_as_fine_as_the_catalog(void **state)
{
    (void)state;
    unsigned level;
    kept_buckets(few, &level);
    few->options.summary_buckets = 4096;
    for (unsigned axis = 0; axis < 2; axis++)
        for (uint64_t i = 0; i < 2; i++) {
            struct tl_tile a, b;
            const enum tl_range_unit unit = axis ? TL_UNIT_TIME : TL_UNIT_INSN;
            get_tile(all, unit, 6, i, &a);
            get_tile(few, unit, 6, i, &b);
            assert_memory_equal(a.lanes[0], b.lanes[0], sizeof(*a.lanes[0]));
            tl_tile_fini(&a);
            tl_tile_fini(&b);
        }
    few->options.summary_buckets = FEW;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_are_kept),
        cmocka_unit_test(coarse_tiles_are_the_same),
        cmocka_unit_test(sums_are_the_same),
        cmocka_unit_test(parts_are_as_fine_as_the_catalog),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
