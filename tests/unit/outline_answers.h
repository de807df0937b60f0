/* SPDX-License-Identifier: MIT */
/*
 * Questions to both lakes of virtual_pair.h, whose answers must be the same, whatever the one
 * called `virtual` has indexed so far.
 */
#ifndef TL_UNIT_OUTLINE_ANSWERS_H
#define TL_UNIT_OUTLINE_ANSWERS_H

#include "lake_analysis.h"
#include "lake_find.h"
#include "lake_lanes.h"
#include "lake_sql.h"
#include "lake_stats.h"
#include "lake_tiles.h"
#include "lake_timing.h"
#include "virtual_pair.h"

static uint64_t next(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

/* The stream's name and positions, once all are indexed. */
static struct tl_stream_row some_stream(uint64_t *random)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    const struct tl_stream_row row = list.rows[0].streams[next(random) % list.rows[0].n_streams];
    tl_trace_list_free(&list);
    return row;
}

static void tiles_are_equal(uint64_t random)
{
    struct tl_fail fail = {0};
    for (unsigned round = 0; round < 16; round++) {
        const enum tl_range_unit axis = round % 2 ? TL_UNIT_TIME : TL_UNIT_INSN;
        const struct tl_stream_row s = some_stream(&random);
        const unsigned level = next(&random) % 7;
        const uint64_t span = axis == TL_UNIT_TIME ? s.time_last : s.insns,
                       index = next(&random) % ((span >> (2 * level + 9)) + 1);
        struct tl_tile a, b;
        assert_int_equal(tl_lake_tile(stored.lake, "t", axis, level, index, 0, 7, 0, &a, &fail),
                         TL_OK);
        assert_int_equal(tl_lake_tile(virtual.lake, "t", axis, level, index, 0, 7, 0, &b, &fail),
                         TL_OK);
        assert_int_equal(a.n_lanes, b.n_lanes);
        for (size_t i = 0; i < a.n_lanes; i++) {
            const struct tl_tile_lane *const x = a.lanes[i], *const y = b.lanes[i];
            assert_false(y->behind);
#define SAME(column)                                                                               \
    if (memcmp(x->column, y->column, sizeof x->column) != 0)                                       \
    fail_msg("lane %zu, axis %u, level %u, tile %llu: %s differs", i, (unsigned)axis, level,       \
             (unsigned long long)index, #column)
            SAME(insns);
            SAME(coverage);
            SAME(lost);
            SAME(function);
            SAME(share);
            SAME(privilege);
            SAME(branches);
            SAME(event_mask);
            SAME(event_count);
            SAME(depth_min);
            SAME(depth_max);
#undef SAME
            assert_int_equal(x->n_breaks, y->n_breaks);
        }
        tl_tile_fini(&a);
        tl_tile_fini(&b);
    }
}

static void stats_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_stats a, b;
    assert_int_equal(tl_lake_stats(stored.lake, "t", stream, from, to, &a, &fail), TL_OK);
    assert_int_equal(tl_lake_stats(virtual.lake, "t", stream, from, to, &b, &fail), TL_OK);
    assert_false(b.behind);
    assert_int_equal(a.from, b.from);
    assert_int_equal(a.to, b.to);
    assert_int_equal(a.insns, b.insns);
    assert_int_equal(a.taken, b.taken);
    assert_int_equal(a.n_run, b.n_run);
    assert_int_equal(a.n_counts, b.n_counts);
    for (size_t i = 0; i < a.n_counts; i++)
        assert_int_equal(a.counts[i].n, b.counts[i].n);
    for (size_t i = 0; i < a.n_functions; i++) {
        assert_int_equal(a.functions[i].insns, b.functions[i].insns);
        assert_int_equal(a.functions[i].calls, b.functions[i].calls);
    }
    tl_stats_fini(&a);
    tl_stats_fini(&b);
}

static void tables_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_function_table_request request = {
        .range = {.trace = "t", .stream = stream, .unit = TL_UNIT_INSN, .from = from, .to = to}};
    struct tl_function_table a, b;
    const int r = tl_lake_function_table(stored.lake, &request, &a, &fail);
    assert_int_equal(tl_lake_function_table(virtual.lake, &request, &b, &fail), r);
    assert_false(b.about.behind);
    assert_int_equal(a.about.to, b.about.to);
    assert_int_equal(a.about.ran, b.about.ran);
    assert_int_equal(a.about.lost, b.about.lost);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        if (a.p[i].calls != b.p[i].calls || a.p[i].self != b.p[i].self)
            fail_msg("%s %llu to %llu: row %zu differs", stream, (unsigned long long)from,
                     (unsigned long long)to, i);
    tl_function_table_fini(&a);
    tl_function_table_fini(&b);
}

