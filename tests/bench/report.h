/* SPDX-License-Identifier: MIT */
/*
 * How a benchmark program reports: one line per figure, that tests/bench/run.py gathers into the
 * table and into bench.json. A figure may have a peer, measured in the same run.
 */
#ifndef TL_BENCH_REPORT_H
#define TL_BENCH_REPORT_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * `stage` groups figures ("frame", "etm4", "flow", "stf", …), `input` says what was processed,
 * `unit` is a rate ("MB/s", "Minsn/s"). `peer` NULL: nothing to compare with.
 */
static inline void bench_report(const char *stage, const char *input, double value,
                                const char *unit, const char *peer, double peer_value)
{
    if (peer)
        printf("@bench\t%s\t%s\t%.3f\t%s\t%s\t%.3f\n", stage, input, value, unit, peer, peer_value);
    else
        printf("@bench\t%s\t%s\t%.3f\t%s\n", stage, input, value, unit);
    fflush(stdout);
}

/* Best of `rounds` calls of `fn(context)`, in seconds: the least disturbed one. */
static inline double bench_best(int rounds, void (*fn)(void *context), void *context)
{
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        const double begin = bench_now();
        fn(context);
        const double took = bench_now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

#endif
