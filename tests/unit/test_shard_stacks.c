/* SPDX-License-Identifier: MIT */
/*
 * The stack at each instruction is the same wherever it comes from: followed from the first item
 * on, or from what is stored at the begin of the shard's chunk; and so are the calls counted.
 */
#include "base/hash.h"
#include "builder/call_counter.h"
#include "callstack_program.h"
#include "made_shards.h"
#include "shard/savedstack.h"
#include "stf/close.h"

/* ---- a program's items, and its stack at each instruction ----------------------------------- */

struct kept {
    struct kept *next;
    struct tl_block block;
    uint8_t code[4], stf[TL_STF_CLOSE_MAX];
    char text[64];
};

struct records {
    struct made made; /* its items alone */
    struct kept *kept;
    uint64_t *stacks; /* by position */
    size_t n_stacks, cap_stacks;
};

static uint64_t hash_of(const struct tl_callstack *calls)
{
    uint64_t hash = tl_callstack_depth(calls);
    for (uint32_t i = 0; i < calls->depth; i++) {
        const struct tl_frame *const f = &calls->frames[i];
        hash = tl_mix64(hash + f->function);
        hash = tl_mix64(hash + f->insn);
        hash = tl_mix64(hash + f->pc);
        hash = tl_mix64(hash + f->kind * 8u + f->flags);
    }
    return hash;
}

static void keep_block(struct records *r, struct tl_item *item, struct kept *k)
{
    k->block = *item->block;
    memcpy(k->code, item->block->code, sizeof k->code);
    k->block.code = k->code;
    k->block.coded = k->stf;
    k->block.coded_size = k->block.last_coded =
        tl_stf_close_insn(k->stf, k->block.pc, k->code, sizeof k->code, tl_le32(k->code));
    item->block = &k->block;
}

static void record(struct world *w, const struct tl_item *from)
{
    struct records *const r = w->records;
    struct tl_item *const item = made_add(&r->made, from->kind);
    const uint64_t offset = item->offset;
    *item = *from;
    item->offset = offset;
    if (item->kind != TL_ITEM_BLOCK && item->kind != TL_ITEM_NOTE)
        return;
    struct kept *const k = calloc(1, sizeof *k);
    assert_non_null(k);
    k->next = r->kept;
    r->kept = k;
    if (item->kind == TL_ITEM_NOTE) {
        snprintf(k->text, sizeof k->text, "%s", item->text);
        item->text = k->text;
        return;
    }
    keep_block(r, item, k);
    assert_int_equal(tl_grow(&r->stacks, &r->cap_stacks, r->n_stacks + 1, sizeof *r->stacks),
                     TL_OK);
    r->stacks[r->n_stacks++] = hash_of(&w->calls);
}

