/* SPDX-License-Identifier: MIT */
/* What goes into shards comes out again, whatever the batches, cuts and interruptions. */
#include "made_items.h"
#include "store/build.h"
#include "store/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

/* The sealed shards of a stream. */
struct shards {
    struct tl_view *views[4096];
    struct tl_buf files[4096];
    size_t n;
    uint64_t chunk_markers;
    struct tl_packer *packer;
};

static int on_seal(void *context, struct tl_view *view)
{
    struct shards *s = context;
    assert_true(s->n < 4096);
    s->views[s->n] = view;
    assert_int_equal(tl_view_encode(view, s->chunk_markers, s->packer, &s->files[s->n], NULL),
                     TL_OK);
    s->n++;
    return TL_OK;
}

static void shards_free(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++) {
        tl_view_put(s->views[i]);
        tl_buf_fini(&s->files[i]);
    }
    tl_packer_free(s->packer);
    free(s);
}

static void append_text(struct tl_view *view, uint64_t from, uint64_t to, bool tail,
                        enum tl_protocol protocol, struct tl_buf *out)
{
    struct tl_walk walk = {0};
    const struct tl_walk_range range = {from, to, tail, protocol};
    for (size_t c = 0; c < view->index.n_chunks; c++) {
        struct tl_fail fail = {0};
        const int r = tl_walk_chunk(&walk, view, c, &range, &fail);
        if (r < 0)
            fail_msg("%s", fail.text);
        assert_int_equal(tl_item_text(out, walk.items, walk.n), TL_OK);
    }
    tl_walk_fini(&walk);
}

struct run {
    uint64_t shard_insns, chunk_markers;
    enum tl_protocol protocol;
};

static struct shards *build(struct made *m, const struct run *run, uint64_t sealed,
                            uint64_t position, uint64_t seed)
{
    struct shards *s = calloc(1, sizeof(*s));
    s->chunk_markers = run->chunk_markers;
    assert_int_equal(tl_packer_new(&s->packer), TL_OK);
    /* Half of them by threads: that makes no difference. */
    struct tl_packing *packing = NULL;
    if (seed & 1)
        assert_int_equal(tl_packing_new(&packing, 2), TL_OK);
    struct tl_build_options options = {.protocol = run->protocol,
                                       .shard_insns = run->shard_insns,
                                       .chunk_markers = run->chunk_markers,
                                       .packing = packing,
                                       .seal = on_seal,
                                       .context = s,
                                       .sealed = sealed,
                                       .sealed_position = position};
    struct tl_build *b;
    struct made random = {.random = seed};
    assert_int_equal(tl_build_new(&b, &options), TL_OK);
    for (size_t at = 0; at < m->n;) {
        size_t n = 1 + made_below(&random, 1 + made_below(&random, 200));
        if (n > m->n - at)
            n = m->n - at;
        assert_int_equal(tl_build_items(b, m->items + at, n), TL_OK);
        at += n;
    }
    assert_int_equal(tl_build_finish(b), TL_OK);
    tl_build_free(b);
    tl_packing_free(packing);
    return s;
}

static void assert_same_text(const struct tl_buf *a, const struct tl_buf *b)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->p[i] == b->p[i])
        i++;
    if (i < a->n || i < b->n) {
        const size_t from = i < 100 ? 0 : i - 100;
        fail_msg("texts of %zu and %zu bytes differ at %zu:\n--- %.200s\n+++ %.200s", a->n, b->n, i,
                 (const char *)a->p + from, (const char *)b->p + from);
    }
}

static void text_of(const struct shards *s, enum tl_protocol protocol, struct tl_buf *out)
{
    for (size_t i = 0; i < s->n; i++)
        append_text(s->views[i], 0, UINT64_MAX, true, protocol, out);
}

static uint64_t seed_of_day(void)
{
    const uint64_t seed = (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)seed);
    return seed;
}

static struct run random_run(struct made *random)
{
    static const enum tl_protocol protocols[] = {TL_PROTO_ETM4, TL_PROTO_OSD_CTM, TL_PROTO_ITM};
    return (struct run){.shard_insns = 1 + made_below(random, made_below(random, 2) ? 50 : 5000),
                        .chunk_markers = 1 + made_below(random, made_below(random, 2) ? 20 : 700),
                        .protocol = protocols[made_below(random, 3)]};
}

