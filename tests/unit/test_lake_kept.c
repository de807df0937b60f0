/* SPDX-License-Identifier: MIT */
/* Call counts stored next to shards of simulated cores: counted block by block while shards are
 * built, they equal those of a walk through them, instruction by instruction. */
#include "lake_analysis.h"
#include "sim_capture.h"

#include "lake/recount_calls.h"
#include "query/kept.h"
#include "query/timed_parts.h"
#include "query/timed_rows.h"
#include "upkeep/backfill.h"

enum { SHARD = 20000, INSNS = 120000 };

static bool ends(const char *key, const char *with)
{
    const size_t n = strlen(key), end = strlen(with);
    return n > end && !strcmp(key + n - end, with);
}

static int count_shards(void *context, const char *key, uint64_t size)
{
    (void)size;
    *(unsigned *)context += ends(key, ".zstf") || ends(key, ".idx");
    return TL_OK;
}

struct keys {
    char v[64][192];
    unsigned n;
};

static int list_calls(void *context, const char *key, uint64_t size)
{
    struct keys *const keys = context;
    (void)size;
    if (!ends(key, ".calls"))
        return TL_OK;
    assert_true(keys->n < 64);
    snprintf(keys->v[keys->n++], sizeof *keys->v, "%s", key);
    return TL_OK;
}

