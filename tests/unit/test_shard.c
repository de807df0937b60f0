/* SPDX-License-Identifier: MIT */
/* Everything put into shards is read back unchanged, for any batches, cuts and interruptions. */
#include "made_shards.h"
#include "store/backend_memory.h"

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

/* A block with this instruction set. */
static const struct tl_block *made_of(const struct made *m, enum tl_isa isa)
{
    size_t i = 0;
    while (m->blocks[i].isa != isa || m->blocks[i].n < 2)
        i++;
    return &m->blocks[i];
}

/* Items fill a shard's log (8 MiB) except for about a thousand bytes; then paths that alternate
 * between two instruction sets fill the rest. */
static void full_within_a_path(void **state)
{
    (void)state;
    enum { NOTE = 250000, NOTES = 33, REST = (8 << 20) - NOTES * (NOTE + 16) - 1000, PATHS = 1000 };
    static char text[NOTE + 1];
    const struct run run = {
        .shard_insns = 1 << 30, .chunk_markers = 1000, .protocol = TL_PROTO_ETM4};
    struct tl_buf expected = {0}, got = {0};
    struct made m;
    made_stream(&m, seed_of_day(), 0, 0);
    const struct tl_block *const blocks[] = {made_of(&m, TL_ISA_A64), made_of(&m, TL_ISA_T32)};
    uintptr_t steps[2][3];
    memset(text, 'x', NOTE);
    for (size_t i = 0; i <= NOTES; i++)
        made_add(&m, TL_ITEM_NOTE)->text = i < NOTES ? text : text + NOTE - REST;
    assert_int_equal(tl_item_text(&expected, m.items, m.n), TL_OK);
    for (size_t i = 0; i < PATHS; i++) {
        const struct tl_block *const b = blocks[i % 2];
        struct tl_item *const path = made_add(&m, TL_ITEM_PATH);
        path->flags = TL_ITEM_HAS_PC;
        path->pc = b->pc;
        path->n = 3;
        path->value = 3 * b->n;
        path->path = steps[i % 2];
        for (size_t k = 0; k < 3; k++) {
            steps[i % 2][k] = tl_path_step(b, true);
            const struct tl_item one = tl_path_item(path, k);
            assert_int_equal(tl_item_text(&expected, &one, 1), TL_OK);
        }
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct shards *s = build(&m, &run, 0, 0, seed);
        assert_int_equal(s->n, 2);
        assert_true(s->views[0]->index.row.n > 0);
        tl_buf_reset(&got);
        text_of(s, run.protocol, &got);
        assert_same_text(&expected, &got);
        shards_free(s);
    }
    tl_buf_fini(&expected);
    tl_buf_fini(&got);
    made_free(&m);
}

/* A branch is counted to where the trace continues, even if the code has another target. */
static void branch_that_strays(void **state)
{
    (void)state;
    const struct run run = {
        .shard_insns = 1 << 20, .chunk_markers = 1000, .protocol = TL_PROTO_ETM4};
    struct made m;
    made_stream(&m, seed_of_day(), 0, 0);
    struct tl_block loop = *made_of(&m, TL_ISA_A64), other = loop;
    loop.number = 1;
    loop.last_kind = TL_INSN_BRANCH;
    loop.target = loop.pc;
    other.number = 2;
    other.pc += 0x1000;
    const uintptr_t steps[] = {tl_path_step(&loop, true), tl_path_step(&loop, true),
                               tl_path_step(&loop, true), tl_path_step(&other, false)};
    for (size_t i = 0; i < 2; i++) {
        struct tl_item *const path = made_add(&m, TL_ITEM_PATH);
        path->flags = TL_ITEM_HAS_PC;
        path->path = &steps[3 * i];
        path->pc = tl_path_block(*path->path)->pc;
        path->n = i ? 1 : 3;
        path->value = path->n * loop.n;
    }
    struct shards *s = build(&m, &run, 0, 0, 0);
    assert_int_equal(s->n, 1);
    struct tl_codecount *const c = s->views[0]->counts;
    assert_non_null(c);
    assert_int_equal(c->branches.n, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const uint64_t to = tl_code_pair(c, c->branches.keys[i]).to;
        assert_int_equal(c->branch_counts[i], to == loop.pc ? 2 : 1);
        assert_true(to == loop.pc || to == other.pc);
    }
    shards_free(s);
    made_free(&m);
}

