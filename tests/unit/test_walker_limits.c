/* SPDX-License-Identifier: MIT */
/*
 * Walks that one packet can make long: over memory without branches, along jumps that need no
 * outcome, round in circles. Each ends after a bounded number of instructions, in bounded memory,
 * at the same place whatever the block cache has; and early once nobody wants the items.
 */
#include "flow/walker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define BASE  0x400000ULL
#define CACHE ((size_t)48 << 20) /* limit of a walker's blocks, and what one more needs */
#define STOP  (-77)

struct world {
    struct tl_image *image;
    struct tl_item_batch batch;
    struct tl_walker walker;
    uint64_t insns, batches, gaps, largest;
    unsigned gap;
    uint64_t fail_after; /* batches */
};

static int take(void *context, const struct tl_item *items, size_t n)
{
    struct world *const w = context;
    const size_t bytes = tl_block_cache_bytes(w->walker.cache);
    w->largest = bytes > w->largest ? bytes : w->largest;
    for (size_t i = 0; i < n; i++) {
        w->insns += items[i].kind == TL_ITEM_BLOCK  ? items[i].n
                    : items[i].kind == TL_ITEM_PATH ? items[i].value
                                                    : 0;
        w->gaps += items[i].kind == TL_ITEM_GAP;
        w->gap = items[i].kind == TL_ITEM_GAP ? items[i].sub : w->gap;
    }
    return ++w->batches > w->fail_after ? STOP : TL_OK;
}

/* A program of `n` bytes that repeats the `unit`, and then has `end`. */
static struct world *begin(enum tl_walker_bits bits, enum tl_isa isa, size_t n,
                           struct tl_bytes unit, struct tl_bytes end, bool paths)
{
    struct world *const w = calloc(1, sizeof *w);
    uint8_t *const code = malloc(n + end.n);
    assert_true(w && code);
    for (size_t i = 0; i < n; i++)
        code[i] = unit.p[i % unit.n];
    memcpy(code + n, end.p, end.n);
    assert_int_equal(tl_image_new(&w->image), TL_OK);
    assert_int_equal(tl_image_add_bytes(w->image, BASE, (struct tl_bytes){code, n + end.n},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(w->image), TL_OK);
    free(code);
    const struct tl_walker_config config = {.image = w->image, .bits = (uint8_t)bits};
    tl_item_batch_init(&w->batch, take, w);
    w->batch.paths = paths;
    w->fail_after = UINT64_MAX;
    assert_int_equal(tl_walker_init(&w->walker, &config, &w->batch), TL_OK);
    const bool is_x86 = isa == TL_ISA_X64;
    tl_walker_mode(&w->walker,
                   tl_mode(is_x86 ? TL_ARCH_X86 : TL_ARCH_ARM, is_x86 ? 3 : 1,
                           is_x86 ? TL_SEC_NONE : TL_SEC_NS, isa),
                   0);
    return w;
}

static void end(struct world *w)
{
    tl_walker_fini(&w->walker);
    tl_image_free(w->image);
    free(w);
}

static const uint8_t zero[4];
static const uint8_t jump_on[] = {0xeb, 0x00};              /* to the next instruction */
static const uint8_t jump_back[] = {0xeb, 0xfe};            /* to itself */
static const uint8_t jump_far[] = {0xe9, 0, 0, 0xf0, 0xff}; /* a mebibyte back */

static void check_lost(struct world *w)
{
    assert_int_equal(tl_item_batch_flush(&w->batch), w->fail_after == UINT64_MAX ? TL_OK : STOP);
    assert_true(w->insns <= TL_WALKER_STRAIGHT_MAX);
    assert_int_equal(w->gap, TL_GAP_NO_PATH);
    assert_true(w->largest < CACHE);
    w->insns = w->gaps = 0;
}

static void zeros_end(void **state)
{
    (void)state;
    struct world *const w = begin(TL_WALKER_WAYPOINTS, TL_ISA_A32, (size_t)16 << 20,
                                  (struct tl_bytes){zero, 4}, (struct tl_bytes){zero, 0}, true);
    for (unsigned i = 0; i < 20; i++) {
        tl_walker_jump(&w->walker, BASE + 64 * i, TL_ISA_A32, i);
        tl_walker_waypoints(&w->walker, 3, 2, i);
        assert_int_equal(w->insns % 4096, 0);
        check_lost(w);
    }
    end(w);
}

static void jumps_end(void **state)
{
    (void)state;
    for (unsigned paths = 0; paths < 2; paths++) {
        struct world *const w =
            begin(TL_WALKER_CONDITIONS, TL_ISA_X64, (size_t)16 << 20, (struct tl_bytes){jump_on, 2},
                  (struct tl_bytes){jump_back, 2}, paths);
        for (unsigned i = 0; i < 3; i++) {
            tl_walker_jump(&w->walker, BASE, TL_ISA_X64, i);
            assert_false(tl_walker_to_indirect(&w->walker, i));
            check_lost(w);
            tl_walker_jump(&w->walker, BASE, TL_ISA_X64, i);
            assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, i), 0);
            check_lost(w);
            tl_walker_jump(&w->walker, BASE, TL_ISA_X64, i);
            assert_false(tl_walker_to(&w->walker, BASE + ((size_t)12 << 20), false, i));
            check_lost(w);
        }
        end(w);
    }
}

