/* SPDX-License-Identifier: MIT */
/* Random numbers of a test, other ones each time: TL_SEED, which it prints, repeats a run. */
#ifndef TL_TEST_RANDOM_H
#define TL_TEST_RANDOM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static uint64_t seed;

static inline uint32_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

/* First of all in main(). */
static inline void begin_random(void)
{
    const char *const given = getenv("TL_SEED");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 0x9e3779b97f4a7c15u | 1;
    print_message("seed: TL_SEED=0x%llx\n", (unsigned long long)seed);
}

#endif
