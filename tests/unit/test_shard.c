/* SPDX-License-Identifier: MIT */
/* What goes into shards comes out again, whatever the batches, cuts and interruptions. */
#include "made_shards.h"
#include "store/backend_memory.h"
#include "store/mend.h"

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

/* A block of this instruction set. */
static const struct tl_block *made_of(const struct made *m, enum tl_isa isa)
{
    size_t i = 0;
    while (m->blocks[i].isa != isa || m->blocks[i].n < 2)
        i++;
    return &m->blocks[i];
}

/* Items fill a shard's log (8 MiB) but for about a thousand bytes; then an instruction set that
 * changes with each path does. */
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

/* A branch leads where the trace goes on, whatever the code says. */
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

/* Times between blocks; from one of them on the image is another one. */
static void program_that_changes_in_time(void **state)
{
    (void)state;
    enum { PATHS = 40, STEPS = 20, CHANGES = 17 };
    static const uint8_t code[64];
    struct run run = {.shard_insns = 1 << 20, .chunk_markers = 1000, .protocol = TL_PROTO_ETM4};
    struct tl_image *image;
    struct made m;
    assert_int_equal(tl_image_new(&image), TL_OK);
    tl_image_during(image, (struct tl_image_span){.from = CHANGES});
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

/* A builder that is saved in the middle of a shard. */
struct saved {
    struct tl_buf state;
    size_t item;    /* behind which */
    uint64_t shard; /* the first one that was not complete */
};

static void save_build(struct tl_build *b, const struct shards *s, size_t item, struct saved *out)
{
    struct tl_state state = {.out = &out->state};
    tl_build_state(b, &state);
    out->item = item;
    out->shard = s->n;
    assert_int_equal(state.rc, TL_OK);
}

/* Go on behind `saved`, of which `sealed` shards are there. */
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

/* Save somewhere, or once more a bit behind. */
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

/* What comes behind a saved builder is as if it had never been saved, however many shards have been
 * stored since. */
static void saved_in_a_shard(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
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
        }
        shards_free(rest);
        tl_buf_fini(&saved.state);
        shards_free(all);
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
        if (view)
            append_text(view, 0, UINT64_MAX, false, run.protocol, &got);
        assert_true(got.n <= expected.n && got.n + 4000 >= last);
        assert_memory_equal(got.p ? (char *)got.p : "", expected.p, got.n);
        last = got.n;
        tl_buf_fini(&got);
        tl_view_put(view);
    }
    /* Behind the end there is no growing shard that could be taken for the last one. */
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

/* ---- shards made whole from themselves ------------------------------------------------------ */

static struct tl_view *open_file(struct tl_backend *backend, const struct tl_buf *file)
{
    struct tl_view *view = NULL;
    struct tl_fail fail = {0};
    const char *key = "t/a/1/b/000000.zstf";
    const struct tl_bytes bytes = {file->p, file->n};
    assert_int_equal(tl_backend_put(backend, key, bytes, NULL), TL_OK);
    if (tl_view_open(&view, backend, key, &fail) < 0)
        fail_msg("%s", fail.text);
    return view;
}

static void assert_same_now(const struct tl_flow_now *a, const struct tl_flow_now *b)
{
    struct tl_buf x = {0}, y = {0};
    assert_int_equal(tl_flow_now_encode(a, &x), TL_OK);
    assert_int_equal(tl_flow_now_encode(b, &y), TL_OK);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n);
    tl_buf_fini(&x);
    tl_buf_fini(&y);
}