/* Where a branch in front of a gap leads is unknown, wherever deliveries and shards end. */
static void branch_before_a_gap(void **state)
{
    (void)state;
    enum { PATHS = 300, STEPS = 3 };
    const struct run run = {
        .shard_insns = 1 << 20, .chunk_markers = 1000, .protocol = TL_PROTO_ETM4};
    struct made m;
    made_stream(&m, seed_of_day(), 0, 0);
    struct tl_block loop = *made_of(&m, TL_ISA_A64);
    loop.number = 1;
    loop.last_kind = TL_INSN_BRANCH;
    loop.target = loop.pc;
    const uintptr_t step = tl_path_step(&loop, true), steps[STEPS] = {step, step, step};
    for (size_t i = 0; i < PATHS; i++) {
        *made_add(&m, TL_ITEM_PATH) = (struct tl_item){.kind = TL_ITEM_PATH,
                                                       .flags = TL_ITEM_HAS_PC,
                                                       .path = steps,
                                                       .pc = loop.pc,
                                                       .n = STEPS,
                                                       .value = STEPS * loop.n};
        for (size_t k = 0; k <= i % 2; k++)
            made_add(&m, TL_ITEM_GAP)->sub = TL_GAP_NO_PATH;
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct shards *s = build(&m, &run, 0, 0, seed);
        assert_int_equal(s->n, 1);
        const struct tl_codecount *const c = s->views[0]->counts;
        assert_non_null(c);
        assert_int_equal(c->branches.n, 1);
        assert_int_equal(c->branch_counts[0], PATHS * (STEPS - 1));
        assert_int_equal(s->views[0]->index.row.gaps, PATHS + PATHS / 2);
        shards_free(s);
    }
    made_free(&m);
}