static void open_side(struct tl_lake **lake, struct tl_backend *backend, bool is_virtual)
{
    const struct tl_lake_options options = {.shard_insns = SHARD,
                                            .decode_threads = 2,
                                            .min_free_bytes = 1,
                                            .virtual_shards = is_virtual};
    struct tl_fail fail = {0};
    if (tl_lake_open_on(lake, backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
}

/* Print everything in a profile, for use after the lake is closed. Returns the number of paths. */
static size_t profile_of(struct tl_lake *lake, struct tl_buf *out)
{
    const struct tl_profile_request request = {.trace = "t", .to = UINT64_MAX, .nodes = 20000};
    struct tl_profile p;
    struct tl_fail fail = {0};
    if (tl_lake_profile(lake, &request, &p, &fail) < 0)
        fail_msg("%s", fail.text);
    int r = tl_buf_printf(out, "%llu\n", (unsigned long long)p.insns);
    for (size_t i = 0; i < p.n_nodes && r >= 0; i++) {
        const struct tl_profile_node *const n = &p.nodes[i];
        r = tl_buf_printf(out, "%u %s %llu %llu\n", n->depth, n->name, (unsigned long long)n->self,
                          (unsigned long long)n->calls);
    }
    for (size_t i = 0; i < p.n_functions && r >= 0; i++) {
        const struct tl_profile_function *const f = &p.functions[i];
        r = tl_buf_printf(out, "%s %llu %llu %llu %llu %llu %llu\n", f->name,
                          (unsigned long long)f->self, (unsigned long long)f->calls,
                          (unsigned long long)f->finished, (unsigned long long)f->length,
                          (unsigned long long)f->min, (unsigned long long)f->max);
    }
    assert_true(r >= 0);
    const size_t n = p.n_nodes;
    tl_profile_fini(&p);
    return n;
}

static void check(const struct sim_options *o, bool is_virtual)
{
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct capture capture = {0};
    struct tl_buf kept = {0}, walked = {0};
    struct keys keys = {.n = 0};
    unsigned shards = 0;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    open_side(&lake, backend, is_virtual);
    sim_capture(lake, o, &capture);
    push_sealed(lake, "t", &capture, 1 << 20);

    /* Each shard has counts before the first query. */
    assert_int_equal(backend->ops->list(backend, "t/t", count_shards, &shards, NULL), TL_OK);
    assert_int_equal(backend->ops->list(backend, "t/t", list_calls, &keys, NULL), TL_OK);
    assert_true(shards >= INSNS / SHARD);
    assert_int_equal(keys.n, shards);
    assert_true(profile_of(lake, &kept) > 10);
    /* Without them, and with an empty cache, all shards are walked. */
    tl_lake_close(lake);
    for (unsigned i = 0; i < keys.n; i++)
        assert_int_equal(backend->ops->remove(backend, keys.v[i], NULL), TL_OK);
    open_side(&lake, backend, is_virtual);
    (void)profile_of(lake, &walked);
    assert_texts_equal(&kept, &walked);
    /* A query stores them again. */
    const unsigned before = keys.n;
    keys.n = 0;
    assert_int_equal(backend->ops->list(backend, "t/t", list_calls, &keys, NULL), TL_OK);
    assert_int_equal(keys.n, before);
    tl_buf_fini(&kept);
    tl_buf_fini(&walked);
    capture_free(&capture);
    close_memory_lake(backend, lake);
}

static void calls_are_counted_where_shards_are_built(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const struct sim_options plain = {.seed = seed, .insns = INSNS, .cores = 2, .image = true};
        struct sim_options rich = plain;
        rich.events = true;
        rich.cycles = seed == 2;
        check(&plain, false);
        check(&rich, false);
        check(&rich, true);
    }
}

static int count_kept(void *context, const char *key, uint64_t size)
{
    (void)size;
    *(unsigned *)context += ends(key, ".calls") || ends(key, ".count");
    return TL_OK;
}

/* A short stream of virtual shards is counted anew for each query, with the same result. */
static void short_virtual_streams_keep_nothing(void **state)
{
    (void)state;
    const struct sim_options o = {.seed = 4, .insns = SHARD / 3, .cores = 1, .image = true};
    struct tl_buf profiles[2] = {{0}, {0}};
    for (unsigned is_virtual = 0; is_virtual < 2; is_virtual++) {
        struct tl_backend *backend;
        struct tl_lake *lake;
        struct capture capture = {0};
        unsigned before = 0, after = 0;
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        open_side(&lake, backend, is_virtual);
        sim_capture(lake, &o, &capture);
        push_sealed(lake, "t", &capture, 1 << 20);
        assert_int_equal(backend->ops->list(backend, "t/t", count_kept, &before, NULL), TL_OK);
        assert_true(profile_of(lake, &profiles[is_virtual]) > 2);
        assert_int_equal(backend->ops->list(backend, "t/t", count_kept, &after, NULL), TL_OK);
        assert_int_equal(before, is_virtual ? 0 : 2);
        assert_int_equal(after, before);
        capture_free(&capture);
        close_memory_lake(backend, lake);
    }
    assert_texts_equal(&profiles[0], &profiles[1]);
    tl_buf_fini(&profiles[0]);
    tl_buf_fini(&profiles[1]);
}

/* ---- times ----------------------------------------------------------------------------------- */

struct recount {
    struct tl_backend *backend;
    const struct tl_cut *cut;
    struct tl_packer *packer;
    size_t next, timed;
};

static void object_of(const struct tl_cut *cut, size_t row, struct tl_backend *backend,
                      struct tl_buf *out)
{
    char key[192];
    tl_shard_object_key(key, cut->gen->trace, cut->gen->number, cut->lane->name,
                        cut->rows[row].number, TL_CALLTREE_KIND);
    assert_int_equal(tl_backend_get_all(backend, key, out, NULL), TL_OK);
}

static int same_as_stored(void *context, size_t row, struct tl_shard_calls *calls)
{
    struct recount *const c = context;
    struct tl_buf stored = {0}, made = {0};
    assert_int_equal(row, c->next++);
    object_of(c->cut, row, c->backend, &stored);
    assert_int_equal(tl_shard_calls_encode(calls, c->packer, &made), TL_OK);
    assert_int_equal(made.n, stored.n);
    assert_memory_equal(made.p, stored.p, made.n);
    c->timed += calls->index.extent.timed;
    tl_buf_fini(&stored);
    tl_buf_fini(&made);
    return TL_OK;
}

static int note_exception(void *context, const struct tl_exception_span *e)
{
    struct tl_timed_rows rows = {0};
    assert_int_equal(tl_timed_rows_exception(&rows, e), TL_OK);
    assert_int_equal(tl_timed_rows_encode(&rows, context), TL_OK);
    tl_timed_rows_fini(&rows);
    return TL_OK;
}

/* All exceptions of a stream. */
static void list_exceptions(const struct tl_cut *cut, struct tl_buf *out)
{
    struct tl_timed_extent all;
    const struct tl_timed_rows_sinks sinks = {.exception = note_exception, .context = out};
    assert_int_equal(tl_timed_rows_gather(cut, 0, UINT64_MAX, &sinks, &all, NULL), TL_OK);
}

static int add_index(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail)
{
    (void)row, (void)fail;
    return tl_call_index_merge(context, &calls->index);
}

static int skip_part(void *context, const struct tl_timed_part *part, struct tl_fail *fail)
{
    (void)context, (void)part, (void)fail;
    return TL_OK;
}

/* The indexes of all shards. */
static void add_indexes(const struct tl_cut *cut, struct tl_call_index *out)
{
    const struct tl_timed_parts parts = {.cut = cut,
                                         .to = cut->end,
                                         .index = true,
                                         .walk = skip_part,
                                         .shard = add_index,
                                         .context = out};
    assert_int_equal(tl_timed_parts_visit(&parts, NULL), TL_OK);
}

/* The object as programs wrote it that knew the tree alone, or two parts. */
static void make_older(struct tl_buf *object, bool two)
{
    const uint8_t *const sizes = object->p + 8, *const parts = sizes + 12;
    const uint32_t tree = tl_le32(sizes), index = tl_le32(sizes + 4);
    struct tl_buf older = {0};
    if (two) {
        assert_int_equal(tl_buf_add(&older, "TLCALLS2", 8), TL_OK);
        assert_int_equal(tl_buf_add(&older, sizes, 8), TL_OK);
    }
    assert_int_equal(tl_buf_add(&older, parts, two ? tree + index : tree), TL_OK);
    tl_buf_fini(object);
    *object = older;
}

/* Of some shards the store has what programs wrote that knew less. */
static void make_some_older(const struct tl_cut *cut, struct tl_backend *backend)
{
    for (size_t i = 0; i < cut->n_stored; i++) {
        struct tl_buf object = {0};
        char key[192];
        if (i % 3 == 0)
            continue;
        object_of(cut, i, backend, &object);
        tl_shard_object_key(key, cut->gen->trace, cut->gen->number, cut->lane->name,
                            cut->rows[i].number, TL_CALLTREE_KIND);
        /* Without time, there are no rows to be missed. */
        make_older(&object, i % 3 == 1 && cut->rows[i].anchors > 0);
        const struct tl_object old = {key, {object.p, object.n}};
        assert_int_equal(backend->ops->put_all(backend, &old, 1, NULL), TL_OK);
        tl_buf_fini(&object);
    }
}

/* The indexes of shards, some of which have lost theirs, are the same; and are kept again. */
static void lose_some(struct recount *c, const struct tl_cut *cut)
{
    struct tl_call_index all = {0}, again = {0};
    struct tl_buf bytes[2] = {{0}, {0}}, exceptions[2] = {{0}, {0}};
    struct tl_fail fail = {0};
    list_exceptions(cut, &exceptions[0]);
    add_indexes(cut, &all);
    make_some_older(cut, c->backend);
    list_exceptions(cut, &exceptions[1]);
    assert_int_equal(exceptions[0].n, exceptions[1].n);
    if (exceptions[0].n > 0)
        assert_memory_equal(exceptions[0].p, exceptions[1].p, exceptions[0].n);
    add_indexes(cut, &again);
    assert_int_equal(tl_call_index_encode(&all, &bytes[0]), TL_OK);
    assert_int_equal(tl_call_index_encode(&again, &bytes[1]), TL_OK);
    assert_int_equal(bytes[0].n, bytes[1].n);
    assert_memory_equal(bytes[0].p, bytes[1].p, bytes[0].n);
    c->next = 0;
    assert_int_equal(tl_recount_calls(cut, 0, cut->n_stored, same_as_stored, c, &fail), TL_OK);
    tl_call_index_fini(&all);
    tl_call_index_fini(&again);
    tl_buf_fini(&bytes[0]);
    tl_buf_fini(&bytes[1]);
    tl_buf_fini(&exceptions[0]);
    tl_buf_fini(&exceptions[1]);
}

/* Counted anew, from any shard on, calls are those that were counted when the shards were made. */
static void calls_are_counted_anew_from_any_shard(void **state)
{
    (void)state;
    size_t timed = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        const struct sim_options o = {.seed = seed,
                                      .insns = INSNS,
                                      .cores = 1,
                                      .image = true,
                                      .events = seed != 3,
                                      .cycles = seed % 2};
        struct recount c = {0};
        struct tl_lake *lake;
        struct tl_cut cut;
        struct capture capture = {0};
        struct tl_fail fail = {0};
        assert_int_equal(tl_backend_memory(&c.backend), TL_OK);
        assert_int_equal(tl_packer_new(&c.packer), TL_OK);
        open_side(&lake, c.backend, seed == 2);
        sim_capture(lake, &o, &capture);
        push_sealed(lake, "t", &capture, 1 << 20);
        assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", &fail), TL_OK);
        assert_true(cut.n_stored >= INSNS / SHARD);
        c.cut = &cut;
        for (size_t first = 0; first < cut.n_stored; first += 1 + first / 2) {
            c.next = first;
            if (tl_recount_calls(&cut, first, cut.n_stored, same_as_stored, &c, &fail) < 0)
                fail_msg("%s", fail.text);
            assert_int_equal(c.next, cut.n_stored);
        }
        lose_some(&c, &cut);
        timed += c.timed;
        tl_cut_close(&cut);
        tl_packer_free(c.packer);
        capture_free(&capture);
        close_memory_lake(c.backend, lake);
    }
    assert_true(timed > 20);
}

