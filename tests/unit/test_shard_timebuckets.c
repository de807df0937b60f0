/* SPDX-License-Identifier: MIT */
/* Buckets in time of random spans, against sums over each tick. */
#include "builder/time_buckets.h"
#include "shard/bucket.h"
#include "unit/random.h"

enum { SPANS = 3000, FUNCTIONS = 90, SHARDS = 4, WHOLE = TL_TIME_LEVELS - 1 };

static struct tl_timed_span spans[SPANS];
static const struct tl_axis axes[] = {
    {.hz = 0}, {.hz = 100000000}, {.hz = 3000000000}, {.hz = 1000000}};

/* Calls of few and many ticks, an idle processor, losses; busy and quiet times. */
static void make_spans(void)
{
    uint64_t time = next() % 100000, position = 0;
    for (size_t i = 0; i < SPANS; i++) {
        const unsigned what = next() % 100;
        const bool missing = what < 3, idle = what >= 96;
        const uint64_t ticks = missing         ? next() % 30000
                               : idle          ? next() % 200000
                               : i % 500 < 250 ? next() % 40
                                               : next() % 3;
        const uint64_t insns = missing ? 0 : idle ? next() % 2 : next() % 300;
        spans[i] = (struct tl_timed_span){
            .time = time,
            .end_time = time + ticks,
            .position = position,
            .end = position + insns,
            .function = missing || what == 10 ? TL_NO_FUNCTION
                                              : next() % FUNCTIONS % (1 + next() % FUNCTIONS),
            .depth = next() % 9,
            .privilege = (uint8_t)(next() % 3 ? next() % 4 : 15),
            .kind = !missing    ? TL_TIMED_RUN
                    : what == 0 ? TL_TIMED_LOST
                    : what == 1 ? TL_TIMED_SWITCHED_OUT
                                : TL_TIMED_OFF,
        };
        time += ticks;
        position += insns;
    }
}

/* What a bucket must have: tick by tick would take too long, but each edge is looked for. */
struct sums {
    uint64_t kinds[TL_TIMED_KINDS], functions[FUNCTIONS + 1], privilege[4];
};

static struct sums sums_of(const struct tl_axis *axis, unsigned level, uint64_t number)
{
    struct sums s = {{0}};
    const uint64_t from = tl_axis_ticks(axis, number << 2 * level),
                   to = tl_axis_ticks(axis, (number + 1) << 2 * level);
    for (size_t i = 0; i < SPANS; i++) {
        const struct tl_timed_span *const span = &spans[i];
        const uint64_t a = span->time > from ? span->time : from,
                       b = span->end_time < to ? span->end_time : to;
        if (a >= b)
            continue;
        s.kinds[span->kind] += b - a;
        if (span->kind != TL_TIMED_RUN)
            continue;
        s.functions[span->function == TL_NO_FUNCTION ? 0 : span->function + 1] += b - a;
        if (span->privilege < 4)
            s.privilege[span->privilege] += b - a;
    }
    return s;
}

/* Winner right, shares within two points. */
static void check_bucket(struct tl_time_bucket *b, const struct tl_axis *axis, unsigned level)
{
    const struct sums s = sums_of(axis, level, b->number);
    uint64_t most = 0, got = 0;
    assert_memory_equal(b->ticks, s.kinds, sizeof s.kinds);
    assert_memory_equal(b->privilege, s.privilege, sizeof s.privilege);
    for (size_t i = 0; i <= FUNCTIONS; i++)
        most = s.functions[i] > most ? s.functions[i] : most;
    tl_time_bucket_rank(b);
    assert_true(most == 0 || b->n_shares > 0);
    for (uint32_t i = 0; i < b->n_shares; i++) {
        const struct tl_time_share *const share = &b->shares[i];
        assert_true(share->ticks <= s.functions[share->function]);
        assert_true((s.functions[share->function] - share->ticks) * 50 <= s.kinds[TL_TIMED_RUN]);
        got += share->ticks;
    }
    if (most > 0)
        assert_true(s.functions[b->shares[0].function] * 100 + s.kinds[TL_TIMED_RUN] >= most * 100);
    assert_true(got <= s.kinds[TL_TIMED_RUN]);
}