static void assert_same_chunks(const struct tl_shard_index *a, const struct tl_shard_index *b,
                               bool code)
{
    assert_int_equal(a->n_chunks, b->n_chunks);
    if (code)
        assert_int_equal(a->n_code, b->n_code);
    if (code && a->n_code > 0)
        assert_memory_equal(a->code, b->code, a->n_code * sizeof(*a->code));
    for (size_t i = 0; i < a->n_chunks; i++) {
        const struct tl_chunk *x = &a->chunks[i], *y = &b->chunks[i];
        assert_same_now(&x->at, &y->at);
        assert_int_equal(x->first, y->first);
        assert_int_equal(x->n, y->n);
        assert_int_equal(x->marker, y->marker);
        assert_int_equal(x->stf, y->stf);
        assert_int_equal(x->events, y->events);
        assert_int_equal(x->gaps, y->gaps);
        assert_int_equal(x->kinds, y->kinds);
        assert_int_equal(x->anchors, y->anchors);
        assert_int_equal(x->anchor_first.position, y->anchor_first.position);
        assert_int_equal(x->anchor_last.time, y->anchor_last.time);
        if (code)
            assert_int_equal(x->n_code, y->n_code);
        assert_int_equal(x->items_offset, y->items_offset);
        assert_int_equal(x->items_crc, y->items_crc);
    }
}

/* But for what is made up here: functions are in no image, and what is left as if it were a branch
 * need be none. */
static void assert_same_tally(const struct tl_shard_stats *a, const struct tl_shard_stats *b)
{
    const struct tl_shard_stats *const both[] = {a, b};
    struct tl_buf bytes[2] = {0};
    uint64_t insns[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct tl_shard_stats copy = *both[i];
        for (size_t k = 0; k < copy.n_functions; k++)
            insns[i] += copy.functions[k].insns;
        copy.n_functions = 0;
        copy.taken = 0;
        assert_int_equal(tl_shard_stats_encode(&copy, &bytes[i]), TL_OK);
    }
    assert_int_equal(insns[0], insns[1]);
    assert_int_equal(bytes[0].n, bytes[1].n);
    assert_memory_equal(bytes[0].p, bytes[1].p, bytes[0].n);
    tl_buf_fini(&bytes[0]);
    tl_buf_fini(&bytes[1]);
}

/* `code`: positions are code, and lie in pages that an item log tells of. */
static void assert_same_index(const struct tl_shard_index *a, const struct tl_shard_index *b,
                              bool code)
{
    assert_int_equal(a->row.number, b->row.number);
    assert_int_equal(a->row.first, b->row.first);
    assert_int_equal(a->row.n, b->row.n);
    assert_int_equal(a->row.markers, b->row.markers);
    assert_int_equal(a->row.byte_first, b->row.byte_first);
    assert_int_equal(a->row.byte_last, b->row.byte_last);
    assert_int_equal(a->row.events, b->row.events);
    assert_int_equal(a->row.gaps, b->row.gaps);
    assert_int_equal(a->row.anchors, b->row.anchors);
    assert_same_now(&a->row.at, &b->row.at);
    assert_same_chunks(a, b, code);
    assert_same_tally(&a->stats, &b->stats);
    assert_int_equal(a->n_frames, b->n_frames);
    for (size_t i = 0; i < a->n_frames; i++) {
        assert_int_equal(a->frames[i].pc, b->frames[i].pc);
        assert_int_equal(a->frames[i].marker, b->frames[i].marker);
        assert_int_equal(a->frames[i].plain, b->frames[i].plain);
    }
    assert_int_equal(a->buckets.n, b->buckets.n);
    for (size_t i = 0; i < a->buckets.n; i++) {
        const struct tl_bucket *x = &a->buckets.p[i], *y = &b->buckets.p[i];
        assert_int_equal(x->insns, y->insns);
        assert_int_equal(x->events, y->events);
        assert_int_equal(x->event_mask, y->event_mask);
        assert_int_equal(x->flags, y->flags);
    }
}

/* Leave the lines of instructions and of exceptions between them, which the STF has without its
 * item logs. An exception after a shard's last instruction is in its STF, but an item of the next
 * shard, if there is one. */
static void only_recorded(struct tl_buf *text, bool last_shard)
{
    size_t n = 0, end_of_insns = 0;
    for (size_t i = 0; i < text->n;) {
        const uint8_t *end = memchr(text->p + i, '\n', text->n - i);
        const size_t size = end ? (size_t)(end + 1 - (text->p + i)) : text->n - i;
        const bool insn = text->p[i] == 'I';
        if (insn || (text->p[i] == 'X' && n > 0)) {
            memmove(text->p + n, text->p + i, size);
            n += size;
        }
        if (insn)
            end_of_insns = n;
        i += size;
    }
    text->n = last_shard ? n : end_of_insns;
}

