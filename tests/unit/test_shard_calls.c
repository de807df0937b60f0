/* SPDX-License-Identifier: MIT */
/*
 * Times of calls as they are counted while shards are made, compared with what follows from all
 * items at once; the parts that they consist of; and their objects.
 */
#include "base/crc32c.h"
#include "base/hash.h"
#include "call_twin.h"
#include "decode/ops.h"
#include "made_shards.h"
#include "sim_streams.h"

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void classes_are_narrow_and_in_order(void **state)
{
    uint64_t value = 0;
    (void)state;
    for (uint32_t i = 0; i < TL_SKETCH_CLASSES; i++) {
        const uint64_t least = tl_sketch_least(i), next = tl_sketch_least(i + 1);
        assert_true(next > least);
        assert_int_equal(tl_sketch_class(least), i);
        assert_int_equal(tl_sketch_class(next - 1 + (i + 1 == TL_SKETCH_CLASSES)), i);
        assert_true(least < 128 ? next - least == 1 : (next - least) * 64 <= least);
        value = next;
    }
    assert_true(value == UINT64_MAX);
}

/* Passing over numbers ends where reading them does, also at the end of the bytes. */
static void numbers_are_passed_over(void **state)
{
    struct made random = {.random = 5};
    struct tl_buf bytes = {0};
    enum { NUMBERS = 400 };
    (void)state;
    for (unsigned i = 0; i < NUMBERS; i++)
        assert_int_equal(tl_varint_add(&bytes, UINT64_MAX >> made_below(&random, 64)), TL_OK);
    for (unsigned first = 0; first < 20; first++)
        for (unsigned n = 0; n <= NUMBERS - first + 1; n++) {
            struct tl_varint_reader read = {bytes.p, bytes.p + bytes.n, false}, skipped;
            for (unsigned i = 0; i < first; i++)
                (void)tl_varint_get(&read);
            skipped = read;
            for (unsigned i = 0; i < n; i++)
                (void)tl_varint_get(&read);
            tl_varint_skip(&skipped, n);
            assert_ptr_equal(skipped.p, read.p);
            assert_int_equal(skipped.bad, read.bad);
        }
    tl_buf_fini(&bytes);
}

/* Merged in any order, and as bytes, they are the same; quantiles are as exact as promised. */
static void parts_add_up_to_the_whole(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct made m = {.random = seed};
        struct tl_sketch parts[3] = {{0}}, whole = {0}, read = {0};
        struct tl_slowest slow[3] = {{0}}, slowest = {0}, slow_read = {0};
        struct tl_buf bytes = {0}, slow_bytes = {0};
        const size_t n = 1 + made_below(&m, 3000);
        const unsigned shift = (unsigned)made_below(&m, 64);
        uint64_t *const values = malloc(n * sizeof *values);
        for (size_t i = 0; i < n; i++) {
            const uint64_t part = made_below(&m, 3);
            values[i] = made_random(&m) >> shift >> made_below(&m, 64 - shift);
            assert_int_equal(tl_sketch_add(&parts[part], values[i]), TL_OK);
            assert_int_equal(tl_sketch_add(&whole, values[i]), TL_OK);
            assert_int_equal(tl_slowest_add(&slow[part], i, values[i]), TL_OK);
            assert_int_equal(tl_slowest_add(&slowest, i, values[i]), TL_OK);
        }
        for (unsigned i = 1; i < 3; i++) {
            assert_int_equal(tl_sketch_merge(&parts[0], &parts[i]), TL_OK);
            assert_int_equal(tl_slowest_merge(&slow[0], &slow[i]), TL_OK);
        }
        assert_int_equal(tl_sketch_encode(&parts[0], &bytes), TL_OK);
        assert_int_equal(tl_slowest_encode(&slow[0], &slow_bytes), TL_OK);
        struct tl_varint_reader in = {bytes.p, bytes.p + bytes.n, false};
        assert_int_equal(tl_sketch_read(&read, &in), TL_OK);
        assert_true(!in.bad && in.p == in.end);
        in = (struct tl_varint_reader){slow_bytes.p, slow_bytes.p + slow_bytes.n, false};
        assert_int_equal(tl_slowest_read(&slow_read, &in), TL_OK);
        assert_true(!in.bad && in.p == in.end);
        assert_int_equal(tl_sketch_total(&read), n);
        tl_slowest_sort(&slow_read);
        tl_slowest_sort(&slowest);
        assert_int_equal(slow_read.n, slowest.n);
        assert_memory_equal(slow_read.p, slowest.p, slowest.n * sizeof *slowest.p);
        qsort(values, n, sizeof *values, by_value);
        for (unsigned percent = 0; percent <= 100; percent += 5) {
            const size_t rank = (n * percent + 99) / 100;
            const uint64_t exact = values[rank > 0 ? rank - 1 : 0];
            const uint64_t found = tl_sketch_quantile(&read, (double)rank / (double)n);
            assert_int_equal(found, tl_sketch_quantile(&whole, (double)rank / (double)n));
            const uint64_t away = found > exact ? found - exact : exact - found;
            assert_true(away <= exact / 100);
        }
        for (size_t i = 0; i < slowest.n; i++)
            assert_true(slowest.p[i].length == values[n - 1 - i]);
        for (unsigned i = 0; i < 3; i++) {
            tl_sketch_fini(&parts[i]);
            tl_slowest_fini(&slow[i]);
        }
        tl_sketch_fini(&whole);
        tl_sketch_fini(&read);
        tl_slowest_fini(&slowest);
        tl_slowest_fini(&slow_read);
        tl_buf_fini(&bytes);
        tl_buf_fini(&slow_bytes);
        free(values);
    }
}

