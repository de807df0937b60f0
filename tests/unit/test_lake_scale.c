/* SPDX-License-Identifier: MIT */
/* Values of many positions at once are those of each alone, for any points. */
#include "lake/scale.h"
#include "seed.h"
#include "sim/program_rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define POINTS 12
#define VALUES 700

/* Of any number of bits, so that steps are of all sizes; 0, too. */
static uint64_t some(struct tl_sim_rng *rng, unsigned bits)
{
    return tl_sim_rand(rng) >> (64 - bits) >> tl_sim_below(rng, bits);
}

static void all_at_once(void **state)
{
    (void)state;
    struct tl_sim_rng rng = {test_seed()};
    for (unsigned round = 0; round < test_rounds(3000); round++) {
        struct tl_scale_point points[POINTS];
        struct tl_scale scale = {.points = points, .n = tl_sim_below(&rng, POINTS + 1)};
        uint64_t position = some(&rng, 20), value = some(&rng, 40), out[VALUES];
        for (size_t i = 0; i < scale.n; i++) {
            points[i] = (struct tl_scale_point){.position = position, .value = value};
            position += some(&rng, round % 2 ? 8 : 30);
            value += some(&rng, 50);
        }
        const uint64_t first = some(&rng, round % 2 ? 12 : 33);
        const size_t n = 1 + tl_sim_below(&rng, VALUES);
        tl_scale_values(&scale, first, n, out);
        for (size_t i = 0; i < n; i++) {
            uint64_t alone = 0;
            (void)tl_scale_value(&scale, first + i, &alone);
            assert_int_equal(out[i], alone);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