struct mending {
    struct tl_backend *backend;
    struct tl_mend mend;
    const struct tl_buf *file;
    struct tl_view *view;
    bool last; /* shard of the stream */
    struct tl_buf text;
    unsigned whole, lost, hopeless;
};

/* `damaged` comes back as it was, without some items where a log is lost, or not at all. */
static void mend_one(struct mending *m, struct tl_bytes damaged)
{
    struct tl_buf mended = {0}, text = {0}, report = {0};
    struct tl_fail fail = {0};
    const int r = tl_shard_mend(damaged, &m->mend, &mended, &fail);
    if (r < 0) {
        assert_int_equal(r, TL_BAD);
        assert_true(fail.text[0] != '\0');
        m->hopeless++;
        tl_buf_fini(&mended);
        return;
    }
    struct tl_view *view = open_file(m->backend, &mended);
    if (tl_view_verify(m->backend, view->key, &report, NULL) != 0)
        fail_msg("%.*s", (int)report.n, (char *)report.p);
    if (r == 0) {
        assert_same_index(&m->view->index, &view->index, m->mend.protocol != TL_PROTO_ITM);
        append_text(view, 0, UINT64_MAX, true, m->mend.protocol, &text);
        assert_same_text(&m->text, &text);
        m->whole++;
    } else {
        assert_int_equal(view->index.row.n, m->view->index.row.n);
        append_text(view, 0, UINT64_MAX, true, m->mend.protocol, &text);
        struct tl_buf expected = {0};
        assert_int_equal(tl_buf_add(&expected, m->text.p, m->text.n), TL_OK);
        only_recorded(&expected, m->last);
        only_recorded(&text, m->last);
        assert_same_text(&expected, &text);
        tl_buf_fini(&expected);
        m->lost++;
    }
    tl_view_put(view);
    tl_buf_fini(&mended);
    tl_buf_fini(&text);
    tl_buf_fini(&report);
}

/* One bit anywhere; the end gone; two bits. */
static void mend_all(struct mending *m, struct made *random)
{
    const struct tl_buf *file = m->file;
    const uint64_t index = tl_le64(file->p + 12);
    struct tl_buf copy = {0};
    for (int i = 0; i < 60; i++) {
        const size_t behind = (size_t)index + made_below(random, file->n - index);
        const size_t at = i < 20 ? (size_t)i : i < 50 ? behind : made_below(random, file->n);
        tl_buf_reset(&copy);
        assert_int_equal(tl_buf_add(&copy, file->p, file->n), TL_OK);
        copy.p[at] ^= (uint8_t)(1u << made_below(random, 8));
        const unsigned hopeless = m->hopeless;
        mend_one(m, (struct tl_bytes){copy.p, copy.n});
        /* Only instructions, and logs that hold positions themselves, are nowhere else. */
        const bool in_index =
            at < 20 || (at >= index && at < m->view->index.chunks[0].items_offset);
        if (in_index && m->hopeless > hopeless)
            fail_msg("byte %zu of %zu, index at %zu", at, file->n, (size_t)index);
        copy.p[made_below(random, copy.n)] ^= 0x20;
        mend_one(m, (struct tl_bytes){copy.p, copy.n});
        mend_one(m, (struct tl_bytes){file->p, at});
    }
    tl_buf_fini(&copy);
}

/* Put exceptions and changes of mode after blocks: what the STF has, too, and no positions. */
static void interrupt(struct made *m)
{
    struct tl_item *const blocks = m->items;
    const size_t n = m->n;
    m->items = NULL;
    m->n = m->cap = 0;
    for (size_t i = 0; i < n; i++) {
        *made_add(m, TL_ITEM_BLOCK) = blocks[i];
        if (made_below(m, 2)) {
            struct tl_item *const item = made_add(m, TL_ITEM_EXCEPTION);
            item->sub = (uint16_t)made_below(m, 40);
            item->text = made_below(m, 4) ? "irq" : NULL;
        }
        if (made_below(m, 2))
            made_add(m, TL_ITEM_MODE)->value =
                tl_mode(TL_ARCH_ARM, (unsigned)made_below(m, 4), TL_SEC_NS,
                        made_below(m, 2) ? TL_ISA_A64 : TL_ISA_T32);
    }
    free(blocks);
}

