/* SPDX-License-Identifier: MIT */
/*
 * The index of shards compared with a recount, instruction by instruction: tiles, call depth,
 * executed code and statistics, for a simulated core's trace, intact and damaged, with and without
 * paths.
 */
#include "builder/build.h"
#include "builder/recount.h"
#include "decode/ops.h"
#include "flow/callstack.h"
#include "random.h"
#include "shard/codeset.h"
#include "sim/program_core.h"
#include "stf/close.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { INSNS = 120000, FUNCTIONS = 1024, PAGES = 64, BUCKET = 1 << 2 * TL_LEVEL_STORED };

/* Expected contents of a bucket. */
struct truth {
    uint64_t insns, taken, privilege[4];
    uint32_t depth_min, depth_max, distinct;
    uint32_t functions[FUNCTIONS];
    uint32_t n_pages;
    struct tl_top pages[PAGES];
    uint64_t events; /* the next three: of its items */
    unsigned mask, flags;
    bool first; /* an item precedes its first instruction */
};

/* An executed instruction. */
struct code {
    uint64_t from, to; /* in units of the index */
    uint64_t mode;     /* 0: none */
    uint32_t function;
    uint8_t mix;
    bool called; /* its block begins at the function's entry */
};

/* A stream's items, counted instruction by instruction. */
struct recount {
    const struct tl_image *image;
    struct tl_callstack calls;
    struct truth *buckets;
    size_t n_buckets, cap;
    struct code *code; /* one per instruction */
    size_t n, cap_code;
    unsigned privilege;
    uint64_t mode;
    uint64_t kinds[TL_ITEM_KINDS], gaps[TL_GAP_KINDS];
    uint64_t all_gaps, events, anchors; /* counted in chunks */
    struct tl_build *build;
    struct tl_view *views[512];
    size_t n_views;
    bool paths, damaged;
};

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

/* Is this the first instruction of its function? */
static bool is_entry(const struct recount *r, uint64_t pc, uint32_t function)
{
    size_t n;
    return function != TL_NO_FUNCTION && tl_image_symbols(r->image, &n)[function].address == pc;
}

static void count_page(struct truth *t, uint64_t page)
{
    uint32_t i = 0;
    while (i < t->n_pages && t->pages[i].id != page)
        i++;
    assert_true(i < PAGES);
    t->n_pages += i == t->n_pages;
    t->pages[i].id = page;
    t->pages[i].n++;
}

/* Count an instruction of `size` bytes executed at `pc`; `first`: it begins a block. */
static void count_one(struct recount *r, uint64_t pc, uint32_t size, uint32_t function,
                      enum tl_mix mix, bool first)
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
    count_page(t, pc >> 12);
    assert_int_equal(tl_grow(&r->code, &r->cap_code, r->n + 1, sizeof *r->code), TL_OK);
    r->code[r->n++] = (struct code){.from = pc >> TL_CODE_SHIFT,
                                    .to = ((pc + size - 1) >> TL_CODE_SHIFT) + 1,
                                    .mode = r->mode,
                                    .function = function,
                                    .mix = (uint8_t)mix,
                                    .called = first && is_entry(r, pc, function)};
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
        const struct tl_bytes code = {b->code + at, b->size - at};
        count_one(r, b->pc + at, insn.size, b->function,
                  tl_mix_at((enum tl_isa)b->isa, b->pc + at, code), i == 0);
        at += insn.size;
    }
    if (item->flags & TL_ITEM_TAKEN && item->n > 0)
        r->buckets[r->n_buckets - 1].taken++;
}

