/* SPDX-License-Identifier: MIT */
/* A walk with reduced detail gives the same as a full one, except for what it may omit. */
#include "made_shards.h"

/* An instruction and its position in the walk. */
struct found {
    uint64_t position, pc;
};

struct founds {
    struct found *p;
    size_t n, cap;
};

static void add_found(struct founds *f, uint64_t position, uint64_t pc)
{
    assert_int_equal(tl_grow(&f->p, &f->cap, f->n + 1, sizeof(*f->p)), TL_OK);
    f->p[f->n++] = (struct found){position, pc};
}

/* The instructions of a walk's blocks in [from, to). */
static void find_insns(const struct tl_walk *walk, uint64_t from, uint64_t to, struct founds *out)
{
    for (size_t i = 0; i < walk->n; i++) {
        const struct tl_item *const item = &walk->items[i];
        struct tl_walk_step insn = {.next = item->kind == TL_ITEM_BLOCK ? item->block->pc : 0};
        size_t at = 0;
        uint32_t byte = 0;
        for (uint32_t k = 0; item->kind == TL_ITEM_BLOCK && k < item->n; k++) {
            uint64_t pc = item->block->pc + byte;
            if (walk->detail == TL_WALK_SPANS) {
                assert_int_equal(tl_walk_insn(walk, item->block, &at, insn.next, &insn), TL_OK);
                pc = insn.pc;
            } else {
                struct tl_insn known = {0};
                tl_block_insn(item->block, byte, &known);
                byte += known.size;
            }
            if (pc >= from && pc < to)
                add_found(out, walk->positions[i] + k, pc);
        }
    }
}

static void same_block(const struct tl_block *a, const struct tl_block *b, bool last)
{
    assert_true(a->pc == b->pc && a->n == b->n && a->size == b->size && a->isa == b->isa);
    assert_true(a->end == b->end && a->last_size == b->last_size);
    if (last)
        assert_true(a->last_kind == b->last_kind && a->target == b->target && a->link == b->link &&
                    a->conditional == b->conditional && a->is_return == b->is_return);
}

/* Check that items are at the same positions, and that the blocks of `b`, if it has any, are the
 * same as far as its level of detail goes. */
static void same_walks(const struct tl_walk *a, const struct tl_walk *b, bool blocks)
{
    size_t k = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct tl_item *const x = &a->items[i];
        if (x->kind == TL_ITEM_BLOCK && !blocks)
            continue;
        while (!blocks && k < b->n && b->items[k].kind == TL_ITEM_BLOCK)
            k++;
        assert_true(k < b->n);
        const struct tl_item *const y = &b->items[k];
        assert_true(x->kind == y->kind && x->flags == y->flags && x->offset == y->offset);
        assert_true(x->n == y->n && a->positions[i] == b->positions[k]);
        if (x->kind == TL_ITEM_BLOCK)
            same_block(x->block, y->block, b->detail == TL_WALK_FLOW);
        k++;
    }
}