/* Of jumps, entered at different places: the second walk finds all blocks, the third one, after the
 * cache was emptied, none. */
static void loops_end_alike(void **state)
{
    static const size_t sizes[] = {0, 2, 64, 512, 514, 2000, 1 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned paths = 0; paths < 2; paths++) {
            const bool far = sizes[i] == 1 << 20;
            struct world *const w = begin(
                TL_WALKER_CONDITIONS, TL_ISA_X64, sizes[i], (struct tl_bytes){jump_on, 2},
                far ? (struct tl_bytes){jump_far, 5} : (struct tl_bytes){jump_back, 2}, paths);
            uint64_t first = 0;
            for (unsigned k = 0; k < 6; k++) {
                tl_walker_jump(&w->walker, BASE, TL_ISA_X64, k);
                if (k % 2)
                    assert_int_equal(tl_walker_conditions(&w->walker, 1, 1, k), 0);
                else
                    assert_false(tl_walker_to_indirect(&w->walker, k));
                assert_int_equal(tl_item_batch_flush(&w->batch), TL_OK);
                assert_int_equal(w->gaps, 1);
                first = k == 0 ? w->insns : first;
                assert_int_equal(w->insns, first);
                w->insns = w->gaps = 0;
                if (k == 3) {
                    const size_t limit = w->walker.cache_limit;
                    w->walker.cache_limit = 0;
                    tl_walker_trim(&w->walker);
                    w->walker.cache_limit = limit;
                }
            }
            end(w);
        }
}

static void a_failed_sink_ends_walks(void **state)
{
    (void)state;
    struct world *w = begin(TL_WALKER_CONDITIONS, TL_ISA_X64, (size_t)16 << 20,
                            (struct tl_bytes){jump_on, 2}, (struct tl_bytes){jump_back, 2}, true);
    w->fail_after = 0;
    tl_walker_jump(&w->walker, BASE, TL_ISA_X64, 0);
    (void)tl_walker_to_indirect(&w->walker, 0);
    assert_int_equal(w->batch.rc, STOP);
    assert_true(w->largest < (4u << 20));
    assert_int_equal(w->batches, 1);
    end(w);
    w = begin(TL_WALKER_WAYPOINTS, TL_ISA_A32, (size_t)16 << 20, (struct tl_bytes){zero, 4},
              (struct tl_bytes){zero, 0}, false);
    w->fail_after = 0;
    for (unsigned i = 0; i < 3000; i++) { /* with instructions, this would take minutes */
        tl_walker_jump(&w->walker, BASE + 4 * i, TL_ISA_A32, i);
        tl_walker_waypoints(&w->walker, 1, 1, i);
    }
    assert_int_equal(w->batches, 1);
    end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_end),
        cmocka_unit_test(jumps_end),
        cmocka_unit_test(loops_end_alike),
        cmocka_unit_test(a_failed_sink_ends_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