static void text_comes_back(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    for (int round = 0; round < 60; round++) {
        struct made m;
        struct run run = random_run(&random);
        made_stream(&m, made_random(&random), 1 + made_below(&random, 1500),
                    (unsigned)made_below(&random, 5));
        if (run.shard_insns < 10 && m.n > 300)
            m.n = 300;
        struct tl_buf expected = {0}, got = {0};
        assert_int_equal(tl_item_text(&expected, m.items, m.n), TL_OK);
        struct shards *s = build(&m, &run, 0, 0, made_random(&random));
        text_of(s, run.protocol, &got);
        assert_same_text(&expected, &got);
        tl_buf_fini(&expected);
        tl_buf_fini(&got);
        shards_free(s);
        made_free(&m);
    }
}

/* Batches do not matter, and neither does starting again behind any sealed shard. */
static void resumed_shards_are_the_same(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    for (int round = 0; round < 40; round++) {
        struct made m;
        struct run run = random_run(&random);
        run.shard_insns += 20;
        made_stream(&m, made_random(&random), 1 + made_below(&random, 600),
                    (unsigned)made_below(&random, 5));
        struct shards *whole = build(&m, &run, 0, 0, 1);
        if (whole->n > 1) {
            const size_t k = made_below(&random, whole->n - 1);
            const struct tl_shard_row *last = &whole->views[k]->index.row;
            struct shards *rest =
                build(&m, &run, k + 1, last->first + last->n, made_random(&random));
            assert_int_equal(rest->n, whole->n - k - 1);
            for (size_t i = 0; i < rest->n; i++) {
                const struct tl_buf *a = &whole->files[k + 1 + i], *b = &rest->files[i];
                assert_int_equal(a->n, b->n);
                assert_memory_equal(a->p, b->p, a->n);
            }
            shards_free(rest);
        }
        shards_free(whole);
        made_free(&m);
    }
}

/* Ranges, put together again, are the whole. */
static void ranges_join(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()}, m;
    const struct run run = {100000, 64, TL_PROTO_ETM4};
    made_stream(&m, made_random(&random), 1000, 3);
    struct shards *s = build(&m, &run, 0, 0, 1);
    assert_int_equal(s->n, 1);
    struct tl_buf expected = {0}, got = {0};
    text_of(s, run.protocol, &expected);
    const uint64_t n = s->views[0]->index.row.n;
    for (uint64_t at = 0; at < n;) {
        uint64_t to = at + 1 + made_below(&random, 300);
        if (to > n)
            to = n;
        append_text(s->views[0], at, to, to == n, run.protocol, &got);
        at = to;
    }
    assert_same_text(&expected, &got);
    tl_buf_fini(&expected);
    tl_buf_fini(&got);
    shards_free(s);
    made_free(&m);
}

/* A snapshot of the growing shard is always a beginning of the final text. */
static void snapshots_grow(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()}, m;
    const struct run run = {3000, 64, TL_PROTO_ETM4};
    made_stream(&m, made_random(&random), 1200, 3);
    struct tl_buf expected = {0}, sealed = {0};
    assert_int_equal(tl_item_text(&expected, m.items, m.n), TL_OK);
    struct shards *s = calloc(1, sizeof(*s));
    s->chunk_markers = run.chunk_markers;
    assert_int_equal(tl_packer_new(&s->packer), TL_OK);
    struct tl_build *b;
    assert_int_equal(tl_build_new(&b, &(struct tl_build_options){.protocol = run.protocol,
                                                                 .shard_insns = run.shard_insns,
                                                                 .chunk_markers = run.chunk_markers,
                                                                 .seal = on_seal,
                                                                 .context = s}),
                     TL_OK);
    size_t texts = 0, last = 0;
    for (size_t at = 0; at < m.n; at++) {
        assert_int_equal(tl_build_items(b, m.items + at, 1), TL_OK);
        for (; texts < s->n; texts++)
            append_text(s->views[texts], 0, UINT64_MAX, true, run.protocol, &sealed);
        struct tl_view *view;
        assert_int_equal(tl_build_view(b, &view), TL_OK);
        struct tl_buf got = {0};
        assert_int_equal(tl_buf_add(&got, sealed.p ? (char *)sealed.p : "", sealed.n), TL_OK);
        append_text(view, 0, UINT64_MAX, false, run.protocol, &got);
        assert_true(got.n <= expected.n && got.n + 4000 >= last);
        assert_memory_equal(got.p ? (char *)got.p : "", expected.p, got.n);
        last = got.n;
        tl_buf_fini(&got);
        tl_view_put(view);
    }
    tl_build_free(b);
    tl_buf_fini(&expected);
    tl_buf_fini(&sealed);
    shards_free(s);
    made_free(&m);
}

