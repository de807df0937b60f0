/* SPDX-License-Identifier: MIT */
/*
 * Conversion between trace timestamps and an operating system clock, in the form Linux provides: ns
 * = zero + ticks * mult / 2^shift. Pure functions; thread-safe.
 *
 * Source: Linux perf_event_open(2), time_zero of struct perf_event_mmap_page.
 */
#ifndef TL_SETUP_CLOCK_H
#define TL_SETUP_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct tl_clock {
    bool known; /* the other members are valid */
    uint64_t shift, mult;
    uint64_t zero; /* two's complement: tick 0 may be before the clock's zero */
};

/* Set if valid: shift <= 32, 0 < mult < 2^32. Otherwise leave unchanged and return false. */
bool tl_clock_set(struct tl_clock *clock, uint64_t shift, uint64_t mult, uint64_t zero);

/* Monotonic; clamped to 0..2^64-1. */
uint64_t tl_clock_ns(const struct tl_clock *clock, uint64_t ticks);
/* The first tick at or after `ns`; 0 if that is before tick 0. */
uint64_t tl_clock_ticks(const struct tl_clock *clock, uint64_t ns);
/* `zero` of a clock with the same rate whose tick 0 is `ticks` later. */
uint64_t tl_clock_zero(const struct tl_clock *clock, uint64_t ticks);
/* Ticks per second; 0: unknown. */
uint64_t tl_clock_rate(const struct tl_clock *clock);

#endif
