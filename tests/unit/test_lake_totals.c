/* SPDX-License-Identifier: MIT */
/*
 * What all functions have, and what is lost or off, is all the time that was traced (docs/time.md):
 * the same function by function in tiles of all levels, tables, calls, profiles and SQL, over
 * random programs in all formats and shards of several lengths, as the flow text says.
 */
#include "rigged_threads.h"

#include "lake_analysis.h"
#include "lake_sql.h"
#include "lake_timing.h"
#include "query/time_tile.h"
#include "query/timed_counts.h"

/* Ticks by what had them. */
struct totals {
    uint64_t kinds[TL_TIMED_KINDS]; /* by enum tl_timed_kind */
    uint64_t *functions;
    size_t n;
};

static struct totals totals_of(const struct rigged *r)
{
    struct totals t = {.functions = calloc(r->n_functions + 1, sizeof *t.functions),
                       .n = r->n_functions + 1};
    assert_non_null(t.functions);
    return t;
}

static void check_same(const char *what, struct totals *t, const struct totals *truth)
{
    uint64_t all = 0;
    for (size_t i = 0; i < t->n; i++) {
        if (t->functions[i] != truth->functions[i])
            fail_msg("%s: function %zu has %" PRIu64 " ticks, not %" PRIu64, what, i,
                     t->functions[i], truth->functions[i]);
        all += t->functions[i];
    }
    assert_int_equal(all, truth->kinds[TL_TIMED_RUN]);
    for (size_t i = 0; i < TL_TIMED_KINDS; i++)
        if (t->kinds[i] != truth->kinds[i])
            fail_msg("%s: %" PRIu64 " ticks of kind %zu, not %" PRIu64, what, t->kinds[i], i,
                     truth->kinds[i]);
    free(t->functions);
}

/* What the text says. */
static struct totals told(const struct rigged *r)
{
    struct totals t = totals_of(r);
    uint64_t all = 0;
    for (size_t i = 0; i < r->times.n; i++) {
        const struct ran *const x = &r->times.p[i];
        t.kinds[x->kind] += x->to - x->from;
        if (x->kind == TL_TIMED_RUN)
            t.functions[x->function] += x->to - x->from;
    }
    for (size_t i = 0; i < TL_TIMED_KINDS; i++)
        all += t.kinds[i];
    assert_int_equal(all, r->truth.last - r->truth.first);
    return t;
}

/* Is the stack deeper than is kept? The last frame kept has the time of those below it, which the
 * text does not tell: some programs have signals within signals that never return. Then all agree
 * with what is stored. */
static bool is_deep(const struct rigged *r)
{
    for (size_t i = 0; i < r->n_calls; i++)
        if (r->calls[i].depth + 1 == TL_CALLSTACK_MAX)
            return true;
    return false;
}

/* ---- counted in ticks ------------------------------------------------------------------------ */

/* Is it coarser than the level of which shards leave out rare functions? */
static bool has_all(const struct rigged *r, unsigned level)
{
    bool all = true;
    for (size_t i = 0; i < r->cut.n_rows; i++) {
        struct tl_view *view;
        struct tl_fail fail = {0};
        assert_int_equal(tl_cut_view(&r->cut, i, &view, &fail), TL_OK);
        all &= level > view->index.times.finest;
        tl_view_put(view);
    }
    return all;
}

/* The tiles of a level that contain the stream. `walked`: not from what shards have counted. */
static void check_tiles(struct rigged *r, unsigned level, bool walked, const struct totals *truth)
{
    struct totals t = totals_of(r);
    const uint64_t width = (uint64_t)TL_TILE_BUCKETS << 2 * level,
                   last = tl_axis_shown(&r->axis, r->truth.last) / width;
    for (uint64_t i = tl_axis_shown(&r->axis, r->truth.first) / width; i <= last; i++) {
        struct tl_time_tile *const tile = calloc(1, sizeof *tile);
        struct tl_fail fail = {0};
        assert_non_null(tile);
        tile->level = level;
        tile->first = i * width;
        if (tl_time_tile_fill(tile, &r->cut, walked ? WALKED : 0, NULL, NULL, &fail) < 0)
            fail_msg("%s", fail.text);
        assert_true(tile->known && !tile->shown);
        for (size_t k = 0; k < TL_TILE_BUCKETS; k++) {
            const struct tl_time_bucket *const b = &tile->buckets[k];
            for (size_t kind = 0; kind < TL_TIMED_KINDS; kind++)
                t.kinds[kind] += b->ticks[kind];
            for (uint32_t f = 0; f < b->n_shares; f++)
                t.functions[b->shares[f].function] += b->shares[f].ticks;
        }
        tl_time_tile_fini(tile);
        free(tile);
    }
    check_same(walked ? "walked tiles" : "tiles", &t, truth);
}

