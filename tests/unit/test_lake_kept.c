/* SPDX-License-Identifier: MIT */
/*
 * What is kept of who called whom beside shards of simulated cores: counted where shards are built,
 * block by block, it is what a walk through them counts, instruction by instruction.
 */
#include "sim_capture.h"

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

static void profile_of(struct tl_lake *lake, struct tl_profile *out)
{
    const struct tl_profile_request request = {.trace = "t", .to = UINT64_MAX, .nodes = 20000};
    struct tl_fail fail = {0};
    if (tl_lake_profile(lake, &request, out, &fail) < 0)
        fail_msg("%s", fail.text);
}

static void assert_same(const struct tl_profile *a, const struct tl_profile *b)
{
    assert_int_equal(a->insns, b->insns);
    assert_int_equal(a->n_nodes, b->n_nodes);
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct tl_profile_node *const x = &a->nodes[i], *const y = &b->nodes[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->depth, y->depth);
        assert_int_equal(x->self, y->self);
        assert_int_equal(x->calls, y->calls);
    }
    assert_int_equal(a->n_functions, b->n_functions);
    for (size_t i = 0; i < a->n_functions; i++) {
        const struct tl_profile_function *const x = &a->functions[i], *const y = &b->functions[i];
        assert_string_equal(x->name, y->name);
        assert_int_equal(x->self, y->self);
        assert_int_equal(x->calls, y->calls);
        assert_int_equal(x->finished, y->finished);
        assert_int_equal(x->length, y->length);
        assert_int_equal(x->min, y->min);
        assert_int_equal(x->max, y->max);
    }
}

static void check(const struct sim_options *o, bool is_virtual)
{
    struct tl_backend *backend;
    struct tl_lake *lake;
    struct capture capture = {0};
    struct tl_profile kept, walked;
    struct keys keys = {.n = 0};
    unsigned shards = 0;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    open_side(&lake, backend, is_virtual);
    sim_capture(lake, o, &capture);
    push_all(lake, "t", &capture, 1 << 20);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);

    /* Before anybody asks, each shard has it. */
    assert_int_equal(backend->ops->list(backend, "t/t", count_shards, &shards, NULL), TL_OK);
    assert_int_equal(backend->ops->list(backend, "t/t", list_calls, &keys, NULL), TL_OK);
    assert_true(shards >= INSNS / SHARD);
    assert_int_equal(keys.n, shards);
    profile_of(lake, &kept);
    assert_true(kept.n_nodes > 10);
    /* Without it, and remembering nothing, all are walked through. */
    tl_lake_close(lake);
    for (unsigned i = 0; i < keys.n; i++)
        assert_int_equal(backend->ops->remove(backend, keys.v[i], NULL), TL_OK);
    open_side(&lake, backend, is_virtual);
    profile_of(lake, &walked);
    assert_same(&kept, &walked);
    /* Who asks has it kept again. */
    const unsigned before = keys.n;
    keys.n = 0;
    assert_int_equal(backend->ops->list(backend, "t/t", list_calls, &keys, NULL), TL_OK);
    assert_int_equal(keys.n, before);
    tl_profile_fini(&kept);
    tl_profile_fini(&walked);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_counted_where_shards_are_built),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