static void hits_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    const struct tl_find_request request = {.trace = "t",
                                            .stream = stream,
                                            .kind = TL_FIND_EVENT,
                                            .text = "exception",
                                            .from = from,
                                            .to = to,
                                            .count = true};
    struct tl_found a, b;
    const int r = tl_lake_find(stored.lake, &request, &a, &fail);
    assert_int_equal(tl_lake_find(virtual.lake, &request, &b, &fail), r);
    assert_false(b.behind);
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.total, b.total);
    for (size_t i = 0; i < a.n; i++)
        assert_int_equal(a.hits[i].at.insn, b.hits[i].at.insn);
    tl_found_fini(&a);
    tl_found_fini(&b);
}

static void trees_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    for (unsigned weight = TL_WEIGHT_INSNS; weight <= TL_WEIGHT_TIME; weight++) {
        const struct tl_profile_request request = {.trace = "t",
                                                   .stream = stream,
                                                   .unit = TL_UNIT_INSN,
                                                   .from = from,
                                                   .to = to,
                                                   .weight = (enum tl_weight)weight};
        struct tl_profile a, b;
        const int r = tl_lake_profile(stored.lake, &request, &a, &fail);
        if (tl_lake_profile(virtual.lake, &request, &b, &fail) != r)
            fail_msg("%s %llu to %llu: %s", stream, (unsigned long long)from,
                     (unsigned long long)to, fail.text);
        assert_false(b.behind);
        assert_int_equal(a.insns, b.insns);
        assert_int_equal(a.n_nodes, b.n_nodes);
        assert_int_equal(a.n_functions, b.n_functions);
        for (size_t i = 0; i < a.n_nodes; i++)
            assert_int_equal(a.nodes[i].total, b.nodes[i].total);
        tl_profile_fini(&a);
        tl_profile_fini(&b);
    }
}

static void slices_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    const struct tl_slices_request request = {
        .trace = "t", .stream = stream, .axis = TL_UNIT_INSN, .from = from, .to = to};
    struct tl_slices a, b;
    assert_int_equal(tl_lake_slices(stored.lake, &request, &a, &fail), TL_OK);
    assert_int_equal(tl_lake_slices(virtual.lake, &request, &b, &fail), TL_OK);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        if (a.p[i].from != b.p[i].from || a.p[i].to != b.p[i].to || a.p[i].pc != b.p[i].pc ||
            a.p[i].depth != b.p[i].depth)
            fail_msg("%s %llu to %llu: slice %zu differs", stream, (unsigned long long)from,
                     (unsigned long long)to, i);
    tl_slices_fini(&a);
    tl_slices_fini(&b);
}

/* ---- what is only walked --------------------------------------------------------------------- */

/* The rows of an answer in SQL, as bytes. */
static int take_rows(void *context, const struct tl_sql_batch *batch)
{
    struct tl_buf *const out = context;
    int r = TL_OK;
    assert_false(batch->truncated);
    for (size_t row = 0; row < batch->n_rows && r >= 0; row++)
        for (size_t i = 0; i < batch->n_columns && r >= 0; i++) {
            const struct tl_sql_column *const c = &batch->columns[i];
            if (c->nulls && c->nulls[row / 8] >> row % 8 & 1) {
                r = tl_buf_add(out, "-", 1);
            } else if (c->kind == TL_SQL_TEXT) {
                const char *const text = c->texts[tl_le32(c->values + 4 * row)];
                r = tl_buf_add(out, text, strlen(text) + 1);
            } else {
                r = tl_buf_add(out, c->values + 8 * row, 8);
            }
        }
    return r;
}