static int add_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                    const struct tl_moment *to)
{
    struct totals *const t = context;
    (void)from;
    (void)to;
    t->kinds[span->kind] += span->end_time - span->time;
    if (span->kind == TL_TIMED_RUN && span->depth == 0) /* of no call */
        t->functions[span->function == TL_NO_FUNCTION ? 0 : span->function + 1] +=
            span->end_time - span->time;
    return TL_OK;
}

static int add_call(void *context, const struct tl_timing_call *call)
{
    struct totals *const t = context;
    const uint32_t function = call->frame.function;
    t->functions[function == TL_NO_FUNCTION ? 0 : function + 1] += call->self_time;
    return TL_OK;
}

static void check_calls(struct rigged *r, const struct totals *truth)
{
    struct totals t = totals_of(r);
    struct tl_fail fail = {0};
    const struct tl_timing_sinks sinks = {.span = add_span, .end = add_call, .context = &t};
    assert_int_equal(tl_timing_walk(&r->cut, 0, UINT64_MAX, &sinks, &fail), TL_OK);
    check_same("calls", &t, truth);
}

/* What is stored with the shards. */
static struct totals stored(const struct rigged *r)
{
    struct totals t = totals_of(r);
    struct tl_timed_counts counts = {0};
    struct tl_fail fail = {0};
    assert_int_equal(tl_timed_counts_add(&counts, &r->cut, 0, r->cut.end, &fail), TL_OK);
    assert_true(counts.shards > 0);
    for (size_t i = 0; i < counts.index.n_functions; i++) {
        const struct tl_function_calls *const f = &counts.index.functions[i];
        const uint64_t self = f->by[TL_BY_TIME].self;
        t.functions[f->function == TL_NO_FUNCTION ? 0 : f->function + 1] += self;
        t.kinds[TL_TIMED_RUN] += self;
    }
    for (unsigned kind = TL_TIMED_LOST; kind < TL_TIMED_KINDS; kind++)
        t.kinds[kind] = counts.extent.missing[kind];
    tl_timed_counts_fini(&counts);
    return t;
}

static void check_index(struct rigged *r, const struct totals *truth)
{
    struct totals t = stored(r);
    check_same("stored", &t, truth);
}

/* ---- as answered ----------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The table has each function's time, rounded down; returns the sum. */
static uint64_t check_table(struct rigged *r, const struct totals *truth)
{
    const struct tl_function_table_request request = {
        .range = {"t", r->cut.lane->name, TL_UNIT_INSN, 0, UINT64_MAX},
        .weight = TL_WEIGHT_TIME,
        .limit = 100000};
    struct tl_function_table table;
    struct tl_fail fail = {0};
    uint64_t *const own = calloc(truth->n, sizeof *own), *const are = calloc(truth->n, sizeof *are);
    size_t n = 0;
    uint64_t sum = 0;
    assert_true(own && are);
    assert_int_equal(tl_lake_function_table(r->lake, &request, &table, &fail), TL_OK);
    assert_true(table.n <= truth->n);
    for (size_t i = 0; i < table.n; i++) {
        own[i] = table.p[i].self_time.value;
        sum += own[i];
    }
    for (size_t i = 0; i < truth->n; i++)
        are[i] = tl_timing_shown(r->cut.lane, truth->functions[i]);
    qsort(own, truth->n, sizeof *own, ascending);
    qsort(are, truth->n, sizeof *are, ascending);
    for (; n < truth->n; n++)
        assert_int_equal(own[n], are[n]);
    const struct tl_timing_about *const about = &table.about;
    assert_int_equal(about->time, about->ran + about->lost + about->off + about->switched_out);
    const uint64_t kinds[] = {about->ran, about->lost, about->off, about->switched_out};
    for (size_t i = 0; i < TL_TIMED_KINDS; i++)
        assert_int_equal(kinds[i], tl_timing_shown(r->cut.lane, truth->kinds[i]));
    assert_true(about->ran >= sum && about->ran - sum <= table.n);
    tl_function_table_fini(&table);
    free(own);
    free(are);
    return sum;
}

static int take_sum(void *context, const struct tl_sql_batch *batch)
{
    if (batch->n_rows > 0)
        *(uint64_t *)context = tl_le64(batch->columns[0].values);
    return TL_OK;
}