static void count_item(struct recount *r, const struct tl_item *item)
{
    static const unsigned masks[TL_ITEM_KINDS] = {[TL_ITEM_EXCEPTION] = TL_HAS_EXCEPTION,
                                                  [TL_ITEM_ERET] = TL_HAS_RETURN,
                                                  [TL_ITEM_EVENT] = TL_HAS_EVENT,
                                                  [TL_ITEM_MODE] = TL_HAS_MODE,
                                                  [TL_ITEM_CONTEXT] = TL_HAS_CONTEXT,
                                                  [TL_ITEM_TRACE_ON] = TL_HAS_TRACE_ON,
                                                  [TL_ITEM_NOTE] = TL_HAS_NOTE};
    static const unsigned flags[TL_GAP_KINDS] = {[TL_GAP_OVERFLOW] = TL_FLAG_OVERFLOW,
                                                 [TL_GAP_SYNC] = TL_FLAG_UNSYNCED,
                                                 [TL_GAP_BAD_PACKET] = TL_FLAG_BAD_PACKET,
                                                 [TL_GAP_NO_IMAGE] = TL_FLAG_NO_IMAGE,
                                                 [TL_GAP_OFF] = TL_FLAG_OFF};
    struct truth *const t = bucket(r);
    t->events += item->kind == TL_ITEM_EXCEPTION || item->kind == TL_ITEM_EVENT;
    t->mask |= masks[item->kind];
    t->flags |= item->kind == TL_ITEM_GAP ? TL_FLAG_GAP | flags[item->sub] : 0;
    t->taken += tl_item_is_branch(item);
    t->first |= r->n % BUCKET == 0;
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
            for (unsigned k = 0; k < TL_ITEM_KINDS; k++)
                r->kinds[k] += tl_item_kinds(&items[i]) >> k & 1;
            if (items[i].kind == TL_ITEM_GAP)
                r->gaps[items[i].sub]++;
            if (items[i].kind == TL_ITEM_MODE)
                r->mode = items[i].value;
            if (items[i].kind == TL_ITEM_MODE)
                r->privilege = tl_mode_privilege(items[i].value);
            count_item(r, &items[i]);
            if (items[i].kind == TL_ITEM_UNKNOWN)
                count_one(r, items[i].pc, 1, function_at(r, items[i].pc), TL_MIX_UNKNOWN, true);
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

/* Check the entry of a function or page of which `n` instructions were executed: entries with very
 * few may be omitted. A block is counted where it begins, so about `most` may belong to others. */
static void assert_counted(const struct truth *t, const struct tl_top *top, size_t size,
                           uint64_t id, uint64_t n, uint64_t most)
{
    uint64_t counted = 0;
    for (size_t i = 0; i < size; i++)
        if (top[i].n > 0 && top[i].id == id)
            counted = top[i].n;
    assert_true(counted <= n + most);
    assert_true(n < counted + most || (n - counted - most) * 32 <= t->insns);
}

/* Check a bucket. `begins`: the shard begins with it, so items before it may be in the previous
 * shard. */
static void assert_bucket(const struct truth *t, const struct tl_bucket *b, bool begins)
{
    uint64_t pages = 0;
    assert_int_equal(b->insns, t->insns);
    if (!begins || !t->first) {
        assert_int_equal(b->branches, t->taken);
        assert_int_equal(b->events, t->events);
        assert_int_equal(b->event_mask, t->mask);
        assert_int_equal(b->flags, t->flags);
    }
    assert_memory_equal(b->privilege, t->privilege, sizeof t->privilege);
    /* Depths are limited to 255 in buckets. */
    assert_int_equal(b->depth_min, t->depth_min < 255 ? t->depth_min : 255);
    assert_int_equal(b->depth_max, t->depth_max < 255 ? t->depth_max : 255);
    assert_true(b->distinct >= t->distinct);
    for (uint32_t f = 0; f < FUNCTIONS && t->distinct <= TL_BUCKET_FUNCTIONS; f++)
        assert_counted(t, b->functions, TL_BUCKET_FUNCTIONS, (uint64_t)f + 1, t->functions[f], 0);
    for (size_t i = 0; i < t->n_pages && t->n_pages <= TL_BUCKET_PAGES; i++)
        assert_counted(t, b->pages, TL_BUCKET_PAGES, t->pages[i].id, t->pages[i].n, BUCKET / 16);
    for (size_t i = 0; i < TL_BUCKET_PAGES; i++)
        pages += b->pages[i].n;
    assert_true(pages <= t->insns && pages > 0);
}

static int by_address(const void *a, const void *b)
{
    const struct code *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Check a chunk's edges against the executed instructions. */
static void assert_code(const struct recount *r, const struct tl_shard_index *index,
                        const struct tl_chunk *c)
{
    static struct code code[1 << 17];
    const uint64_t *const edges = index->code + c->code;
    uint64_t end = 0; /* end of the code so far */
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

static const struct tl_shard_stats_function *function_of(const struct tl_shard_stats *stats,
                                                         uint32_t function)
{
    static const struct tl_shard_stats_function none;
    for (size_t i = 0; i < stats->n_functions; i++)
        if (stats->functions[i].function == function)
            return &stats->functions[i];
    return &none;
}

/* Check the statistics of the shard; its items are added to `sums`. */
static void assert_tally(const struct recount *r, const struct tl_shard_index *index,
                         struct recount *sums)
{
    static struct tl_shard_stats_function functions[FUNCTIONS + 1]; /* the last one: no function */
    const struct tl_shard_stats *const stats = &index->stats;
    uint64_t mix[TL_MIX_KINDS] = {0}, with_mode = 0;
    memset(functions, 0, sizeof functions);
    assert_true(stats->reported);
    for (uint64_t i = index->row.first; i < index->row.first + index->row.n; i++) {
        const struct code *const code = &r->code[i];
        struct tl_shard_stats_function *const f =
            &functions[code->function < FUNCTIONS ? code->function : FUNCTIONS];
        mix[code->mix]++;
        f->insns++;
        f->calls += code->called;
        with_mode += code->mode != 0;
    }
    assert_memory_equal(stats->mix, mix, sizeof mix);
    for (uint32_t i = 0; i <= FUNCTIONS; i++) {
        const struct tl_shard_stats_function *const f =
            function_of(stats, i < FUNCTIONS ? i : TL_NO_FUNCTION);
        assert_int_equal(f->insns, functions[i].insns);
        assert_int_equal(f->calls, functions[i].calls);
    }
    for (size_t k = 0; k < stats->n_modes; k++) {
        uint64_t n = 0;
        for (uint64_t i = index->row.first; i < index->row.first + index->row.n; i++)
            n += r->code[i].mode == stats->modes[k].mode;
        assert_int_equal(stats->modes[k].insns, n);
        with_mode -= n;
    }
    assert_int_equal(with_mode, 0);
    for (size_t i = 0; i < index->n_chunks; i++) {
        sums->all_gaps += index->chunks[i].gaps;
        sums->events += index->chunks[i].events;
        sums->anchors += index->chunks[i].anchors;
    }
    for (size_t i = 0; i < TL_ITEM_KINDS; i++)
        sums->kinds[i] += stats->kinds[i];
    for (size_t i = 0; i < TL_GAP_KINDS; i++)
        sums->gaps[i] += stats->gaps[i];
}

static void assert_view(const struct recount *r, const struct tl_view *view)
{
    const struct tl_shard_index *const index = &view->index;
    const uint64_t end = index->row.first + index->row.n;
    for (size_t i = 0; i < index->n_chunks; i++)
        assert_code(r, index, &index->chunks[i]);
    for (size_t i = 0; i < index->buckets.n; i++) {
        const uint64_t at = (index->buckets.first + i) * BUCKET;
        /* Only complete buckets: others cover just their shard's part. */
        if (at >= index->row.first && at + BUCKET <= end)
            assert_bucket(&r->buckets[index->buckets.first + i], &index->buckets.p[i],
                          at == index->row.first);
    }
}

/*
 * Check that the index rebuilt from STF and item logs agrees about code and everything stored. In a
 * damaged trace, which can run from one function straight into the next, a block may have begun
 * before a cut and be counted for the other function.
 */
static void assert_recounted(const struct recount *r, struct tl_view *view)
{
    const bool functions = !r->damaged;
    struct tl_shard_index *const index = &view->index;
    const size_t n = index->n_code;
    uint64_t *const code = malloc((n + 1) * sizeof *code);
    const size_t n_buckets = index->buckets.n;
    struct tl_bucket *const buckets = malloc((n_buckets + 1) * sizeof *buckets);
    struct tl_buf before = {0}, after = {0};
    struct tl_fail fail = {0};
    assert_non_null(code);
    assert_non_null(buckets);
    memcpy(code, index->code, n * sizeof *code);
    memcpy(buckets, index->buckets.p, n_buckets * sizeof *buckets);
    index->stats.n_functions = functions ? index->stats.n_functions : 0;
    assert_int_equal(tl_shard_stats_encode(&index->stats, &before), TL_OK);
    if (tl_view_recount(view, TL_PROTO_ETM4, r->image, true, &fail) < 0)
        fail_msg("%s", fail.text);
    index->stats.n_functions = functions ? index->stats.n_functions : 0;
    assert_int_equal(tl_shard_stats_encode(&index->stats, &after), TL_OK);
    assert_int_equal(index->n_code, n);
    assert_memory_equal(index->code, code, n * sizeof *code);
    assert_int_equal(before.n, after.n);
    assert_memory_equal(before.p, after.p, before.n);
    assert_int_equal(index->buckets.n, n_buckets);
    for (size_t i = 0; i < n_buckets; i++) {
        const struct tl_bucket *const a = &buckets[i], *const b = &index->buckets.p[i];
        assert_int_equal(a->insns, b->insns);
        /* If the trace contradicts the program, a call may be followed by the instruction after it:
         * no record distinguishes that from the first instruction after a gap. */
        const uint64_t less = a->branches < b->branches ? a->branches : b->branches;
        assert_true(a->branches + b->branches - 2 * less <= (r->damaged ? 2 : 0));
        if (r->damaged)
            continue;
        assert_int_equal(a->depth_min, b->depth_min);
        assert_int_equal(a->depth_max, b->depth_max);
    }
    tl_buf_fini(&before);
    tl_buf_fini(&after);
    free(buckets);
    free(code);
}

/* ---- a trace ------------------------------------------------------------------------------- */

struct traced {
    struct tl_buf bytes, elf;
    struct tl_image *image;
    struct tl_source source;
    bool holes; /* one section is missing from the image */
};

/* Only half of the program is in the image. */
static void add_half(struct traced *t, const struct tl_sim_program *program)
{
    struct tl_buf code = {0};
    assert_int_equal(tl_sim_program_code(program, 0, &code), TL_OK);
    assert_int_equal(tl_image_add_bytes(t->image, program->sections[0].base,
                                        (struct tl_bytes){code.p, code.n / 2}, TL_SPACE_ANY, NULL,
                                        NULL),
                     TL_OK);
    tl_buf_fini(&code);
}

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
    if (t->holes)
        add_half(t, &program);
    else
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
    const struct tl_stream_sink sink = {.context = r,
                                        .items = on_items,
                                        .loss = no_loss,
                                        .paths = paths,
                                        .code = tl_stf_block_code};
    const struct tl_run run = {t->bytes.p, t->bytes.n, 0, NULL};
    struct tl_stream_decoder *decoder;
    assert_int_equal(tl_etm4_ops.create(&decoder, &t->source, t->image, &sink, NULL), TL_OK);
    assert_int_equal(decoder->ops->push(decoder, &run), TL_OK);
    assert_int_equal(decoder->ops->finish(decoder, TL_LOSS_CUT_OFF), TL_OK);
    decoder->ops->destroy(decoder);
}

static void check(const struct traced *t, bool damaged, bool paths, uint64_t shard, uint64_t chunk)
{
    struct recount r = {.image = t->image, .privilege = 15, .damaged = damaged};
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .shard_insns = shard,
                                             .chunk_markers = chunk,
                                             .image = t->image,
                                             .seal = on_seal,
                                             .context = &r};
    tl_callstack_init(&r.calls, t->image, 0, NULL, NULL);
    assert_int_equal(tl_build_new(&r.build, &options), TL_OK);
    decode(t, &r, paths);
    assert_int_equal(tl_build_finish(r.build), TL_OK);
    assert_true(r.n > INSNS / (t->holes ? 50 : 4) && r.paths == paths);
    struct tl_build_totals totals;
    tl_build_totals(r.build, &totals);
    assert_int_equal(totals.gaps, r.kinds[TL_ITEM_GAP]);
    assert_int_equal(totals.events, r.kinds[TL_ITEM_EXCEPTION] + r.kinds[TL_ITEM_EVENT]);
    r.anchors = totals.anchors;
    uint64_t n = 0;
    struct recount sums = {0};
    for (size_t i = 0; i < r.n_views; i++) {
        assert_view(&r, r.views[i]);
        assert_tally(&r, &r.views[i]->index, &sums);
        n += r.views[i]->index.row.n;
        assert_recounted(&r, r.views[i]);
        tl_view_put(r.views[i]);
    }
    assert_int_equal(n, r.n);
    assert_memory_equal(sums.kinds, r.kinds, sizeof r.kinds);
    assert_memory_equal(sums.gaps, r.gaps, sizeof r.gaps);
    assert_int_equal(sums.all_gaps, r.kinds[TL_ITEM_GAP]);
    assert_int_equal(sums.events, r.kinds[TL_ITEM_EXCEPTION] + r.kinds[TL_ITEM_EVENT]);
    assert_int_equal(sums.anchors, r.kinds[TL_ITEM_TIME]);
    assert_int_equal(r.anchors, r.kinds[TL_ITEM_TIME]);
    if (t->holes)
        assert_true(r.gaps[TL_GAP_NO_IMAGE] > INSNS / 1000);
    tl_build_free(r.build);
    free(r.buckets);
    free(r.code);
}

static void index_is_what_was_executed(void **state)
{
    for (unsigned unit = 0; unit < 9; unit++) {
        struct traced t = {.holes = unit >= 6};
        const struct tl_sim_etm4_options etm = tl_sim_etm4_unlike(unit % 3, 2);
        trace(&t, &etm, next());
        for (size_t i = 0; unit >= 3 && unit < 6 && i < t.bytes.n / 3000; i++)
            t.bytes.p[next() % t.bytes.n] ^= 1 << next() % 8;
        for (unsigned paths = 0; paths < 2; paths++)
            check(&t, unit >= 3, paths, 2000 + next() % 60000, 100 + next() % 40000);
        traced_fini(&t);
    }
}

/*
 * Shards of another version may have finer buckets: they are read and merged into the current size.
 */
static void finer_buckets_add_up(void **state)
{
    enum { FINE = TL_LEVEL_STORED - 1, BUCKETS = 70 };
    const unsigned each = 1u << 2 * (TL_LEVEL_STORED - FINE);
    struct tl_buckets fine = {.level = FINE}, read = {0}, sums = {.level = TL_LEVEL_STORED};
    struct tl_buf bytes = {0};
    for (uint64_t i = 3; i < BUCKETS; i++) {
        struct tl_bucket *const b = tl_buckets_at(&fine, i << 2 * FINE);
        assert_non_null(b);
        tl_bucket_insns(b, 1 << 2 * FINE, 7, 0x1000, 1, (unsigned)i);
        b->branches = i;
    }
    assert_int_equal(tl_buckets_encode(&fine, &bytes), TL_OK);
    assert_int_equal(tl_buckets_decode(&read, (struct tl_bytes){bytes.p, bytes.n}), TL_OK);
    assert_int_equal(tl_buckets_merge(&sums, &read), TL_OK);
    assert_int_equal(sums.first, 3 / each);
    assert_int_equal(sums.n, (BUCKETS - 1) / each - 3 / each + 1);
    for (uint64_t k = 0; k < sums.n; k++) {
        const struct tl_bucket *const b = &sums.p[k];
        uint64_t n = 0, branches = 0;
        for (uint64_t i = (sums.first + k) * each; i < (sums.first + k + 1) * each; i++) {
            n += i >= 3 && i < BUCKETS;
            branches += i >= 3 && i < BUCKETS ? i : 0;
        }
        assert_int_equal(b->insns, n << 2 * FINE);
        assert_int_equal(b->branches, branches);
        assert_int_equal(b->functions[0].id, 7);
        assert_int_equal(b->functions[0].n, b->insns);
        assert_int_equal(b->privilege[1], b->insns);
    }
    tl_buckets_fini(&fine);
    tl_buckets_fini(&read);
    tl_buckets_fini(&sums);
    tl_buf_fini(&bytes);
}

/* A bucket's input item by item (for an exact tile) equals what the index counts. */
static void unmapped_code_counts_as_a_branch(void **state)
{
    const struct tl_item items[] = {
        {.kind = TL_ITEM_GAP, .flags = TL_ITEM_HAS_PC, .sub = TL_GAP_NO_IMAGE, .pc = 0x8000},
        {.kind = TL_ITEM_GAP, .sub = TL_GAP_OVERFLOW},
        {.kind = TL_ITEM_BRANCH, .value = 0x8000},
        {.kind = TL_ITEM_EXCEPTION, .flags = TL_ITEM_HAS_PC},
    };
    struct tl_bucket b = {0};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        tl_bucket_item(&b, &items[i]);
    assert_int_equal(b.branches, 2);
    assert_int_equal(b.events, 1);
    assert_int_equal(b.flags, TL_FLAG_GAP | TL_FLAG_NO_IMAGE | TL_FLAG_OVERFLOW);
    assert_int_equal(b.event_mask, TL_HAS_EXCEPTION);
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {cmocka_unit_test(index_is_what_was_executed),
                                       cmocka_unit_test(finer_buckets_add_up),
                                       cmocka_unit_test(unmapped_code_counts_as_a_branch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