/* Times between blocks; the image changes at one of them. */
static void program_that_changes_in_time(void **state)
{
    (void)state;
    enum { PATHS = 40, STEPS = 20, CHANGES = 17 };
    static const uint8_t code[64];
    struct run run = {.shard_insns = 1 << 20, .chunk_markers = 1000, .protocol = TL_PROTO_ETM4};
    struct tl_image *image;
    struct made m;
    assert_int_equal(tl_image_new(&image), TL_OK);
    tl_image_set_period(image, (struct tl_image_span){.from = CHANGES});
    assert_int_equal(tl_image_add_bytes(image, 0x1000, (struct tl_bytes){code, sizeof code},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    run.image = image;
    made_stream(&m, seed_of_day(), 0, 0);
    struct tl_block loop = *made_of(&m, TL_ISA_A64);
    uintptr_t steps[STEPS];
    loop.number = 1;
    for (size_t i = 0; i < STEPS; i++)
        steps[i] = tl_path_step(&loop, true);
    for (uint64_t i = 0; i < PATHS; i++) {
        struct tl_item *const time = made_add(&m, TL_ITEM_TIME);
        time->value = i;
        time->sub = TL_TIME_TRACE;
        struct tl_item *const path = made_add(&m, TL_ITEM_PATH);
        path->flags = TL_ITEM_HAS_PC;
        path->path = steps;
        path->pc = loop.pc;
        path->n = STEPS;
        path->value = STEPS * loop.n;
    }
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct shards *s = build(&m, &run, 0, 0, seed);
        assert_int_equal(s->n, 1);
        const struct tl_codecount *const c = s->views[0]->counts;
        assert_non_null(c);
        assert_int_equal(c->n_programs, 2);
        assert_int_equal(c->programs[0].insns, CHANGES * STEPS * loop.n);
        assert_int_equal(c->programs[1].insns, (PATHS - CHANGES) * STEPS * loop.n);
        shards_free(s);
    }
    made_free(&m);
    tl_image_free(image);
}

/* A builder saved in the middle of a shard. */
struct saved {
    struct tl_buf state;
    size_t item;    /* number of items built before saving */
    uint64_t shard; /* the first shard that was not complete */
};

static void save_build(struct tl_build *b, const struct shards *s, size_t item, struct saved *out)
{
    struct tl_state state = {.out = &out->state};
    tl_build_state(b, &state);
    out->item = item;
    out->shard = s->n;
    assert_int_equal(state.rc, TL_OK);
}

/* Continue from `saved` after `sealed` shards have been stored. */
static struct shards *go_on(struct made *m, const struct run *run, const struct saved *saved,
                            uint64_t sealed, uint64_t position)
{
    struct shards *s = shards_new(run);
    struct tl_build *b = build_new(s, run, sealed, position, NULL);
    struct tl_state state = {.in = {saved->state.p, saved->state.n}};
    tl_build_state(b, &state);
    assert_int_equal(state.rc, TL_OK);
    assert_int_equal(state.in.n, 0);
    assert_int_equal(tl_build_items(b, m->items + saved->item, m->n - saved->item), TL_OK);
    assert_int_equal(tl_build_finish(b), TL_OK);
    tl_build_free(b);
    return s;
}

/* Save at a random item, saving and loading several times on the way. */
static void save_somewhere(struct made *m, const struct run *run, struct made *random,
                           struct saved *out)
{
    struct shards *s = shards_new(run);
    struct tl_build *b = build_new(s, run, 0, 0, NULL);
    const size_t end = made_below(random, m->n);
    for (size_t at = 0; at < end; at++) {
        assert_int_equal(tl_build_items(b, m->items + at, 1), TL_OK);
        if (made_below(random, 40) > 0)
            continue;
        struct saved here = {{0}};
        const struct tl_shard_row *last = s->n > 0 ? &s->views[s->n - 1]->index.row : NULL;
        save_build(b, s, at + 1, &here);
        tl_build_free(b);
        b = build_new(s, run, s->n, last ? last->first + last->n : 0, NULL);
        struct tl_state state = {.in = {here.state.p, here.state.n}};
        tl_build_state(b, &state);
        assert_true(state.rc == TL_OK && state.in.n == 0);
        tl_buf_fini(&here.state);
    }
    save_build(b, s, end, out);
    tl_build_free(b);
    shards_free(s);
}

/* Are the calls the same, if they were counted? Those of a shard that was open when it was saved
 * are not. */
static size_t same_calls(const struct tl_view *a, const struct tl_view *b, struct tl_packer *packer)
{
    struct tl_buf objects[2] = {{0}, {0}};
    assert_non_null(b->calls);
    if (!a->calls)
        return 0;
    assert_int_equal(tl_shard_calls_encode(a->calls, packer, &objects[0]), TL_OK);
    assert_int_equal(tl_shard_calls_encode(b->calls, packer, &objects[1]), TL_OK);
    assert_int_equal(objects[0].n, objects[1].n);
    assert_memory_equal(objects[0].p, objects[1].p, objects[0].n);
    tl_buf_fini(&objects[0]);
    tl_buf_fini(&objects[1]);
    return 1;
}

/* A loaded builder gives the same shards as one that was not interrupted, however many were stored
 * since it was saved. */
static void saved_in_a_shard(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    size_t compared = 0, shards = 0;
    for (int round = 0; round < 60; round++) {
        struct made m;
        struct run run = random_run(&random);
        struct saved saved = {{0}};
        made_stream(&m, made_random(&random), 1 + made_below(&random, 1500),
                    (unsigned)made_below(&random, 5));
        if (run.shard_insns < 10 && m.n > 300)
            m.n = 300;
        struct shards *all = build(&m, &run, 0, 0, made_random(&random));
        save_somewhere(&m, &run, &random, &saved);
        uint64_t sealed = saved.shard;
        if (round % 2 > 0)
            sealed += made_below(&random, all->n - sealed + 1);
        const struct tl_shard_row *row = sealed ? &all->views[sealed - 1]->index.row : NULL;
        struct shards *rest = go_on(&m, &run, &saved, sealed, row ? row->first + row->n : 0);
        assert_int_equal(rest->n, all->n - sealed);
        for (size_t i = 0; i < rest->n; i++) {
            assert_int_equal(rest->files[i].n, all->files[sealed + i].n);
            assert_memory_equal(rest->files[i].p, all->files[sealed + i].p, rest->files[i].n);
            compared += same_calls(rest->views[i], all->views[sealed + i], all->packer);
        }
        shards += rest->n;
        shards_free(rest);
        tl_buf_fini(&saved.state);
        shards_free(all);
        made_free(&m);
    }
    assert_true(compared + 60 >= shards && compared > 100);
}

/* Batches do not affect the shards, and neither does restarting after any sealed shard. */
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

/* Consecutive ranges add up to the whole. */
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

/* A snapshot of the growing shard is always a prefix of the final text. */
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
        if (view)
            append_text(view, 0, UINT64_MAX, false, run.protocol, &got);
        assert_true(got.n <= expected.n && got.n + 4000 >= last);
        assert_memory_equal(got.p ? (char *)got.p : "", expected.p, got.n);
        last = got.n;
        tl_buf_fini(&got);
        tl_view_put(view);
    }
    /* At the end there is no growing shard that could be mistaken for the last one. */
    struct tl_view *view;
    assert_int_equal(tl_build_finish(b), TL_OK);
    assert_int_equal(tl_build_view(b, &view), TL_OK);
    assert_null(view);
    for (; texts < s->n; texts++)
        append_text(s->views[texts], 0, UINT64_MAX, true, run.protocol, &sealed);
    assert_same_text(&expected, &sealed);
    tl_build_free(b);
    tl_buf_fini(&expected);
    tl_buf_fini(&sealed);
    shards_free(s);
    made_free(&m);
}

/* A stored shard can be opened again, with the same contents. */
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
        assert_int_equal(tl_backend_put(backend, key, file, NULL), TL_OK);
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

/* Every change to a shard is detected, and damage only causes errors. */
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
        assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){file->p, file->n}, NULL),
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
    assert_int_equal(tl_backend_put(backend, key, (struct tl_bytes){file->p, file->n}, NULL),
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
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(resumed_shards_are_the_same),
        cmocka_unit_test(ranges_join),
        cmocka_unit_test(snapshots_grow),
        cmocka_unit_test(stored_shards_open),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(saved_in_a_shard),
        cmocka_unit_test(full_within_a_path),
        cmocka_unit_test(branch_that_strays),
        cmocka_unit_test(branch_before_a_gap),
        cmocka_unit_test(program_that_changes_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
