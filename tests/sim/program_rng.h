/* SPDX-License-Identifier: MIT */
/*
 * A small seeded random generator with the same results on every machine.
 *
 * Source: Sebastiano Vigna, splitmix64.
 */
#ifndef TL_SIM_PROGRAM_RNG_H
#define TL_SIM_PROGRAM_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct tl_sim_rng {
    uint64_t state;
};

static inline uint64_t tl_sim_rand(struct tl_sim_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 .. n - 1; n > 0 */
static inline uint32_t tl_sim_below(struct tl_sim_rng *rng, uint32_t n)
{
    return (uint32_t)((tl_sim_rand(rng) >> 32) * n >> 32);
}

/* least .. most */
static inline uint32_t tl_sim_between(struct tl_sim_rng *rng, uint32_t min, uint32_t most)
{
    return min + tl_sim_below(rng, most - min + 1);
}

static inline bool tl_sim_percent(struct tl_sim_rng *rng, unsigned percent)
{
    return tl_sim_below(rng, 100) < percent;
}

#endif