static void check_sql(struct rigged *r, uint64_t sum)
{
    char text[128];
    uint64_t told = 0;
    struct tl_fail fail = {0};
    snprintf(text, sizeof text, "SELECT sum(self_time) FROM function WHERE stream = '%s'",
             r->cut.lane->name);
    const struct tl_sql_request request = {.trace = "t", .text = text};
    if (tl_lake_sql(r->lake, &request, take_sum, &told, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(told, sum);
}

/* A profile rounds each path down. */
static void check_profile(struct rigged *r, uint64_t sum)
{
    const struct tl_profile_request request = {.trace = "t",
                                               .stream = r->cut.lane->name,
                                               .unit = TL_UNIT_INSN,
                                               .to = UINT64_MAX,
                                               .weight = TL_WEIGHT_TIME};
    struct tl_profile profile;
    struct tl_calltree tree = {0};
    struct tl_fail fail = {0};
    uint64_t own = 0, ran = 0;
    assert_int_equal(tl_lake_profile(r->lake, &request, &profile, &fail), TL_OK);
    assert_int_equal(tl_timed_tree_add(&tree, &r->cut, 0, r->cut.end, TL_WEIGHT_TIME, &fail),
                     TL_OK);
    for (size_t i = 0; i < profile.n_functions; i++)
        own += profile.functions[i].self;
    for (size_t i = 0; i < tree.n_nodes; i++)
        ran += tree.nodes[i].self;
    assert_int_equal(own, ran);
    assert_int_equal(profile.insns, ran);
    assert_true(ran <= sum + profile.n_functions && sum - ran <= tree.n_nodes);
    tl_calltree_fini(&tree);
    tl_profile_fini(&profile);
}

/* Programs alone are traced: most of the time tracing is off. */
static void open_user(struct rigged *r, const struct shape *shape)
{
    open_kind(r, &rig_pt_user, "pt.0", 400000, shape, NULL);
}

/* ---- formats --------------------------------------------------------------------------------- */

static void check_format(void (*open)(struct rigged *, const struct shape *), uint64_t shard)
{
    unsigned n = 0;
    for (uint64_t seed = 1; n < 3; seed++) {
        struct rigged r;
        open(&r, &(struct shape){seed, shard >> (1 + n), false});
        const bool deep = is_deep(&r);
        struct totals truth = deep ? stored(&r) : told(&r);
        n += !deep;
        print_message("seed %" PRIu64 ": %" PRIu64 " ticks ran, %" PRIu64 " lost, %" PRIu64
                      " off, %" PRIu64 " switched out\n",
                      seed, truth.kinds[TL_TIMED_RUN], truth.kinds[TL_TIMED_LOST],
                      truth.kinds[TL_TIMED_OFF], truth.kinds[TL_TIMED_SWITCHED_OUT]);
        assert_int_equal(truth.kinds[TL_TIMED_SWITCHED_OUT] > 0, open == open_threads);
        assert_true(truth.kinds[TL_TIMED_OFF] > truth.kinds[TL_TIMED_RUN] || open != open_user);
        check_calls(&r, &truth);
        check_index(&r, &truth);
        size_t from_stored = 0;
        for (unsigned level = 7; level < 16; level++) {
            if (!deep) /* a tile that is walked tells what ran */
                check_tiles(&r, level, true, &truth);
            if (!has_all(&r, level))
                continue;
            check_tiles(&r, level, false, &truth);
            from_stored++;
        }
        assert_true(from_stored > 2);
        const uint64_t sum = check_table(&r, &truth);
        check_sql(&r, sum);
        check_profile(&r, sum);
        free(truth.functions);
        close_rigged(&r);
    }
}

static void of_etm(void **state)
{
    (void)state;
    check_format(open_etm, 80000);
}

static void of_pt(void **state)
{
    (void)state;
    check_format(open_pt, 80000);
}

static void of_pt_user(void **state)
{
    (void)state;
    check_format(open_user, 80000);
}

static void of_di(void **state)
{
    (void)state;
    check_format(open_di, 8000);
}

static void of_nexus(void **state)
{
    (void)state;
    check_format(open_nexus, 80000);
}

static void of_threads(void **state)
{
    (void)state;
    check_format(open_threads, 40000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_etm), cmocka_unit_test(of_pt),    cmocka_unit_test(of_pt_user),
        cmocka_unit_test(of_di),  cmocka_unit_test(of_nexus), cmocka_unit_test(of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