/* Walks with less detail agree with full ones. */
static void less_detail(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    for (int round = 0; round < 60; round++) {
        struct made m;
        const struct run run = random_run(&random);
        made_stream(&m, made_random(&random), 1 + made_below(&random, 600),
                    (unsigned)made_below(&random, 5));
        if (run.shard_insns < 10 && m.n > 300)
            m.n = 300;
        struct shards *s = build(&m, &run, 0, 0, made_random(&random));
        if (s->n == 0) { /* the stream has no items */
            assert_int_equal(m.n, 0);
            shards_free(s);
            made_free(&m);
            continue;
        }
        struct tl_view *const view = s->views[made_below(&random, s->n)];
        const struct tl_shard_row *const row = &view->index.row;
        const struct tl_walk_range range = {row->first + made_below(&random, row->n + 1) / 2,
                                            row->first + made_below(&random, row->n + 10), true,
                                            run.protocol};
        struct tl_walk all = {0}, flow = {.detail = TL_WALK_FLOW},
                       items = {.detail = TL_WALK_ITEMS};
        struct tl_walk spans = {.detail = TL_WALK_SPANS}, some = {.detail = TL_WALK_SPANS};
        for (size_t c = 0; c < view->index.n_chunks; c++) {
            struct founds expected = {0}, found = {0};
            const struct tl_block *const b = &m.blocks[made_below(&random, MADE_BLOCKS)];
            some.pc_from = b->pc + made_below(&random, 40);
            some.pc_to = some.pc_from + 1 + made_below(&random, 40);
            assert_int_equal(tl_walk_chunk(&all, view, c, &range, NULL), TL_OK);
            assert_int_equal(tl_walk_chunk(&flow, view, c, &range, NULL), TL_OK);
            assert_int_equal(tl_walk_chunk(&spans, view, c, &range, NULL), TL_OK);
            assert_int_equal(tl_walk_chunk(&some, view, c, &range, NULL), TL_OK);
            assert_int_equal(tl_walk_chunk(&items, view, c, &range, NULL), TL_OK);
            same_walks(&all, &flow, true);
            same_walks(&all, &spans, true);
            same_walks(&all, &some, false);
            same_walks(&all, &items, false);
            find_insns(&all, 0, UINT64_MAX, &expected);
            find_insns(&spans, 0, UINT64_MAX, &found);
            assert_int_equal(expected.n, found.n);
            assert_true(found.n == 0 || !memcmp(expected.p, found.p, found.n * sizeof(*found.p)));
            expected.n = found.n = 0;
            find_insns(&all, some.pc_from, some.pc_to, &expected);
            find_insns(&some, some.pc_from, some.pc_to, &found);
            assert_int_equal(expected.n, found.n);
            assert_true(found.n == 0 || !memcmp(expected.p, found.p, found.n * sizeof(*found.p)));
            free(expected.p);
            free(found.p);
        }
        tl_walk_fini(&all);
        tl_walk_fini(&flow);
        tl_walk_fini(&spans);
        tl_walk_fini(&some);
        tl_walk_fini(&items);
        shards_free(s);
        made_free(&m);
    }
}

/* For each position of a stream, whether the flow changed there, a byte each. */
static uint8_t *turns_of(const struct made *m, enum tl_protocol protocol, uint64_t *n)
{
    uint8_t *turns = NULL;
    size_t cap = 0;
    *n = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct tl_item *const item = &m->items[i];
        const bool block = item->kind == TL_ITEM_BLOCK;
        const uint64_t more = block ? item->n : tl_item_is_point(protocol, item->kind);
        assert_int_equal(tl_grow(&turns, &cap, *n + more + 1, 1), TL_OK);
        memset(turns + *n, 0, more);
        *n += more;
        const bool reports = item->kind == TL_ITEM_TARGET || item->kind == TL_ITEM_BRANCH;
        if (*n > 0 && (reports || (more > 0 && item->flags & TL_ITEM_TAKEN)))
            turns[*n - 1] = 1;
    }
    return turns;
}

/* After a loss of flow, records report addresses that no instruction branched to. */
static void no_branch_is_invented(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    unsigned turned = 0;
    for (int round = 0; round < 60; round++) {
        struct made m;
        const struct run run = {UINT32_MAX, 1 + made_below(&random, 500), TL_PROTO_ETM4};
        made_stream(&m, made_random(&random), 400, 3);
        struct shards *s = build(&m, &run, 0, 0, made_random(&random));
        struct tl_walk walk = {.detail = (uint8_t)(round % (TL_WALK_SPANS + 1))};
        const struct tl_walk_range range = {0, UINT64_MAX, true, run.protocol};
        uint64_t n;
        uint8_t *const turns = turns_of(&m, run.protocol, &n);
        for (size_t c = 0; c < s->views[0]->index.n_chunks; c++) {
            assert_int_equal(tl_walk_chunk(&walk, s->views[0], c, &range, NULL), TL_OK);
            for (size_t i = 0; i < walk.n; i++) {
                const struct tl_item *const item = &walk.items[i];
                /* Before an exception, the flow is recorded as a branch. */
                const bool follows = i + 1 < walk.n && item[1].kind == TL_ITEM_BLOCK;
                if (item->kind != TL_ITEM_BLOCK || !(item->flags & TL_ITEM_TAKEN) || !follows)
                    continue;
                assert_true(walk.positions[i] + item->n <= n);
                assert_int_equal(turns[walk.positions[i] + item->n - 1], 1);
                turned++;
            }
        }
        free(turns);
        tl_walk_fini(&walk);
        shards_free(s);
        made_free(&m);
    }
    assert_true(turned > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_detail),
        cmocka_unit_test(no_branch_is_invented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