/* ---- whole streams --------------------------------------------------------------------------- */

struct counted {
    struct twin *twin;
    struct tl_build *build;
    struct tl_packer *packer;
    struct tl_call_index all; /* of all shards, read from their objects */
    uint64_t self, time;      /* of all paths */
    uint64_t insns, shard_insns;
    size_t seals;
    uint64_t hash; /* of all objects */
    size_t bytes;
};

static int take_shard(void *context, struct tl_view *view)
{
    struct counted *const c = context;
    struct tl_calltree tree = {0};
    struct tl_call_index one = {0};
    struct tl_buf object = {0};
    c->seals++;
    c->insns += view->index.row.n;
    assert_non_null(view->calls);
    assert_int_equal(tl_shard_calls_encode(view->calls, c->packer, &object), TL_OK);
    c->bytes += object.n;
    c->hash = tl_mix64(c->hash + tl_crc32c(0, object.p, object.n));
    assert_int_equal(tl_shard_calls_decode(&tree, &one, (struct tl_bytes){object.p, object.n}), 1);
    assert_true(!one.extent.timed || !c->all.extent.timed ||
                (one.extent.from == c->all.extent.to && one.extent.begin == c->all.extent.end));
    assert_int_equal(tl_call_index_merge(&c->all, &one), TL_OK);
    for (size_t i = 0; i < tree.n_nodes; i++) {
        c->self += tree.nodes[i].self;
        c->time += tree.nodes[i].time;
    }
    tl_calltree_fini(&tree);
    tl_call_index_fini(&one);
    tl_buf_fini(&object);
    tl_view_put(view);
    return TL_OK;
}

static int take_items(void *context, const struct tl_item *items, size_t n)
{
    struct counted *const c = context;
    if (c->twin)
        twin_items(c->twin, items, n);
    return tl_build_items(c->build, items, n);
}

static void same_sums(const struct tl_call_sums *a, const struct tl_call_sums *b)
{
    assert_int_equal(a->self, b->self);
    assert_int_equal(a->calls, b->calls);
    assert_int_equal(a->ended, b->ended);
    assert_int_equal(a->total, b->total);
    if (a->ended == 0)
        return;
    assert_int_equal(a->min, b->min);
    assert_int_equal(a->max, b->max);
    assert_int_equal(a->longest, b->longest);
}

static void same_lengths(const struct tl_call_sums *sums, uint64_t *lengths, size_t n)
{
    assert_int_equal(sums->ended, n);
    assert_int_equal(tl_sketch_total(&sums->lengths), n);
    if (n == 0)
        return;
    qsort(lengths, n, sizeof *lengths, by_value);
    assert_int_equal(sums->slowest.n, n < TL_SLOWEST ? n : TL_SLOWEST);
    struct tl_slowest *const slowest = (struct tl_slowest *)&sums->slowest;
    tl_slowest_sort(slowest);
    for (size_t i = 0; i < slowest->n; i++)
        assert_int_equal(slowest->p[i].length, lengths[n - 1 - i]);
    assert_int_equal(slowest->p[0].position, sums->longest);
    for (unsigned percent = 1; percent <= 99; percent += 14) {
        const size_t rank = (n * percent + 99) / 100;
        const uint64_t found = tl_sketch_quantile(&sums->lengths, (double)rank / (double)n),
                       exact = lengths[rank - 1];
        assert_true((found > exact ? found - exact : exact - found) <= exact / 100);
    }
}