/* A stored shard opens again, and says the same. */
static void stored_shards_open(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()}, m;
    const struct run run = {2000, 100, TL_PROTO_ETM4};
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    made_stream(&m, made_random(&random), 3000, 4);
    struct shards *s = build(&m, &run, 0, 0, 1);
    struct tl_buf expected = {0}, got = {0};
    text_of(s, run.protocol, &expected);
    for (size_t i = 0; i < s->n; i++) {
        char key[192];
        struct tl_view *view;
        struct tl_fail fail = {0};
        const struct tl_bytes file = {s->files[i].p, s->files[i].n};
        tl_shard_key(key, "trace", 1, "cs.10", i);
        assert_int_equal(backend->ops->put(backend, key, file, NULL), TL_OK);
        if (tl_view_open(&view, backend, key, &fail) < 0)
            fail_msg("%s", fail.text);
        assert_int_equal(view->index.row.first, s->views[i]->index.row.first);
        assert_int_equal(view->index.row.size, file.n);
        assert_int_equal(view->index.buckets.n, s->views[i]->index.buckets.n);
        append_text(view, 0, UINT64_MAX, true, run.protocol, &got);
        tl_view_put(view);
    }
    assert_same_text(&expected, &got);
    tl_buf_fini(&expected);
    tl_buf_fini(&got);
    shards_free(s);
    made_free(&m);
    tl_backend_free(backend);
}

/* No byte of a shard can change without being noticed, and no damage does worse than an error. */
static void damage_is_noticed(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()}, m;
    const struct run run = {3000, 500, TL_PROTO_ETM4};
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    made_stream(&m, made_random(&random), 300, 4);
    struct shards *s = build(&m, &run, 0, 0, 1);
    struct tl_buf *file = &s->files[0];
    struct tl_buf report = {0};
    const char *key = "t/a/1/b/000000.zstf";
    for (size_t i = 0; i < 400; i++) {
        const size_t at = i < 40 ? i : made_below(&random, file->n);
        const uint8_t flip = (uint8_t)(1 + made_below(&random, 255));
        file->p[at] ^= flip;
        tl_buf_reset(&report);
        assert_int_equal(backend->ops->put(backend, key, (struct tl_bytes){file->p, file->n}, NULL),
                         TL_OK);
        if (tl_view_verify(backend, key, &report, NULL) <= 0)
            fail_msg("byte %zu of %zu changed by %02x is not noticed", at, file->n, flip);
        struct tl_view *view;
        if (tl_view_open(&view, backend, key, NULL) >= 0) {
            struct tl_walk walk = {0};
            const struct tl_walk_range range = {0, UINT64_MAX, true, run.protocol};
            for (size_t c = 0; c < view->index.n_chunks; c++)
                if (tl_walk_chunk(&walk, view, c, &range, NULL) < 0)
                    break;
            tl_walk_fini(&walk);
            tl_view_put(view);
        }
        file->p[at] ^= flip;
    }
    assert_int_equal(backend->ops->put(backend, key, (struct tl_bytes){file->p, file->n}, NULL),
                     TL_OK);
    tl_buf_reset(&report);
    assert_int_equal(tl_view_verify(backend, key, &report, NULL), 0);
    tl_buf_fini(&report);
    shards_free(s);
    made_free(&m);
    tl_backend_free(backend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back),    cmocka_unit_test(resumed_shards_are_the_same),
        cmocka_unit_test(ranges_join),        cmocka_unit_test(snapshots_grow),
        cmocka_unit_test(stored_shards_open), cmocka_unit_test(damage_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