static void ask_sql(struct tl_lake *lake, const char *text, struct tl_buf *out)
{
    struct tl_fail fail = {0};
    const struct tl_sql_request request = {.trace = "t", .text = text, .rows = TL_SQL_MOST};
    if (tl_lake_sql(lake, &request, take_rows, out, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
}

static void tables_in_sql_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    static const char *const columns[][2] = {
        {"position, time, pc, function", "insn"},
        {"position, kind, number, pc, function, text, time", "event"},
        {"position, time, kind", "gap"},
        {"position, time, last_position, insns, duration, function, caller, depth, kind, ended",
         "call"},
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char text[512];
        struct tl_buf a = {0}, b = {0};
        snprintf(text, sizeof text,
                 "SELECT %s FROM %s WHERE stream = '%s' AND position BETWEEN %llu AND %llu",
                 columns[i][0], columns[i][1], stream, (unsigned long long)from,
                 (unsigned long long)(to < INT64_MAX ? to : INT64_MAX));
        ask_sql(stored.lake, text, &a);
        ask_sql(virtual.lake, text, &b);
        if (a.n != b.n || (a.n && memcmp(a.p, b.p, a.n) != 0))
            fail_msg("%s: %zu and %zu bytes differ", text, a.n, b.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
}

static int take_columns(void *context, const struct tl_sql_batch *batch)
{
    int r = TL_OK;
    for (size_t i = 0; i < batch->n_columns && r >= 0; i++) {
        const struct tl_sql_column *const c = &batch->columns[i];
        r = tl_buf_add(context, c->values, batch->n_rows * tl_sql_width(c->kind));
    }
    return r;
}

static void columns_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_buf a = {0}, b = {0};
    const struct tl_insn_columns_request request = {
        .trace = "t",
        .stream = stream,
        .unit = TL_UNIT_INSN,
        .from = from,
        .to = to,
        .columns = {TL_INSN_POSITION, TL_INSN_TIME, TL_INSN_PC, TL_INSN_OPCODE},
        .n_columns = 4};
    assert_int_equal(tl_lake_insn_columns(stored.lake, &request, take_columns, &a, &fail), TL_OK);
    assert_int_equal(tl_lake_insn_columns(virtual.lake, &request, take_columns, &b, &fail), TL_OK);
    assert_int_equal(a.n, b.n);
    if (a.n)
        assert_memory_equal(a.p, b.p, a.n);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

static void regions_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_simpoints_found a, b;
    const struct tl_simpoints_request request = {
        .trace = "t", .stream = stream, .from = from, .to = to, .interval = 500, .most = 5};
    assert_int_equal(tl_lake_simpoints(stored.lake, &request, &a, &fail), TL_OK);
    assert_int_equal(tl_lake_simpoints(virtual.lake, &request, &b, &fail), TL_OK);
    assert_int_equal(a.from, b.from);
    assert_int_equal(a.to, b.to);
    assert_int_equal(a.intervals, b.intervals);
    assert_int_equal(a.n, b.n);
    for (size_t i = 0; i < a.n; i++)
        assert_int_equal(a.p[i].first, b.p[i].first);
    tl_simpoints_found_fini(&a);
    tl_simpoints_found_fini(&b);
}

/* ---- what needs the index of more than is asked about ---------------------------------------- */

static void calls_are_equal_at(const char *stream, uint64_t insn)
{
    struct tl_fail fail = {0};
    struct tl_call_info a, b;
    const int r = tl_lake_call(stored.lake, "t", stream, insn, TL_CALL_INNERMOST, &a, &fail);
    assert_int_equal(tl_lake_call(virtual.lake, "t", stream, insn, TL_CALL_INNERMOST, &b, &fail),
                     r);
    if (r >= 0) {
        assert_false(b.behind);
        assert_string_equal(a.name, b.name);
        assert_int_equal(a.from, b.from);
        assert_int_equal(a.to, b.to);
        assert_int_equal(a.self, b.self);
        assert_int_equal(a.number, b.number);
        assert_int_equal(a.calls, b.calls);
        assert_int_equal(a.total, b.total);
        assert_int_equal(a.has_next, b.has_next);
        assert_int_equal(a.next, b.next);
        assert_int_equal(a.has_previous, b.has_previous);
        assert_int_equal(a.previous, b.previous);
    }
    tl_call_info_fini(&a);
    tl_call_info_fini(&b);
}

/* A stream with a part of itself. */
static void differences_are_equal_in(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_compare a, b;
    const struct tl_compare_request request = {.a = {"t", stream, 0, to},
                                               .b = {"t", stream, from, to}};
    const int r = tl_lake_compare(stored.lake, &request, &a, &fail);
    assert_int_equal(tl_lake_compare(virtual.lake, &request, &b, &fail), r);
    assert_false(b.behind);
    assert_int_equal(a.a_to, b.a_to);
    assert_int_equal(a.b_to, b.b_to);
    assert_int_equal(a.total_hunks, b.total_hunks);
    assert_int_equal(a.only_a, b.only_a);
    assert_int_equal(a.n_functions, b.n_functions);
    for (size_t i = 0; i < a.n_functions; i++) {
        assert_int_equal(a.functions[i].self_a, b.functions[i].self_a);
        assert_int_equal(a.functions[i].calls_b, b.functions[i].calls_b);
    }
    tl_compare_fini(&a);
    tl_compare_fini(&b);
}

static void answers_are_equal(uint64_t random)
{
    tiles_are_equal(random);
    for (unsigned round = 0; round < 4; round++) {
        const struct tl_stream_row s = some_stream(&random);
        const uint64_t from = round == 0 ? 0 : next(&random) % (s.insns + 1),
                       to = round == 0 ? UINT64_MAX : from + next(&random) % (5 * SHARD);
        stats_are_equal_in(s.name, from, to);
        hits_are_equal_in(s.name, from, to);
        if (strncmp(s.protocol, "itm", 3) == 0)
            continue;
        tables_are_equal_in(s.name, from, to);
        trees_are_equal_in(s.name, from, to);
        slices_are_equal_in(s.name, from, to);
        tables_in_sql_are_equal_in(s.name, from, to);
        columns_are_equal_in(s.name, from, to);
        regions_are_equal_in(s.name, from, to);
        calls_are_equal_at(s.name, from);
        differences_are_equal_in(s.name, from, to);
    }
}

#endif