/* False: the last shard ended just before the stream did, so that what is behind its last timestamp
 * is counted nowhere. */
static bool compare(struct counted *c)
{
    assert_int_equal(c->insns, c->twin->position);
    if (c->twin->timed && c->all.extent.timed && c->all.extent.to < c->twin->position)
        return false;
    struct twin_result *const r = calloc(1, sizeof *r);
    assert_non_null(r);
    twin_count(c->twin, r);
    assert_int_equal(c->all.extent.timed, c->twin->timed);
    assert_int_equal(c->self, c->insns);
    uint64_t self = 0;
    for (size_t i = 0; i < r->index.n_functions && c->twin->timed; i++) {
        const struct tl_function_calls *const f = &r->index.functions[i];
        const struct tl_function_calls *const found = tl_call_index_find(&c->all, f->function);
        static const struct tl_call_sums none;
        const struct tl_call_sums *const by = found ? &found->by[TL_BY_TIME] : &none;
        same_sums(by, &f->by[TL_BY_TIME]);
        if (f->function < 64)
            same_lengths(by, r->lengths[f->function], r->n_lengths[f->function]);
    }
    for (size_t i = 0; i < c->all.n_functions; i++)
        self += c->all.functions[i].by[TL_BY_TIME].self;
    if (c->twin->timed) {
        assert_int_equal(c->all.extent.begin, r->index.extent.begin);
        assert_int_equal(c->all.extent.end, r->index.extent.end);
        assert_int_equal(c->all.extent.from, c->twin->knots[c->twin->first].position);
        assert_int_equal(c->all.extent.to, c->twin->position);
        for (unsigned i = TL_TIMED_LOST; i < TL_TIMED_KINDS; i++)
            assert_int_equal(c->all.extent.missing[i], r->index.extent.missing[i]);
    }
    assert_int_equal(self, c->time);
    for (unsigned i = TL_TIMED_LOST; i < TL_TIMED_KINDS; i++)
        self += c->all.extent.missing[i];
    assert_int_equal(self, c->all.extent.end - c->all.extent.begin);
    twin_result_free(r);
    return true;
}

static void counted_begin(struct counted *c, enum tl_protocol protocol,
                          const struct tl_image *image, uint64_t shard_insns, bool twin)
{
    const struct tl_build_options options = {.protocol = protocol,
                                             .shard_insns = shard_insns,
                                             .image = image,
                                             .seal = take_shard,
                                             .context = c};
    *c = (struct counted){.twin = twin ? twin_new(protocol, image) : NULL,
                          .shard_insns = shard_insns};
    assert_int_equal(tl_packer_new(&c->packer), TL_OK);
    assert_int_equal(tl_build_new(&c->build, &options), TL_OK);
}

static void counted_end(struct counted *c)
{
    tl_build_free(c->build);
    tl_packer_free(c->packer);
    tl_call_index_fini(&c->all);
    if (c->twin)
        twin_free(c->twin);
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context, (void)reason, (void)offset, (void)bytes;
    return TL_OK;
}

