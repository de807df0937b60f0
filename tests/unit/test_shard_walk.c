/* SPDX-License-Identifier: MIT */
/* A walk that is told what it need not find finds the rest as one that finds all. */
#include "made_shards.h"

/* An instruction where a walk found it. */
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

/* Items in the same places; the blocks of `b`, where it has any, as far as its detail says. */
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

/* Walks with less detail say what those with all of it say. */
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
        if (s->n == 0) { /* of a stream without items */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_detail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