static struct tl_time_buckets *counter(const struct tl_axis *axis)
{
    struct tl_time_buckets *const tb = calloc(1, sizeof *tb);
    assert_non_null(tb);
    tl_time_buckets_init(tb, axis);
    return tb;
}

static struct tl_time_buckets *saved_and_loaded(struct tl_time_buckets *tb)
{
    struct tl_buf bytes = {0}, again = {0};
    struct tl_state save = {.out = &bytes}, resave = {.out = &again};
    struct tl_time_buckets *const loaded = counter(&tb->axis);
    tl_time_buckets_state(tb, &save);
    assert_int_equal(save.rc, TL_OK);
    struct tl_state load = {.in = {bytes.p, bytes.n}};
    tl_time_buckets_state(loaded, &load);
    assert_int_equal(load.rc, TL_OK);
    assert_int_equal(load.in.n, 0);
    tl_time_buckets_state(loaded, &resave);
    assert_int_equal(bytes.n, again.n);
    assert_memory_equal(bytes.p, again.p, bytes.n);
    tl_buf_fini(&bytes);
    tl_buf_fini(&again);
    tl_time_buckets_fini(tb);
    free(tb);
    return loaded;
}

static void assert_same(const struct tl_time_pyramid *a, const struct tl_time_pyramid *b)
{
    struct tl_buf x = {0}, y = {0};
    assert_int_equal(tl_time_pyramid_encode(a, &x), TL_OK);
    assert_int_equal(tl_time_pyramid_encode(b, &y), TL_OK);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n);
    tl_buf_fini(&x);
    tl_buf_fini(&y);
}

static void check_encoding(const struct tl_time_pyramid *p)
{
    struct tl_buf bytes = {0};
    struct tl_time_pyramid read = {0}, copy = {0};
    assert_int_equal(tl_time_pyramid_encode(p, &bytes), TL_OK);
    struct tl_varint_reader in = {bytes.p, bytes.p + bytes.n, false};
    assert_int_equal(tl_time_pyramid_read(&read, &in), TL_OK);
    assert_true(in.p == in.end);
    assert_same(p, &read);
    assert_int_equal(tl_time_pyramid_copy(&copy, p), TL_OK);
    assert_same(p, &copy);
    tl_time_pyramid_fini(&read);
    tl_time_pyramid_fini(&copy);
    /* Whatever is damaged, reading ends. */
    for (size_t i = 0; i < bytes.n; i += 1 + next() % 64) {
        const uint8_t before = bytes.p[i];
        bytes.p[i] ^= (uint8_t)(1 << next() % 8);
        in = (struct tl_varint_reader){bytes.p, bytes.p + bytes.n - next() % 2, false};
        (void)!tl_time_pyramid_read(&read, &in);
        tl_time_pyramid_fini(&read);
        bytes.p[i] = before;
    }
    tl_buf_fini(&bytes);
}

/* Count all spans in shards, of the whole levels of each `sums` gets the buckets of one level. */
static void count(const struct tl_axis *axis, bool restarts, struct tl_time_pyramid *shards)
{
    struct tl_time_buckets *tb = counter(axis);
    for (size_t i = 0; i < SPANS; i++) {
        if (restarts && i % 97 == 0)
            tb = saved_and_loaded(tb);
        tl_time_buckets_span(tb, &spans[i]);
        if ((i + 1) % (SPANS / SHARDS) == 0)
            tl_time_buckets_take(tb, &shards[i / (SPANS / SHARDS)]);
    }
    assert_false(tb->failed);
    tl_time_buckets_fini(tb);
    free(tb);
}

/* The buckets of a level of all shards. */
static bool sum_up(const struct tl_time_pyramid *shards, unsigned level, struct tl_time_level *out)
{
    for (size_t i = 0; i < SHARDS; i++) {
        unsigned shift;
        const struct tl_time_level *const from = tl_time_pyramid_at(&shards[i], level, &shift);
        if (!from)
            return false;
        for (size_t k = 0; k < from->n; k++) {
            struct tl_time_bucket *const to = tl_time_level_at(out, from->p[k].number >> shift);
            assert_int_equal(tl_time_bucket_merge(to, &from->p[k]), TL_OK);
        }
    }
    return true;
}