static void records_free(struct records *r)
{
    for (struct kept *k = r->kept, *next; k; k = next) {
        next = k->next;
        free(k);
    }
    free(r->made.items);
    free(r->stacks);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* All calls, counted from the first item on. */
static void count_all(const struct world *w, const struct records *r, struct tl_call_counter *out)
{
    struct tl_callstack *const calls = calloc(1, sizeof *calls);
    tl_callstack_init(calls, w->image, 0, NULL, NULL);
    tl_call_counter_begin(out, calls, NULL, 0, 0);
    for (size_t i = 0; i < r->made.n; i++)
        assert_int_equal(tl_callstack_push(calls, &r->made.items[i], 1), TL_OK);
    tl_call_counter_end(out, r->n_stacks);
    free(calls);
}

/* Blocks that are kept are those that are read. */
static void same_blocks(const struct world *w, const struct tl_walk *kept, struct tl_view *view,
                        size_t chunk, const struct tl_walk_range *range, struct tl_walk *read)
{
    struct tl_fail fail = {0};
    read->image = w->image;
    assert_int_equal(tl_walk_chunk(read, view, chunk, range, &fail), TL_OK);
    assert_int_equal(kept->n, read->n);
    for (size_t i = 0; i < read->n; i++) {
        const struct tl_item *const x = &kept->items[i], *const y = &read->items[i];
        assert_true(x->kind == y->kind && x->flags == y->flags && x->n == y->n &&
                    x->offset == y->offset && kept->positions[i] == read->positions[i]);
        if (x->kind != TL_ITEM_BLOCK)
            continue;
        const struct tl_block *const a = x->block, *const b = y->block;
        assert_true(a->pc == b->pc && a->n == b->n && a->size == b->size && a->isa == b->isa);
        assert_true(a->function == b->function && a->end == b->end && a->leave == b->leave);
        assert_true(a->last_kind == b->last_kind && a->last_size == b->last_size);
        assert_true(a->target == b->target && a->target_isa == b->target_isa);
        assert_true(a->conditional == b->conditional && a->link == b->link &&
                    a->is_return == b->is_return);
        struct tl_walk_step step = {.next = a->pc};
        for (size_t k = 0, at = 0; k < a->n; k++) {
            assert_int_equal(tl_walk_insn(kept, a, &at, step.next, &step), TL_OK);
            tl_walk_code(&step, a->isa);
            assert_memory_equal(step.code, b->code + (step.pc - b->pc), step.size);
        }
    }
}

/* Follow a shard from the begin of each chunk, and count its calls. */
static void follow_shard(const struct world *w, const struct records *r, struct tl_view *view,
                         enum tl_protocol protocol, struct tl_calltree *tree)
{
    struct tl_call_counter *const counter = calloc(1, sizeof *counter);
    struct tl_callstack *const calls = calloc(2, sizeof *calls);
    struct tl_walk walk = {.detail = TL_WALK_FLOW, .image = w->image}, read = {0};
    struct tl_fail fail = {0};
    for (size_t c = 0; c < view->index.n_chunks; c++) {
        const struct tl_walk_range range = {0, UINT64_MAX, true, protocol};
        assert_int_equal(tl_walk_chunk(&walk, view, c, &range, &fail), TL_OK);
        same_blocks(w, &walk, view, c, &range, &read);
        tl_callstack_init(&calls[1], w->image, 0, NULL, NULL);
        assert_int_equal(tl_walk_stack(&walk, &calls[1]), TL_OK);
        if (c == 0) {
            tl_callstack_init(&calls[0], w->image, 0, NULL, NULL);
            assert_int_equal(tl_walk_stack(&walk, &calls[0]), TL_OK);
            tl_call_counter_begin(counter, &calls[0], NULL, view->index.row.first, 0);
        }
        for (size_t i = 0; i < walk.n; i++) {
            for (size_t k = 0; k < 2; k++)
                assert_int_equal(tl_walk_follow(&walk, &calls[k], i), TL_OK);
            if (walk.items[i].kind != TL_ITEM_BLOCK)
                continue;
            for (size_t k = 0; k < 2; k++)
                assert_true(hash_of(&calls[k]) ==
                            r->stacks[walk.positions[i] + walk.items[i].n - 1]);
        }
    }
    tl_call_counter_end(counter, view->index.row.first + view->index.row.n);
    assert_true(counter->counting);
    assert_int_equal(tl_calltree_merge(tree, &counter->counts.tree), TL_OK);
    tl_call_counter_fini(counter);
    tl_walk_fini(&walk);
    tl_walk_fini(&read);
    free(counter);
    free(calls);
}

static void same_calls(const struct tl_calltree *a, const struct tl_calltree *b)
{
    size_t called = 0;
    for (uint32_t f = 0; f < FUNCTIONS; f++) {
        const struct tl_calltree_function *const x = tl_calltree_find(a, f);
        const struct tl_calltree_function *const y = tl_calltree_find(b, f);
        assert_true(!x == !y);
        if (!x)
            continue;
        assert_true(x->calls == y->calls && x->ended == y->ended && x->total == y->total &&
                    x->max == y->max);
        called += x->calls > 0;
    }
    assert_true(called > 10);
}

static void one_stack_in_all_views(void **state)
{
    struct world *const w = *state;
    size_t shards = 0, insns = 0;
    for (uint64_t seed = 0; seed < 12; seed++) {
        struct made random = {.random = seed};
        struct records r = {.n_stacks = 0};
        struct program p;
        w->records = &r;
        w->record = record;
        run_program(&p, w, seed, 1500);
        w->record = NULL;
        struct run run = random_run(&random);
        run.protocol = TL_PROTO_ETM4;
        run.image = w->image;
        struct shards *const s = build(&r.made, &run, 0, 0, seed);
        struct tl_calltree tree = {0};
        struct tl_call_counter *const all = calloc(1, sizeof *all);
        for (size_t i = 0; i < s->n; i++)
            follow_shard(w, &r, s->views[i], run.protocol, &tree);
        count_all(w, &r, all);
        same_calls(&tree, &all->counts.tree);
        shards += s->n;
        insns += r.n_stacks;
        tl_calltree_fini(&tree);
        tl_call_counter_fini(all);
        free(all);
        shards_free(s);
        records_free(&r);
    }
    print_message("%zu instructions in %zu shards\n", insns, shards);
    assert_true(insns > 10000 && shards > 50);
}

int main(void)
{
    static struct world world;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(one_stack_in_all_views, &world),
    };
    world.image = image_of_functions();
    const int failed = cmocka_run_group_tests_name("shard_stacks", tests, NULL, NULL);
    tl_image_free(world.image);
    return failed;
}
