/* SPDX-License-Identifier: MIT */
/*
 * Products have 128 bits, since ticks of 64 bits times a multiplier of 32 exceed 64. Ticks are
 * rounded up, so that converting a time to ticks and back never gives an earlier time.
 */
#include "setup/clock.h"

typedef __int128 wide;

bool tl_clock_set(struct tl_clock *c, uint64_t shift, uint64_t mult, uint64_t zero)
{
    if (shift > 32 || mult == 0 || mult > UINT32_MAX)
        return false;
    *c = (struct tl_clock){true, shift, mult, zero};
    return true;
}

uint64_t tl_clock_ns(const struct tl_clock *c, uint64_t ticks)
{
    const wide ns = (wide)(int64_t)c->zero + (wide)((unsigned __int128)ticks * c->mult >> c->shift);
    return ns < 0 ? 0 : ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t tl_clock_ticks(const struct tl_clock *c, uint64_t ns)
{
    const wide since = (wide)ns - (int64_t)c->zero;
    if (since <= 0 || c->mult == 0)
        return 0;
    const wide ticks = ((since << c->shift) + (wide)c->mult - 1) / (wide)c->mult;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

uint64_t tl_clock_zero(const struct tl_clock *c, uint64_t ticks)
{
    return c->zero + (uint64_t)((unsigned __int128)ticks * c->mult >> c->shift);
}

uint64_t tl_clock_rate(const struct tl_clock *c)
{
    if (!c->known || c->mult == 0)
        return 0;
    return (uint64_t)(((unsigned __int128)1000000000 << c->shift) / c->mult);
}