static void all_levels_are_right(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
        struct tl_time_pyramid shards[SHARDS] = {{0}}, again[SHARDS] = {{0}};
        unsigned levels = 0;
        make_spans();
        count(&axes[a], false, shards);
        count(&axes[a], true, again);
        for (size_t i = 0; i < SHARDS; i++) {
            assert_same(&shards[i], &again[i]);
            check_encoding(&shards[i]);
            assert_true(shards[i].levels[0].n <= 16 + spans[SPANS - 1].end / TL_TIME_POSITIONS);
        }
        for (unsigned level = 0; level <= WHOLE; level++) {
            struct tl_time_level all = {0};
            const bool known = sum_up(shards, level, &all);
            uint64_t insns = 0;
            for (size_t i = 0; known && i < all.n; i++) {
                check_bucket(&all.p[i], &axes[a], level);
                insns += all.p[i].insns;
            }
            if (known)
                assert_int_equal(insns, spans[SPANS - 1].end);
            levels += known;
            tl_time_level_fini(&all);
        }
        assert_true(levels > 10);
        for (size_t i = 0; i < SHARDS; i++) {
            tl_time_pyramid_fini(&shards[i]);
            tl_time_pyramid_fini(&again[i]);
        }
    }
}

/* A snapshot changes nothing, and has what has come so far. */
static void snapshots_make_no_difference(void **state)
{
    (void)state;
    struct tl_time_buckets *const tb = counter(&axes[1]);
    struct tl_time_pyramid plain[SHARDS] = {{0}}, last = {0};
    make_spans();
    count(&axes[1], false, plain);
    for (size_t i = 0; i < SPANS / SHARDS; i++) {
        tl_time_buckets_span(tb, &spans[i]);
        if (i % 41 != 0)
            continue;
        struct tl_time_pyramid now = {0};
        uint64_t ticks = 0;
        assert_int_equal(tl_time_buckets_snapshot(tb, &now), TL_OK);
        for (unsigned k = 0; now.n > 0 && k < now.levels[0].n; k++)
            for (size_t j = 0; j < TL_TIMED_KINDS; j++)
                ticks += now.levels[0].p[k].ticks[j];
        assert_int_equal(ticks, spans[i].end_time - spans[0].time);
        tl_time_pyramid_fini(&now);
    }
    tl_time_buckets_take(tb, &last);
    assert_same(&plain[0], &last);
    for (size_t i = 0; i < SHARDS; i++)
        tl_time_pyramid_fini(&plain[i]);
    tl_time_pyramid_fini(&last);
    tl_time_buckets_fini(tb);
    free(tb);
}

static void assert_same_times(const struct tl_time_level *a, const struct tl_time_level *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        const struct tl_time_bucket *const x = &a->p[i], *const y = &b->p[i];
        assert_memory_equal(x->ticks, y->ticks, sizeof x->ticks);
        assert_int_equal(x->insns, y->insns);
        assert_int_equal(x->n_shares, y->n_shares);
        for (uint32_t k = 0; k < x->n_shares; k++) {
            assert_int_equal(x->shares[k].function, y->shares[k].function);
            assert_int_equal(x->shares[k].ticks, y->shares[k].ticks);
        }
    }
}

/* Count `n` ticks with an instruction each, then one with many, in which there may be an item, and
 * one more. */
static void count_ticks(uint64_t n, bool item, struct tl_time_pyramid *out)
{
    const struct tl_item exception = {.kind = TL_ITEM_EXCEPTION};
    struct tl_time_buckets *const tb = counter(&axes[0]);
    struct tl_timed_span span = {0};
    for (uint64_t tick = 0; tick < n + 2; tick++)
        for (unsigned part = 0; part < 2; part++) { /* its first instant, and the rest */
            span.time = span.end_time;
            span.end_time = tick + part;
            span.position = span.end;
            span.end += tick == n && part == 1 ? TL_TIME_POSITIONS : part;
            span.function = (uint32_t)tick;
            if (item && tick == n && part == 1)
                tl_time_buckets_item(tb, span.position, &exception);
            tl_time_buckets_span(tb, &span);
        }
    tl_time_buckets_take(tb, out);
    tl_time_buckets_fini(tb);
    free(tb);
}

