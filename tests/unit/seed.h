/* SPDX-License-Identifier: MIT */
/* The random seed of a test. */
#ifndef TL_TEST_SEED_H
#define TL_TEST_SEED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Is this run a repetition of a given one? */
static inline bool test_seed_given(void)
{
    const char *const given = getenv("TL_SEED");
    return given && strcmp(given, "random") != 0;
}

/* The same each time; TL_SEED=N repeats another run, TL_SEED=random uses a new seed. It is
 * printed. */
static inline uint64_t test_seed(void)
{
    const char *const given = getenv("TL_SEED");
    uint64_t seed = 0x1234567;
    if (test_seed_given())
        seed = strtoull(given, NULL, 0);
    else if (given)
        seed = (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u | 1;
    printf("TL_SEED=0x%llx\n", (unsigned long long)seed);
    return seed;
}

/* How often a test of random input does so, out of `n` times: TL_ROUNDS percent of them, for
 * machines that are emulated, which run the same tests as this one. */
static inline unsigned test_rounds(unsigned n)
{
    const char *const percent = getenv("TL_ROUNDS");
    const unsigned share = percent ? (unsigned)(n * strtoull(percent, NULL, 10) / 100) : n;
    return share > 0 ? share : 1;
}

#endif