/* An image of the program with its symbols. */
static struct tl_image *named_image(const struct tl_sim_program *program)
{
    struct tl_image *image;
    struct tl_fail fail = {.text = ""};
    assert_int_equal(tl_image_new(&image), TL_OK);
    struct tl_buf elf = {0};
    assert_int_equal(tl_sim_program_elf(program, &elf), TL_OK);
    assert_int_equal(
        tl_image_add_elf(image, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", &fail),
        TL_OK);
    tl_buf_fini(&elf);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    return image;
}

static void decode(struct counted *c, const struct world *w, const struct tl_image *image,
                   size_t piece)
{
    struct tl_stream_decoder *decoder;
    const struct tl_stream_sink sink = {.context = c,
                                        .items = take_items,
                                        .loss = ignore_loss,
                                        .paths = true,
                                        .code = tl_stf_block_code};
    assert_int_equal(tl_etm4_ops.create(&decoder, &w->setup.sources[0], image, &sink, NULL), TL_OK);
    for (size_t at = 0; at < w->trace.n; at += piece) {
        const size_t left = w->trace.n - at;
        const struct tl_run run = {w->trace.p + at, left < piece ? left : piece, at, NULL};
        assert_true(decoder->ops->push(decoder, &run) >= 0);
    }
    assert_true(decoder->ops->finish(decoder, TL_LOSS_CUT_OFF) >= 0);
    decoder->ops->destroy(decoder);
    assert_int_equal(tl_build_finish(c->build), TL_OK);
}

/* The objects do not depend on the pieces in which the bytes come. */
static void same_in_other_pieces(const struct counted *c, const struct world *w,
                                 const struct tl_image *image, size_t piece)
{
    struct counted other;
    counted_begin(&other, TL_PROTO_ETM4, image, c->shard_insns, false);
    decode(&other, w, image, piece);
    assert_int_equal(other.seals, c->seals);
    assert_true(other.hash == c->hash);
    counted_end(&other);
}

/* ETM with and without timestamps and cycle counts, return stacks, interrupts, sections that are
 * not traced, overflows and damage. */
static void times_are_those_of_all_items(void **state)
{
    size_t timed = 0, lost = 0, off = 0, ended = 0;
    (void)state;
    const uint64_t seed = test_seed();
    for (unsigned round = 0; round < 24; round++) {
        struct tl_sim_rng rng = {seed + round};
        const struct tl_sim_program_options shape = {
            .seed = round, .extra = 40, .short_loops = round % 2};
        struct tl_sim_core_options options = random_options(&rng);
        options.etm.timestamps |= round % 4 != 0;
        options.etm.timestamp_every = round % 6 == 1 ? 100000 : 20 + tl_sim_below(&rng, 4000);
        struct world w;
        world_init(&w, &shape, &options, 200000, 3);
        if (round % 3 == 2)
            damage(&w.trace, &rng);
        struct tl_image *const image = named_image(&w.program);
        struct counted c;
        counted_begin(&c, TL_PROTO_ETM4, image, 500 + tl_sim_below(&rng, 50000), true);
        decode(&c, &w, image, 1 + tl_sim_below(&rng, 100000));
        assert_true(compare(&c));
        same_in_other_pieces(&c, &w, image, 1 + tl_sim_below(&rng, 5000));
        timed += c.all.extent.timed;
        lost += c.all.extent.missing[TL_TIMED_LOST] > 0;
        off += c.all.extent.missing[TL_TIMED_OFF] > 0;
        for (size_t i = 0; i < c.all.n_functions; i++)
            ended += c.all.functions[i].by[TL_BY_TIME].ended;
        counted_end(&c);
        tl_image_free(image);
        world_fini(&w);
    }
    print_message("%zu streams with times, %zu with lost and %zu with off time, %zu calls\n", timed,
                  lost, off, ended);
    assert_true(timed > 12 && lost > 2 && off > 2 && ended > 10000);
}

/* Random items, which need not make sense: of each kind of protocol. */
static void times_of_random_items(void **state)
{
    (void)state;
    const uint64_t seed = test_seed();
    unsigned compared = 0;
    for (unsigned round = 0; round < 60; round++) {
        struct made m, random = {.random = seed + round};
        const struct run run = random_run(&random);
        struct counted c;
        made_stream(&m, seed + round, 3000, 1 + (unsigned)made_below(&random, 20));
        counted_begin(&c, run.protocol, NULL, run.shard_insns, true);
        for (size_t at = 0; at < m.n;) {
            const size_t n = 1 + made_below(&random, 200), left = m.n - at;
            assert_int_equal(take_items(&c, m.items + at, n < left ? n : left), TL_OK);
            at += n < left ? n : left;
        }
        assert_int_equal(tl_build_finish(c.build), TL_OK);
        compared += compare(&c);
        counted_end(&c);
        made_free(&m);
    }
    assert_true(compared > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_narrow_and_in_order),
        cmocka_unit_test(numbers_are_passed_over),
        cmocka_unit_test(parts_add_up_to_the_whole),
        cmocka_unit_test(times_are_those_of_all_items),
        cmocka_unit_test(times_of_random_items),
    };
    return cmocka_run_group_tests_name("shard_calls", tests, NULL, NULL);
}