/* Items among what ran change nothing of its times, nor which levels there are: also where that
 * ends with a bucket, and there is room for one more only with its instructions. */
static void items_leave_times_alone(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 100; n++) {
        struct tl_time_pyramid plain = {0}, with = {0};
        count_ticks(n, false, &plain);
        count_ticks(n, true, &with);
        assert_int_equal(with.finest, plain.finest);
        assert_int_equal(with.n, plain.n);
        for (unsigned i = 0; i < with.n; i++)
            assert_same_times(&with.levels[i], &plain.levels[i]);
        tl_time_pyramid_fini(&plain);
        tl_time_pyramid_fini(&with);
    }
}

/* Items are counted when it is known where in time they are, each once. */
static void items_are_counted_once(void **state)
{
    (void)state;
    struct tl_time_buckets *const tb = counter(&axes[0]);
    const struct tl_item exception = {.kind = TL_ITEM_EXCEPTION}, gap = {.kind = TL_ITEM_GAP};
    const struct tl_timed_span ran = {.end_time = 64, .end = 64, .function = 1},
                               lost = {.time = 64,
                                       .end_time = 192,
                                       .position = 64,
                                       .end = 64,
                                       .function = TL_NO_FUNCTION,
                                       .kind = TL_TIMED_LOST},
                               rest = {.time = 192, .end_time = 208, .position = 64, .end = 80};
    struct tl_time_pyramid p = {0};
    uint64_t events = 0, flagged = 0;
    tl_time_buckets_item(tb, 10, &exception);
    tl_time_buckets_item(tb, 10, &exception);
    tl_time_buckets_item(tb, 48, &exception);
    tl_time_buckets_item(tb, 64, &gap);
    tl_time_buckets_item(tb, 70, &exception);
    tl_time_buckets_span(tb, &ran);
    tl_time_buckets_span(tb, &lost);
    tl_time_buckets_span(tb, &rest);
    tl_time_buckets_take(tb, &p);
    assert_int_equal(p.finest, 2);
    for (size_t i = 0; i < p.levels[0].n; i++) {
        const struct tl_time_bucket *const b = &p.levels[0].p[i];
        events += b->events;
        flagged += b->flags & TL_FLAG_GAP ? 1 : 0;
        assert_int_equal(b->events, b->number == 0 ? 2 : b->number == 3 || b->number == 12 ? 1 : 0);
        assert_int_equal(b->flags & TL_FLAG_GAP ? 1 : 0, b->number >= 4 && b->number < 12);
    }
    assert_int_equal(events, 4);
    assert_int_equal(flagged, 8);
    tl_time_pyramid_fini(&p);
    tl_time_buckets_fini(tb);
    free(tb);
}

/* Ranges that begin and end anywhere, in a stretch without trace, too, have the same in each bucket
 * as all of it: what is there when trace goes on is counted once, where the stretch begins. */