static size_t missing_in(const struct tl_cut *cut)
{
    size_t n = 0;
    for (size_t i = 0; i < cut->n_stored; i++)
        n += tl_kept_is_missing(cut, i);
    return n;
}

/* A folder of an older server is completed after it was opened, without a question. */
static void older_counts_are_made_in_the_background(void **state)
{
    (void)state;
    for (int is_virtual = 0; is_virtual < 2; is_virtual++) {
        const struct sim_options o = {
            .seed = 7, .insns = INSNS, .cores = 1, .image = true, .events = true};
        struct tl_backend *backend;
        struct tl_lake *lake;
        struct tl_cut cut;
        struct capture capture = {0};
        struct tl_buf before[64] = {{0}};
        size_t counted = 0;
        assert_int_equal(tl_backend_memory(&backend), TL_OK);
        open_side(&lake, backend, is_virtual);
        sim_capture(lake, &o, &capture);
        push_sealed(lake, "t", &capture, 1 << 20);
        assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", NULL), TL_OK);
        const size_t n = cut.n_stored;
        assert_true(n > 5 && n <= 64 && missing_in(&cut) == 0);
        for (size_t i = 0; i < n; i++)
            object_of(&cut, i, backend, &before[i]);
        make_some_older(&cut, backend);
        assert_true(missing_in(&cut) >= n / 2);
        tl_cut_close(&cut);
        tl_lake_close(lake);
        uint64_t size;
        if (backend->ops->size(backend, "k/calls", &size, NULL) >= 0) /* nor did they know it */
            assert_int_equal(backend->ops->remove(backend, "k/calls", NULL), TL_OK);
        open_side(&lake, backend, is_virtual);
        assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", NULL), TL_OK);
        for (int64_t since = 0; missing_in(&cut) > 0;)
            keep_waiting(&since, "older counts are made");
        for (size_t i = 0; i < n; i++) {
            struct tl_buf after = {0};
            object_of(&cut, i, backend, &after);
            assert_int_equal(after.n, before[i].n);
            assert_memory_equal(after.p, before[i].p, after.n);
            tl_buf_fini(&after);
            tl_buf_fini(&before[i]);
        }
        /* Nothing is counted twice. */
        assert_int_equal(tl_backfill_all(lake, false, &counted, NULL), TL_OK);
        assert_int_equal(counted, 0);
        tl_cut_close(&cut);
        capture_free(&capture);
        close_memory_lake(backend, lake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_where_shards_are_built),
        cmocka_unit_test(short_virtual_streams_keep_nothing),
        cmocka_unit_test(calls_are_counted_anew_from_any_shard),
        cmocka_unit_test(older_counts_are_made_in_the_background),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