static void shards_are_mended(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    unsigned whole = 0, lost = 0, hopeless = 0;
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    for (int round = 0; round < 12; round++) {
        struct made m;
        struct run run = random_run(&random);
        run.shard_insns += 500;
        run.chunk_markers += 20;
        made_stream(&m, made_random(&random), 200 + made_below(&random, 400),
                    (unsigned)(round % 3 ? 2 + made_below(&random, 10) : 0));
        if (round % 3 == 0)
            interrupt(&m);
        struct shards *s = build(&m, &run, 0, 0, made_random(&random));
        const size_t k = made_below(&random, s->n);
        struct mending mending = {
            .backend = backend,
            .mend = {.number = k, .protocol = run.protocol, .packer = s->packer},
            .file = &s->files[k],
            .last = k + 1 == s->n};
        mending.view = open_file(backend, &s->files[k]);
        /* A head that tells another length of chunks is only right where there are several:
         * chunks_of_all_versions(). */
        if (mending.view->index.n_frames > 1) {
            append_text(mending.view, 0, UINT64_MAX, true, run.protocol, &mending.text);
            mend_all(&mending, &random);
        }
        whole += mending.whole;
        lost += mending.lost;
        hopeless += mending.hopeless;
        tl_view_put(mending.view);
        tl_buf_fini(&mending.text);
        shards_free(s);
        made_free(&m);
    }
    print_message("%u whole, %u without some items, %u hopeless\n", whole, lost, hopeless);
    tl_backend_free(backend);
}

/* A shard of one chunk, as this version and older ones made it, is good, and mended to what it was;
 * another length of chunks is damage. */
static void chunks_of_all_versions(void **state)
{
    static const uint64_t lengths[] = {TL_CHUNK_MARKERS, TL_CHUNK_MARKERS_OLD, 1000};
    struct made random = {.random = seed_of_day()};
    struct tl_backend *backend;
    struct made m;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    made_stream(&m, made_random(&random), 100, 4);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        const struct run run = {1 << 20, lengths[i], TL_PROTO_ETM4};
        struct shards *s = build(&m, &run, 0, 0, 1);
        assert_int_equal(s->n, 1);
        assert_int_equal(s->views[0]->index.n_frames, 1);
        struct tl_view *const view = open_file(backend, &s->files[0]);
        struct tl_buf report = {0}, mended = {0};
        const struct tl_mend mend = {.protocol = run.protocol, .packer = s->packer};
        const struct tl_bytes file = {s->files[0].p, s->files[0].n};
        const bool known = i < 2;
        assert_int_equal(tl_view_verify(backend, view->key, &report, NULL), known ? 0 : 1);
        s->files[0].p[file.n - 1] ^= 1; /* the footer's checksum */
        assert_int_equal(tl_shard_mend(file, &mend, &mended, NULL), TL_OK);
        s->files[0].p[file.n - 1] ^= 1;
        assert_int_equal(tl_le64(mended.p + 4), known ? lengths[i] : TL_CHUNK_MARKERS);
        if (known) {
            assert_int_equal(mended.n, file.n);
            assert_memory_equal(mended.p, file.p, file.n);
        }
        tl_buf_fini(&report);
        tl_buf_fini(&mended);
        tl_view_put(view);
        shards_free(s);
    }
    made_free(&m);
    tl_backend_free(backend);
}

/* An instruction and three messages, again and again: to ITM each message is a position, too. Then
 * messages alone, for more than a chunk. */
