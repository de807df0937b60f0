/* SPDX-License-Identifier: MIT */
/*
 * Index behind the decoding: while the index waits at some raw byte, everything after it can be
 * found and read, as in a lake that has indexed all of it; and once the index goes on, everything
 * stored is the same, wherever the server ended meanwhile.
 */
#include "lake/away.h"
#include "lake/cut.h"
#include "outline_answers.h"
#include "virtual_pair.h"

#include "decoding/marks.h"
#include "unit/seed.h"

/* Complete outlines of each stream in memory. */
static size_t outlines_kept = SIZE_MAX;

/* `virtual` is the side that indexes behind; its shards may be stored ones. */
static void open_behind(bool is_virtual, uint64_t index_end)
{
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 2,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192,
                                            .virtual_shards = is_virtual,
                                            .index_behind = true,
                                            .outline_bytes = 1,
                                            .segment_bytes = 4096,
                                            .mark_bytes = 1024};
    if (tl_lake_open_on(&virtual.lake, virtual.backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
    atomic_store(&virtual.lake->index_end, index_end);
    atomic_store(&virtual.lake->outlines_kept, outlines_kept);
}

static void begin_behind(const struct sim_options *o, bool is_virtual)
{
    begin(o);
    tl_lake_close(virtual.lake);
    open_behind(is_virtual, 0);
}

static bool has_arrived(struct tl_trace *trace, uint64_t bytes)
{
    pthread_mutex_lock(&trace->lock);
    const bool has = trace->raw_bytes == bytes && (bytes < capture.bytes.n || trace->complete);
    pthread_mutex_unlock(&trace->lock);
    return has;
}

static bool is_idle(struct tl_lake *lake, struct tl_trace *trace)
{
    pthread_mutex_lock(&lake->lock);
    const bool idle = trace->job.state == TL_JOB_NONE;
    pthread_mutex_unlock(&lake->lock);
    return idle;
}

static void wait_arrived(uint64_t bytes)
{
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    int64_t since = 0;
    while (!has_arrived(trace, bytes))
        keep_waiting(&since, "bytes");
    tl_trace_put(trace);
}

/* Wait until the outline is complete, and the index waits. */
static void wait_outlined(uint64_t bytes)
{
    wait_arrived(bytes);
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    int64_t since = 0;
    tl_lake_queue(virtual.lake, trace, 0);
    while (!is_idle(virtual.lake, trace))
        keep_waiting(&since, "outline");
    tl_trace_put(trace);
}

/* Let the index go on up to this raw byte. */
static void index_to(uint64_t end)
{
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    atomic_store(&virtual.lake->index_end, end);
    tl_lake_queue(virtual.lake, trace, 0);
    tl_trace_put(trace);
}

static void ranges_are_equal(uint64_t random)
{
    static const enum tl_range_format formats[] = {TL_FORMAT_TEXT, TL_FORMAT_ZSTF, TL_FORMAT_STF};
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    for (unsigned round = 0; round < 24; round++) {
        const struct tl_stream_row *s =
            &list.rows[0].streams[next(&random) % list.rows[0].n_streams];
        struct tl_range_request request = {
            .trace = "t", .stream = s->name, .format = formats[round % 3]};
        request.from = next(&random) % (s->insns + 1);
        request.to = request.from + next(&random) % (3 * SHARD);
        struct tl_buf a = {0}, b = {0};
        fetch(stored.lake, &request, &a);
        fetch(virtual.lake, &request, &b);
        if (a.n != b.n || memcmp(a.p, b.p, a.n) != 0)
            fail_msg("%s %llu to %llu as %u: %zu and %zu bytes differ", s->name,
                     (unsigned long long)request.from, (unsigned long long)request.to, round % 3,
                     a.n, b.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
    tl_trace_list_free(&list);
}

static void places_are_equal(uint64_t random)
{
    static const enum tl_range_unit units[] = {TL_UNIT_INSN, TL_UNIT_TIME, TL_UNIT_BYTE};
    struct tl_trace_list list;
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    for (unsigned round = 0; round < 60; round++) {
        const struct tl_stream_row *s =
            &list.rows[0].streams[next(&random) % list.rows[0].n_streams];
        const enum tl_range_unit unit = units[round % 3];
        const uint64_t span = s->time_last - s->time_first,
                       at = unit == TL_UNIT_INSN   ? next(&random) % (s->insns + 1)
                            : unit == TL_UNIT_BYTE ? next(&random) % capture.bytes.n
                                                   : s->time_first + next(&random) % (span + 1);
        struct tl_position a, b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        const int x = tl_lake_locate(stored.lake, "t", s->name, unit, at, &a, &fail),
                  y = tl_lake_locate(virtual.lake, "t", s->name, unit, at, &b, &fail);
        if (x != y || (x >= 0 && memcmp(&a, &b, sizeof a) != 0))
            fail_msg("%s: %u at %llu: %d, %d", s->name, (unsigned)unit, (unsigned long long)at, x,
                     y);
    }
    tl_trace_list_free(&list);
}

static void texts_are_equal(void)
{
    struct tl_trace_list list;
    struct tl_buf text = {0};
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    for (size_t i = 0; i < list.rows[0].n_streams; i++) {
        const struct tl_range_request request = {.trace = "t",
                                                 .stream = list.rows[0].streams[i].name,
                                                 .to = UINT64_MAX,
                                                 .format = TL_FORMAT_TEXT};
        fetch(virtual.lake, &request, &text);
    }
    tl_trace_list_free(&list);
    assert_texts_equal(&capture.text, &text);
    tl_buf_fini(&text);
}

/* ---- what is stored ------------------------------------------------------------------------- */

struct names {
    bool shards; /* only these */
    struct tl_buf text;
    size_t n;
};

/* Marks depend on how the bytes arrived, and whether counts of calls are stored on where a server
 * continued. */
static int add_name(void *context, const char *key, uint64_t size)
{
    struct names *const names = context;
    if (strstr(key, "/" TL_MARKS "/") ||
        (names->shards && !strstr(key, ".zstf") && !strstr(key, ".idx")))
        return TL_OK;
    names->n++;
    return tl_buf_add(&names->text, key, strlen(key) + 1);
}

/* A key without its generation: a name whose first push broke off begins with another one. */
static const char *within(const char *key)
{
    return strchr(key + strlen("t/t/"), '/');
}

static void object_is_equal(const char *a, const char *b)
{
    struct tl_buf x = {0}, y = {0};
    assert_string_equal(within(a), within(b));
    assert_int_equal(tl_backend_get_all(stored.backend, a, &x, NULL), TL_OK);
    assert_int_equal(tl_backend_get_all(virtual.backend, b, &y, NULL), TL_OK);
    if (x.n != y.n || memcmp(x.p, y.p, x.n) != 0)
        fail_msg("%s: %zu and %zu bytes differ", a, x.n, y.n);
    tl_buf_fini(&x);
    tl_buf_fini(&y);
}

/* Compare all objects of the trace with those of a lake that indexed at once. */
static void stores_are_equal(bool shards)
{
    struct names a = {.shards = shards}, b = a;
    assert_int_equal(stored.backend->ops->list(stored.backend, "t/t", add_name, &a, NULL), TL_OK);
    assert_int_equal(virtual.backend->ops->list(virtual.backend, "t/t", add_name, &b, NULL), TL_OK);
    assert_int_equal(a.n, b.n);
    const char *key = (char *)a.text.p, *other = (char *)b.text.p;
    for (size_t i = 0; i < a.n; i++) {
        object_is_equal(key, other);
        key += strlen(key) + 1;
        other += strlen(other) + 1;
    }
    tl_buf_fini(&a.text);
    tl_buf_fini(&b.text);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static const struct sim_options runs[] = {
    {.seed = 5, .insns = INSNS, .cores = 2, .image = true, .events = true},
    {.seed = 6, .insns = INSNS, .cores = 2, .image = true, .itm_from = 9000, .rare = 9},
    {.seed = 7, .insns = INSNS / 2, .cores = 1, .image = false, .events = true},
    {.seed = 8, .insns = INSNS / 2, .cores = 1, .image = true, .events = true, .cycles = true},
};
enum { RUNS = sizeof runs / sizeof *runs };

/* Make `stored` the lake to compare the store with. */
static void index_at_once(bool is_virtual)
{
    tl_lake_close(stored.lake);
    open_side(&stored, is_virtual);
    push_sealed(stored.lake, "t", &capture, 3000);
}

static void all_can_be_read_before_it_is_indexed(void **state)
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < 2 * RUNS; i++) {
        outlines_kept = i % 3 ? i % 3 : SIZE_MAX;
        begin_behind(&runs[i / 2], i % 2);
        index_at_once(i % 2);
        atomic_store(&virtual.lake->index_end, next(&random) % capture.bytes.n);
        push_all(virtual.lake, "t", &capture, 3000);
        for (unsigned part = 0; part < 3; part++) {
            wait_outlined(capture.bytes.n);
            texts_are_equal();
            ranges_are_equal(random);
            places_are_equal(random);
            index_to(capture.bytes.n * part / 3);
        }
        index_to(UINT64_MAX);
        assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
        texts_are_equal();
        stores_are_equal(false);
        end();
    }
}

/* Stopped or cut from power wherever the index, and the outline, happen to be. */
static void ends_of_the_server_change_nothing(void **state)
{
    uint64_t random = test_seed();
    for (unsigned i = 0; i < 4; i++) {
        const bool is_virtual = i % 2;
        outlines_kept = i + 1;
        begin_behind(&runs[i / 2 * 3], is_virtual);
        index_at_once(is_virtual);
        for (unsigned part = 1; part <= 6; part++) {
            if (part % 2)
                tl_backend_memory_refuse(virtual.backend, 5 * part + next(&random) % 7, 1, TL_OK);
            atomic_store(&virtual.lake->index_end, next(&random) % (capture.bytes.n * part / 6));
            push_part(capture.bytes.n * part / 6, &(bool){true});
            tl_lake_close(virtual.lake);
            tl_backend_memory_boot(virtual.backend, random + part);
            open_behind(is_virtual, 0);
        }
        push_all(virtual.lake, "t", &capture, 3000);
        wait_outlined(capture.bytes.n);
        ranges_are_equal(random);
        texts_are_equal();
        answers_are_equal(random);
        index_to(UINT64_MAX);
        assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
        texts_are_equal();
        stores_are_equal(true);
        end();
    }
}

/* Streams of perf.data, most of whose records come long after their trace. */
static void compare_perf(void *context)
{
    uint64_t *const random = context;
    assert_int_equal(tl_buf_add(&capture.setup, "", 1), TL_OK);
    tl_lake_close(virtual.lake);
    open_behind(next(random) % 2, next(random) % (capture.bytes.n + 1));
    push_sealed(stored.lake, "t", &capture, 500);
    push_all(virtual.lake, "t", &capture, 500);
    lake_text(stored.lake, "t", &capture.text);
    wait_outlined(capture.bytes.n);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    if (list.rows[0].generation == 1) /* not decoded again with code that it has itself */
        texts_are_equal();
    tl_trace_list_free(&list);
    index_to(UINT64_MAX);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    texts_are_equal();
}

/* Questions about what is only outlined are answered as if all were indexed. */
static void questions_are_answered_before_it_is_indexed(void **state)
{
    uint64_t random = test_seed();
    for (size_t i = 0; i < 2 * RUNS; i++) {
        outlines_kept = i % 3 ? i % 3 : SIZE_MAX;
        begin_behind(&runs[i / 2], i % 2);
        index_at_once(i % 2);
        atomic_store(&virtual.lake->index_end, i < 2 ? 0 : next(&random) % capture.bytes.n);
        push_all(virtual.lake, "t", &capture, 3000);
        for (unsigned part = 1; part <= 3; part++) {
            wait_outlined(capture.bytes.n);
            answers_are_equal(random + part);
            index_to(capture.bytes.n * part / 3);
        }
        index_to(UINT64_MAX);
        assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
        answers_are_equal(random);
        stores_are_equal(false);
        end();
    }
}

/* Complete outlines wait for the index, thousands of them: all that they have is places, and most
 * of them are put away. */
static void outlines_are_small(void)
{
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    struct tl_gen *const outline = tl_trace_outline(trace);
    struct tl_lane *const lane = tl_gen_lane_at(outline, 0);
    pthread_mutex_lock(&lane->lock);
    if (outlines_kept < SIZE_MAX) {
        assert_in_range(tl_away_n(lane->away[0]), 100, 1000);
        assert_in_range(lane->n_pending, 1, 50); /* those of the last piece */
    } else {
        assert_in_range(lane->n_pending, 100, 1000);
    }
    for (size_t i = 0; i < lane->n_pending; i++) {
        const struct tl_shard_index *const index = &lane->pending[i]->index;
        assert_int_equal(index->buckets.cap, 0);
        assert_int_equal(index->cap_code, 0);
        assert_null(index->stats.functions);
    }
    pthread_mutex_unlock(&lane->lock);
    tl_gen_put(outline);
    tl_trace_put(trace);
}

/* Those that have no place, or several, where they end. */
static void others_say_so(const struct tl_stream_row *s)
{
    struct tl_fail fail = {0};
    struct tl_profile profile;
    const struct tl_profile_request tree = {
        .trace = "t", .stream = s->name, .unit = TL_UNIT_INSN, .to = UINT64_MAX};
    assert_int_equal(tl_lake_profile(virtual.lake, &tree, &profile, &fail), TL_OK);
    assert_true(profile.behind);
    tl_profile_fini(&profile);
    struct tl_compare compare;
    const struct tl_compare_request both = {.a = {"t", s->name, 0, UINT64_MAX},
                                            .b = {"t", s->name, 0, SHARD}};
    assert_int_equal(tl_lake_compare(virtual.lake, &both, &compare, &fail), TL_OK);
    assert_true(compare.behind);
    assert_in_range(compare.a_to, SHARD, s->insns - SHARD);
    assert_int_equal(compare.b_to, SHARD);
    tl_compare_fini(&compare);
    struct tl_call_info call;
    assert_int_equal(tl_lake_call(virtual.lake, "t", s->name, 9, TL_CALL_INNERMOST, &call, &fail),
                     TL_OK);
    assert_true(call.behind);
    assert_in_range(call.behind_from, SHARD, s->insns - SHARD);
    tl_call_info_fini(&call);
    assert_int_equal(tl_lake_call(virtual.lake, "t", s->name, s->insns - 1, 0, &call, &fail),
                     TL_NOTFOUND);
    assert_non_null(strstr(fail.text, "is indexed up to"));
}

/* An answer that cannot have all at once says how far it goes, and has all up to there. */
static void answer_a_large_part(size_t kept)
{
    struct tl_fail fail = {0};
    struct tl_stats a, b;
    struct tl_tile tile;
    const struct sim_options o = {.seed = 9, .insns = 150 * SHARD, .cores = 1, .image = true};
    outlines_kept = kept;
    begin_behind(&o, true);
    index_at_once(true);
    push_all(virtual.lake, "t", &capture, 3000);
    wait_outlined(capture.bytes.n);
    outlines_are_small();
    const struct tl_stream_row s = some_stream(&(uint64_t){0});
    assert_int_equal(tl_lake_stats(virtual.lake, "t", s.name, 0, UINT64_MAX, &b, &fail), TL_OK);
    assert_true(b.behind);
    assert_in_range(b.to, SHARD, s.insns - SHARD);
    assert_int_equal(tl_lake_stats(stored.lake, "t", s.name, 0, b.to, &a, &fail), TL_OK);
    assert_int_equal(a.insns, b.insns);
    assert_int_equal(a.taken, b.taken);
    assert_int_equal(a.n_run, b.n_run);
    assert_int_equal(tl_lake_tile(virtual.lake, "t", TL_UNIT_INSN, 6, 0, 0, 0, 0, &tile, &fail),
                     TL_OK);
    assert_true(tile.lanes[0]->behind);
    const uint64_t from = tile.lanes[0]->behind_from;
    for (size_t i = 0; i < TL_TILE_BUCKETS; i++)
        if (i * tile.bucket >= from)
            assert_int_equal(tile.lanes[0]->insns[i], 0);
    others_say_so(&s);
    tl_tile_fini(&tile);
    tl_stats_fini(&a);
    tl_stats_fini(&b);
    index_to(UINT64_MAX);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    stats_are_equal_in(s.name, 0, UINT64_MAX);
    end();
}

static void a_large_part_is_answered_up_to_a_bound(void **state)
{
    answer_a_large_part(SIZE_MAX);
    answer_a_large_part(8);
}

static void perf_data_can_be_read_before_it_is_indexed(void **state)
{
    uint64_t random = test_seed();
    each_perf_file(compare_perf, &random);
}

static uint64_t metric(const char *name)
{
    struct tl_buf text = {0};
    char line[96];
    assert_int_equal(tl_lake_metrics(virtual.lake, &text), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    snprintf(line, sizeof line, "\ntracelake_%s ", name);
    const char *const at = strstr((const char *)text.p, line);
    assert_non_null(at);
    const uint64_t value = strtoull(at + strlen(line), NULL, 10);
    tl_buf_fini(&text);
    return value;
}

/* Where the index is made behind only if it lags, that begins and ends by itself. */
static void a_lag_begins_and_ends_it(void **state)
{
    static const struct {
        unsigned index, to; /* percent of the capture */
        bool outlined;
    } steps[] = {{100, 20, false}, {20, 60, true}, {100, 60, false}, {60, 80, false}};
    begin_behind(&runs[0], false);
    index_at_once(false);
    virtual.lake->options.index_behind = false;
    virtual.lake->options.index_auto = true;
    virtual.lake->options.lag_bytes = capture.bytes.n / 4;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const uint64_t to = capture.bytes.n * steps[i].to / 100 / 2000 * 2000;
        bool up = true;
        atomic_store(&virtual.lake->index_end, capture.bytes.n * steps[i].index / 100);
        push_part(to, &up);
        assert_true(up);
        wait_outlined(to);
        wait_outlined(to); /* it ends with the job after the one that has caught up */
        struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
        struct tl_gen *const outline = tl_trace_outline(trace);
        assert_int_equal(outline != NULL, steps[i].outlined);
        assert_int_equal(metric("index_behind"), steps[i].outlined);
        assert_int_equal(metric("index_lag_bytes") > 0, steps[i].outlined);
        assert_int_equal(metric("index_lag_instructions") > 0, steps[i].outlined);
        if (steps[i].outlined)
            assert_int_equal(metric("decode_lag_bytes"), 0);
        tl_gen_put(outline);
        tl_trace_put(trace);
    }
    index_to(UINT64_MAX);
    push_sealed(virtual.lake, "t", &capture, 3000);
    texts_are_equal();
    stores_are_equal(false);
    end();
}

/* ---- the index's share ---------------------------------------------------------------------- */

enum { PIECES = 60 };
static const struct tl_lake_rooms *rooms; /* the lake's own */
static atomic_bool pushed;
static atomic_ullong indexed; /* raw bytes, when the outline was complete; 0: it is not yet */

/* All of the capture is there from the first job on, as if a rig never paused. */
static int64_t run_pushed(struct tl_trace *trace)
{
    if (!atomic_load(&pushed))
        return -1;
    const int64_t delay = rooms->run_job(trace);
    struct tl_gen *const outline = tl_trace_outline(trace);
    if (outline && atomic_load(&outline->decoded) == capture.bytes.n && !atomic_load(&indexed))
        atomic_store(&indexed, atomic_load(&trace->serving->decoded));
    tl_gen_put(outline);
    return delay;
}

static void the_index_goes_on_while_bytes_come(void **state)
{
    begin_behind(&runs[0], false);
    index_at_once(false);
    rooms = virtual.lake->rooms;
    struct tl_lake_rooms held = *rooms;
    held.run_job = run_pushed;
    virtual.lake->rooms = &held;
    /* What arrives together is decoded together. */
    const uint64_t piece = capture.bytes.n / PIECES;
    atomic_store(&virtual.lake->outline_piece, piece);
    atomic_store(&virtual.lake->index_end, UINT64_MAX);
    for (unsigned i = 1; i < PIECES; i++) {
        bool up = true;
        push_part(i * piece, &up);
        assert_true(up);
        wait_arrived(i * piece);
    }
    push_all(virtual.lake, "t", &capture, 3000);
    wait_arrived(capture.bytes.n);
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    int64_t since = 0;
    while (!is_idle(virtual.lake, trace))
        keep_waiting(&since, "jobs");
    atomic_store(&pushed, true);
    tl_lake_queue(virtual.lake, trace, 0);
    tl_trace_put(trace);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    assert_in_range(atomic_load(&indexed), 4 * piece, 8 * piece);
    texts_are_equal();
    stores_are_equal(false);
    virtual.lake->rooms = rooms;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_can_be_read_before_it_is_indexed),
        cmocka_unit_test(questions_are_answered_before_it_is_indexed),
        cmocka_unit_test(a_large_part_is_answered_up_to_a_bound),
        cmocka_unit_test(ends_of_the_server_change_nothing),
        cmocka_unit_test(perf_data_can_be_read_before_it_is_indexed),
        cmocka_unit_test(a_lag_begins_and_ends_it),
        cmocka_unit_test(the_index_goes_on_while_bytes_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
