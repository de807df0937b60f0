/* SPDX-License-Identifier: MIT */
/*
 * How ticks of a trace's timestamps relate to the clock of an operating system, as Linux tells it:
 * ns = zero + ticks * mult / 2^shift. Pure functions; thread-safe.
 *
 * Source: Linux perf_event_open(2), time_zero of struct perf_event_mmap_page.
 */
#ifndef TL_SETUP_CLOCK_H
#define TL_SETUP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tl_clock {
    bool known; /* else nothing else holds */
    uint64_t shift, mult;
    uint64_t zero; /* two's complement: the ticks may have begun in front of the clock */
};

/* Set, where the numbers make sense: shift <= 32, 0 < mult < 2^32. Else it stays as it is: false.
 */
bool tl_clock_set(struct tl_clock *clock, uint64_t shift, uint64_t mult, uint64_t zero);

/* Never falling; what is not in 0..2^64-1 is the nearest of these. */
uint64_t tl_clock_ns(const struct tl_clock *clock, uint64_t ticks);
/* The first tick that is not before `ns`; 0: that was before the ticks began. */
uint64_t tl_clock_ticks(const struct tl_clock *clock, uint64_t ns);
/* `zero` of a clock of the same rate whose ticks begin `ticks` later. */
uint64_t tl_clock_zero(const struct tl_clock *clock, uint64_t ticks);
/* Ticks a second; 0: not known. */
uint64_t tl_clock_rate(const struct tl_clock *clock);

#endif