static void items_of_ranges_are_those_of_the_whole(void **state)
{
    (void)state;
    enum { END = 13, STEP = 16 };
    const struct tl_item exception = {.kind = TL_ITEM_EXCEPTION}, gap = {.kind = TL_ITEM_GAP},
                         on = {.kind = TL_ITEM_TRACE_ON};
    const struct tl_timed_span all[] = {
        {.end_time = 64, .end = 64, .function = 1},
        {.time = 64, .end_time = 128, .position = 64, .end = 64, .kind = TL_TIMED_LOST},
        {.time = 128, .end_time = 192, .position = 64, .end = 64, .kind = TL_TIMED_OFF},
        {.time = 192, .end_time = 208, .position = 64, .end = 80}};
    struct tl_time_bucket whole[END] = {{0}};
    for (uint64_t from = 0; from < END; from++) {
        struct tl_time_buckets *const tb = calloc(1, sizeof *tb);
        struct tl_time_pyramid p = {0};
        assert_non_null(tb);
        tl_time_buckets_init_range(tb, &axes[0], 2, from * STEP, END * STEP);
        tl_time_buckets_item(tb, 10, &exception);
        tl_time_buckets_item(tb, 64, &gap);
        tl_time_buckets_item(tb, 64, &on);
        tl_time_buckets_item(tb, 70, &exception);
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tl_time_buckets_span(tb, &all[i]);
        tl_time_buckets_take(tb, &p);
        assert_int_equal(p.levels[0].n, END - from);
        for (size_t i = 0; i < p.levels[0].n; i++) {
            const struct tl_time_bucket *const b = &p.levels[0].p[i];
            struct tl_time_bucket *const w = &whole[b->number];
            if (from == 0)
                *w = (struct tl_time_bucket){
                    .events = b->events, .event_mask = b->event_mask, .flags = b->flags};
            assert_int_equal(b->events, w->events);
            assert_int_equal(b->event_mask, w->event_mask);
            assert_int_equal(b->flags, w->flags);
            assert_int_equal(b->event_mask & TL_HAS_TRACE_ON ? 1 : 0, b->number == 4);
        }
        tl_time_pyramid_fini(&p);
        tl_time_buckets_fini(tb);
        free(tb);
    }
}

/* With more functions than a bucket keeps, none loses more than a 512th. */
static void too_many_functions_lose_little(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static uint64_t truth[MANY];
    struct tl_time_bucket all = {0};
    memset(truth, 0, sizeof truth);
    for (size_t i = 0; i < 400; i++) {
        struct tl_time_share shares[64];
        struct tl_time_bucket one = {.shares = shares, .n_shares = 64};
        uint32_t function = 0;
        for (size_t k = 0; k < 64; k++) {
            function += 1 + next() % (MANY / 64 - 1);
            shares[k] = (struct tl_time_share){function, next() % 1000};
            one.ticks[TL_TIMED_RUN] += shares[k].ticks;
            truth[function] += shares[k].ticks;
        }
        assert_int_equal(tl_time_bucket_merge(&all, &one), TL_OK);
    }
    assert_true(all.n_shares <= TL_TIME_SHARES);
    for (uint32_t f = 0; f < MANY; f++) {
        uint64_t got = 0;
        for (uint32_t i = 0; i < all.n_shares; i++)
            got += all.shares[i].function == f ? all.shares[i].ticks : 0;
        assert_true(got <= truth[f]);
        assert_true((truth[f] - got) * TL_TIME_SHARES <= all.ticks[TL_TIMED_RUN]);
    }
    tl_time_bucket_fini(&all);
}

/* A shard's first span may be longer than anything else in it. */
static void long_spans_have_few_buckets(void **state)
{
    const struct tl_axis axis = {0};
    struct tl_time_buckets *const tb = calloc(1, sizeof *tb);
    struct tl_time_pyramid out = {0};
    (void)state;
    assert_non_null(tb);
    tl_time_buckets_init(tb, &axis);
    tl_time_buckets_span(tb, &(struct tl_timed_span){.time = 100,
                                                     .end_time = UINT64_C(1) << 50,
                                                     .end = 2,
                                                     .function = TL_NO_FUNCTION,
                                                     .kind = TL_TIMED_RUN});
    tl_time_buckets_take(tb, &out);
    assert_true(out.n > 0 && out.levels[0].n <= 32);
    uint64_t ticks = 0;
    for (size_t i = 0; i < out.levels[0].n; i++)
        ticks += out.levels[0].p[i].ticks[TL_TIMED_RUN];
    assert_true(ticks == (UINT64_C(1) << 50) - 100);
    tl_time_pyramid_fini(&out);
    tl_time_buckets_fini(tb);
    free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_spans_have_few_buckets),
        cmocka_unit_test(all_levels_are_right),
        cmocka_unit_test(snapshots_make_no_difference),
        cmocka_unit_test(items_leave_times_alone),
        cmocka_unit_test(items_are_counted_once),
        cmocka_unit_test(items_of_ranges_are_those_of_the_whole),
        cmocka_unit_test(too_many_functions_lose_little),
    };
    begin_random();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
