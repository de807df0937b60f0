/* SPDX-License-Identifier: MIT */
/* Random numbers of a test, from test_seed(). */
#ifndef TL_TEST_RANDOM_H
#define TL_TEST_RANDOM_H

#include "unit/seed.h"

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

/* Must be called first in main(). */
static inline void begin_random(void)
{
    seed = test_seed();
}

#endif
