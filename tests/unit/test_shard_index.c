/* SPDX-License-Identifier: MIT */
/*
 * The index of shards against a recount, instruction by instruction: tiles, call depth and executed
 * code, of a simulated core's trace, whole and damaged, with paths and without.
 */
#include "decode/ops.h"
#include "flow/callstack.h"
#include "random.h"
#include "sim/program_core.h"
#include "store/build.h"
#include "store/codeset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { INSNS = 120000, FUNCTIONS = 1024, BUCKET = 1 << 2 * TL_LEVEL_STORED };

/* What a bucket must hold. */
struct truth {
    uint64_t insns, taken, privilege[4];
    uint32_t depth_min, depth_max, distinct;
    uint32_t functions[FUNCTIONS];
};

/* Code that was executed, in units of the index. */
struct code {
    uint64_t from, to;
};

/* One stream's items, counted the slow way. */
struct recount {
    const struct tl_image *image;
    struct tl_callstack calls;
    struct truth *buckets;
    size_t n_buckets, cap;
    struct code *code; /* of each instruction */
    size_t n, cap_code;
    unsigned privilege;
    struct tl_build *build;
    struct tl_view *views[512];
    size_t n_views;
    bool paths;
};

static int no_frame(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                    uint32_t depth, uint64_t insn)
{
    return TL_OK;
}

static int no_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

/* The bucket of the next instruction. */
static struct truth *bucket(struct recount *r)
{
    const size_t i = r->n / BUCKET;
    if (i == r->n_buckets) {
        assert_int_equal(tl_grow(&r->buckets, &r->cap, i + 1, sizeof *r->buckets), TL_OK);
        memset(&r->buckets[i], 0, sizeof *r->buckets);
        r->buckets[i].depth_min = UINT32_MAX;
        r->n_buckets++;
    }
    return &r->buckets[i];
}

/* An instruction ran, at `pc`, of `size` bytes. */
static void count_one(struct recount *r, uint64_t pc, uint32_t size, uint32_t function)
{
    const uint32_t depth = tl_callstack_depth(&r->calls);
    struct truth *const t = bucket(r);
    t->insns++;
    t->depth_min = depth < t->depth_min ? depth : t->depth_min;
    t->depth_max = depth > t->depth_max ? depth : t->depth_max;
    if (r->privilege < 4)
        t->privilege[r->privilege]++;
    if (function != TL_NO_FUNCTION) {
        assert_true(function < FUNCTIONS);
        t->distinct += t->functions[function]++ == 0;
    }
    assert_int_equal(tl_grow(&r->code, &r->cap_code, r->n + 1, sizeof *r->code), TL_OK);
    r->code[r->n++] = (struct code){pc >> TL_CODE_SHIFT, ((pc + size - 1) >> TL_CODE_SHIFT) + 1};
}

static uint32_t function_at(const struct recount *r, uint64_t pc)
{
    const int64_t i = tl_image_symbol_index(r->image, pc);
    return i < 0 ? TL_NO_FUNCTION : (uint32_t)i;
}

static void count_block(struct recount *r, const struct tl_item *item)
{
    const struct tl_block *const b = item->block;
    assert_int_equal(tl_callstack_push(&r->calls, item, 1), TL_OK);
    uint32_t at = 0;
    for (uint32_t i = 0; i < item->n; i++) {
        struct tl_insn insn = {0};
        tl_block_insn(b, at, &insn);
        count_one(r, b->pc + at, insn.size, b->function);
        at += insn.size;
    }
    if (item->flags & TL_ITEM_TAKEN && item->n > 0)
        r->buckets[r->n_buckets - 1].taken++;
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct recount *const r = context;
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind == TL_ITEM_BLOCK) {
            count_block(r, &items[i]);
        } else if (items[i].kind == TL_ITEM_PATH) {
            r->paths = true;
            for (size_t k = 0; k < items[i].n; k++) {
                const struct tl_item one = tl_path_item(&items[i], k);
                count_block(r, &one);
            }
        } else {
            assert_int_equal(tl_callstack_push(&r->calls, &items[i], 1), TL_OK);
            if (items[i].kind == TL_ITEM_MODE)
                r->privilege = tl_mode_privilege(items[i].value);
            if (items[i].kind == TL_ITEM_BRANCH)
                bucket(r)->taken++;
            if (items[i].kind == TL_ITEM_UNKNOWN)
                count_one(r, items[i].pc, 1, function_at(r, items[i].pc));
        }
    }
    return tl_build_items(r->build, items, n);
}