static void with_messages(struct made *m)
{
    static const uint8_t message[256];
    *m = (struct made){.random = 5};
    for (size_t i = 0; i < MADE_BLOCKS; i++)
        made_block(m, i);
    for (size_t i = 0; i < 4 * 2000; i++) {
        struct tl_item *const item =
            made_add(m, i % 4 ? (uint8_t)TL_ITEM_SOFTWARE : (uint8_t)TL_ITEM_BLOCK);
        item->name = "itm";
        if (item->kind == TL_ITEM_BLOCK) {
            item->block = &m->blocks[i % MADE_BLOCKS];
            item->n = 1;
        }
    }
    for (size_t i = 0; i < 2500; i++) {
        struct tl_item *const item = made_add(m, TL_ITEM_SOFTWARE);
        *item = (struct tl_item){.kind = TL_ITEM_SOFTWARE,
                                 .offset = item->offset,
                                 .name = "itm",
                                 .data = message,
                                 .n = sizeof message};
    }
}

/* Where the index is lost, chunks tell by their logs where they are. One log that cannot be there
 * is enough: each of these is wrong in one way only. */
static void mixed_up_chunks_are_told(void **state)
{
    static const struct {
        const char *what;
        struct run into;
        size_t at;
        struct run from;
        size_t log;
    } cases[] = {
        {"position", {1 << 20, 200, TL_PROTO_ITM}, 2, {1 << 20, 200, TL_PROTO_ETM4}, 2},
        {"marker", {1 << 20, 200, TL_PROTO_ETM4}, 2, {1 << 20, 70, TL_PROTO_ITM}, 2},
        {"frame before", {1 << 20, 100, TL_PROTO_ETM4}, 3, {1 << 20, 400, TL_PROTO_ETM4}, 1},
        {"frame behind", {1 << 20, 400, TL_PROTO_ETM4}, 1, {1 << 20, 100, TL_PROTO_ETM4}, 8},
        {"begin", {1 << 20, 5000, TL_PROTO_ETM4}, 0, {1 << 20, 100, TL_PROTO_ETM4}, 1},
    };
    struct made m;
    (void)state;
    with_messages(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shards *const s = build(&m, &cases[i].into, 0, 0, 2);
        struct shards *const other = build(&m, &cases[i].from, 0, 0, 2);
        struct tl_view *const view = s->views[0];
        const struct tl_mend mend = {.protocol = cases[i].into.protocol, .packer = s->packer};
        struct tl_blob **const log = &view->items[cases[i].at], *const own = *log;
        assert_true(cases[i].at < view->index.n_chunks);
        assert_true(cases[i].log < other->views[0]->index.n_chunks);
        for (unsigned mixed = 0; mixed < 2; mixed++) {
            struct tl_buf file = {0}, mended = {0};
            struct tl_fail fail = {0};
            struct tl_shard_footer footer;
            *log = mixed ? other->views[0]->items[cases[i].log] : own;
            assert_int_equal(
                tl_view_encode(view, cases[i].into.chunk_markers, s->packer, &file, NULL), TL_OK);
            assert_true(tl_shard_footer_read(file.p + file.n - TL_SHARD_FOOTER, file.n, &footer) >=
                        0);
            file.p[footer.body + footer.body_size / 2] ^= 1;
            const int r = tl_shard_mend((struct tl_bytes){file.p, file.n}, &mend, &mended, &fail);
            if (r != (mixed ? TL_BAD : TL_OK) ||
                (mixed && !strstr(fail.text, "item logs are mixed up")))
                fail_msg("%s: %d, %s", cases[i].what, r, fail.text);
            tl_buf_fini(&mended);
            tl_buf_fini(&file);
        }
        *log = own;
        shards_free(s);
        shards_free(other);
    }
    made_free(&m);
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
        cmocka_unit_test(shards_are_mended),
        cmocka_unit_test(saved_in_a_shard),
        cmocka_unit_test(full_within_a_path),
        cmocka_unit_test(branch_that_strays),
        cmocka_unit_test(program_that_changes_in_time),
        cmocka_unit_test(chunks_of_all_versions),
        cmocka_unit_test(mixed_up_chunks_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
