/* SPDX-License-Identifier: MIT */
/* Programs with random behaviour whose stacks are known, and items without any sense. */
#include "callstack_program.h"

static void random_programs(void **state)
{
    struct world *const w = *state;
    size_t signals = 0, jumps = 0, switches = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct program p;
        run_program(&p, w, seed, 2000);
        signals += p.signals;
        jumps += p.jumps;
        switches += p.switches;
    }
    print_message("%zu signals, %zu jumps over frames, %zu switches\n", signals, jumps, switches);
    assert_true(signals > 1000 && jumps > 500 && switches > 1000);
}

/* ---- any items ------------------------------------------------------------------------------- */

/* Whatever comes, changes nest, and stacks stay within their bounds. */
static void any_items(void **state)
{
    struct world *const w = *state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct tl_sim_rng rng = {seed};
        begin(w);
        mode(w, seed % 2);
        for (unsigned i = 0; i < 2000; i++) {
            const uint64_t pc =
                AT((char)('a' + tl_sim_below(&rng, FUNCTIONS)), tl_sim_below(&rng, 3) * 4);
            switch (tl_sim_below(&rng, 12)) {
            case 0:
                off(w);
                break;
            case 1:
                exception(w, tl_sim_below(&rng, 2) ? pc : 0);
                break;
            case 2:
                note(w, TL_ITEM_ERET, 0);
                break;
            case 3:
                thread(w, tl_sim_below(&rng, 30));
                break;
            case 4:
                note(w, TL_ITEM_GAP, (uint16_t)tl_sim_below(&rng, TL_GAP_KINDS * 8));
                break;
            default:
                step(w, pc, (enum end)tl_sim_below(&rng, 5));
                assert_true(w->depth > 0);
            }
            assert_true(w->calls.n_parked <= TL_CALLSTACK_PARKED);
            assert_true(w->calls.n_aside <= TL_CALLSTACK_ASIDE);
        }
    }
}

int main(void)
{
    static struct world world;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(random_programs, &world),
        cmocka_unit_test_prestate(any_items, &world),
    };
    world.image = image_of_functions();
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tl_image_free(world.image);
    return failed;
}