static int on_seal(void *context, struct tl_view *view)
{
    struct recount *const r = context;
    assert_true(r->n_views < 512);
    r->views[r->n_views++] = view;
    return TL_OK;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* `n` of one function were counted: what has hardly any may have been left out. */
static void assert_function(const struct truth *t, const struct tl_bucket *b, uint32_t function)
{
    const uint32_t n = t->functions[function];
    uint64_t counted = 0;
    for (size_t i = 0; i < TL_BUCKET_FUNCTIONS; i++)
        if (b->functions[i].n > 0 && b->functions[i].id == (uint64_t)function + 1)
            counted = b->functions[i].n;
    assert_true(counted <= n && (n - counted) * 32 <= t->insns);
}

static void assert_bucket(const struct truth *t, const struct tl_bucket *b)
{
    uint64_t pages = 0;
    assert_int_equal(b->insns, t->insns);
    assert_int_equal(b->branches, t->taken);
    assert_memory_equal(b->privilege, t->privilege, sizeof t->privilege);
    assert_int_equal(b->depth_min, t->depth_min);
    assert_int_equal(b->depth_max, t->depth_max);
    assert_true(b->distinct >= t->distinct);
    for (uint32_t f = 0; f < FUNCTIONS && t->distinct <= TL_BUCKET_FUNCTIONS; f++)
        assert_function(t, b, f);
    for (size_t i = 0; i < TL_BUCKET_PAGES; i++)
        pages += b->pages[i].n;
    assert_int_equal(pages, t->insns);
}

static int by_address(const void *a, const void *b)
{
    const struct code *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* A chunk's edges, from what ran in it, one piece behind another. */
static void assert_code(const struct recount *r, const struct tl_shard_index *index,
                        const struct tl_chunk *c)
{
    static struct code code[1 << 17];
    const uint64_t *const edges = index->code + c->code;
    uint64_t end = 0; /* of the code so far */
    size_t n = 0;
    assert_true(c->n <= sizeof code / sizeof *code);
    assert_int_not_equal(c->n_code, UINT32_MAX);
    memcpy(code, r->code + c->first, c->n * sizeof *code);
    qsort(code, c->n, sizeof *code, by_address);
    for (size_t i = 0; i < c->n; i++) {
        const uint64_t pc = code[i].from << TL_CODE_SHIFT;
        assert_true(tl_shard_has_code(index, c, pc, pc));
        if (i == 0 || code[i].from > end) {
            if (i > 0)
                assert_int_equal(edges[n++], end);
            assert_true(n < c->n_code);
            assert_int_equal(edges[n++], code[i].from);
            assert_false(tl_shard_has_code(index, c, end << TL_CODE_SHIFT, pc - 1));
        }
        end = code[i].to > end ? code[i].to : end;
    }
    if (c->n > 0)
        assert_int_equal(edges[n++], end);
    assert_int_equal(c->n_code, n);
}

static void assert_view(const struct recount *r, const struct tl_view *view)
{
    const struct tl_shard_index *const index = &view->index;
    const uint64_t end = index->row.first + index->row.n;
    for (size_t i = 0; i < index->n_chunks; i++)
        assert_code(r, index, &index->chunks[i]);
    for (size_t i = 0; i < index->buckets.n; i++) {
        const uint64_t at = (index->buckets.first + i) * BUCKET;
        if (at >= index->row.first && at + BUCKET <= end) /* else it has its shard's part */
            assert_bucket(&r->buckets[index->buckets.first + i], &index->buckets.p[i]);
    }
}

/* ---- a trace ------------------------------------------------------------------------------- */

struct traced {
    struct tl_buf bytes, elf;
    struct tl_image *image;
    struct tl_source source;
};

static void trace(struct traced *t, const struct tl_sim_etm4_options *etm, uint64_t number)
{
    const struct tl_sim_program_options options = {
        .seed = number, .extra = (unsigned)(number % 90), .short_loops = number & 1};
    const struct tl_sim_core_options core_options = {.seed = number,
                                                     .irq_every = 3000,
                                                     .fault_every = 5000,
                                                     .event_every = 700,
                                                     .off_every = 20000,
                                                     .overflow_every = 30000,
                                                     .etm = *etm};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_fail fail = {0};
    assert_int_equal(tl_sim_program_init(&program, &options), TL_OK);
    assert_int_equal(tl_sim_core_new(&core, &program, &core_options, &t->bytes, NULL, NULL), TL_OK);
    assert_int_equal(tl_sim_core_step(core, INSNS), TL_OK);
    assert_int_equal(tl_sim_core_flush(core), TL_OK);
    assert_int_equal(tl_sim_program_elf(&program, &t->elf), TL_OK);
    assert_int_equal(tl_sim_etm4_source(etm, &t->source), TL_OK);
    assert_int_equal(tl_image_new(&t->image), TL_OK);
    assert_int_equal(tl_image_add_elf(t->image, (struct tl_bytes){t->elf.p, t->elf.n}, 0,
                                      TL_SPACE_ANY, "program", &fail),
                     TL_OK);
    assert_int_equal(tl_image_freeze(t->image), TL_OK);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
}

static void traced_fini(struct traced *t)
{
    tl_image_free(t->image);
    tl_buf_fini(&t->bytes);
    tl_buf_fini(&t->elf);
}

static void decode(const struct traced *t, struct recount *r, bool paths)
{
    const struct tl_stream_sink sink = {
        .context = r, .items = on_items, .loss = no_loss, .paths = paths};
    const struct tl_run run = {t->bytes.p, t->bytes.n, 0, TL_RUN_LINEAR};
    struct tl_stream_decoder *decoder;
    assert_int_equal(tl_etm4_ops.create(&decoder, &t->source, t->image, &sink, NULL), TL_OK);
    assert_int_equal(decoder->ops->push(decoder, &run), TL_OK);
    assert_int_equal(decoder->ops->finish(decoder), TL_OK);
    decoder->ops->destroy(decoder);
}

static void check(const struct traced *t, bool paths, uint64_t shard, uint64_t chunk)
{
    struct recount r = {.image = t->image, .privilege = 15};
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .shard_insns = shard,
                                             .chunk_markers = chunk,
                                             .image = t->image,
                                             .seal = on_seal,
                                             .context = &r};
    tl_callstack_init(&r.calls, t->image, 0, no_frame, NULL);
    assert_int_equal(tl_build_new(&r.build, &options), TL_OK);
    decode(t, &r, paths);
    assert_int_equal(tl_build_finish(r.build), TL_OK);
    assert_true(r.n > INSNS / 4 && r.paths == paths);
    uint64_t n = 0;
    for (size_t i = 0; i < r.n_views; i++) {
        assert_view(&r, r.views[i]);
        n += r.views[i]->index.row.n;
        tl_view_put(r.views[i]);
    }
    assert_int_equal(n, r.n);
    tl_build_free(r.build);
    free(r.buckets);
    free(r.code);
}

static void index_is_what_was_executed(void **state)
{
    for (unsigned unit = 0; unit < 6; unit++) {
        struct traced t = {0};
        const struct tl_sim_etm4_options etm = tl_sim_etm4_unlike(unit % 3, 2);
        trace(&t, &etm, next());
        for (size_t i = 0; unit >= 3 && i < t.bytes.n / 3000; i++)
            t.bytes.p[next() % t.bytes.n] ^= 1 << next() % 8;
        for (unsigned paths = 0; paths < 2; paths++)
            check(&t, paths, 2000 + next() % 60000, 100 + next() % 40000);
        traced_fini(&t);
    }
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {cmocka_unit_test(index_is_what_was_executed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
