/* SPDX-License-Identifier: MIT */
/*
 * Output of the benchmark programs: one line per figure, which tests/bench/run.py collects into the
 * table and into bench.json. A figure may have a reference figure ("peer"), measured in the same
 * run.
 */
#ifndef TL_BENCH_REPORT_H
#define TL_BENCH_REPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/*
 * `stage` groups figures ("frame", "etm4", "flow", "stf", …), `input` says what was processed,
 * `unit` is a rate ("MB/s", "Minsn/s"). `peer` NULL: no reference figure. `trace`: MB/s of trace if
 * the rate is in another unit, otherwise 0.
 */
static inline void bench_report_trace(const char *stage, const char *input, double value,
                                      const char *unit, const char *peer, double peer_value,
                                      double trace)
{
    printf("@bench\t%s\t%s\t%.3f\t%s", stage, input, value, unit);
    if (peer)
        printf("\t%s\t%.3f", peer, peer_value);
    if (trace > 0)
        printf("\ttrace=%.3f", trace);
    printf("\n");
    fflush(stdout);
}

static inline void bench_report(const char *stage, const char *input, double value,
                                const char *unit, const char *peer, double peer_value)
{
    bench_report_trace(stage, input, value, unit, peer, peer_value, 0);
}

/* Processor time of the whole process, in seconds; not affected by other load on the machine. */
static inline double bench_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Processor time of the calling thread alone, in seconds. */
static inline double bench_cpu_thread(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Like bench_best(), but processor time. */
static inline double bench_best_cpu(int rounds, void (*fn)(void *context), void *context)
{
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        const double begin = bench_cpu();
        fn(context);
        const double took = bench_cpu() - begin;
        best = took < best ? took : best;
    }
    return best;
}

static inline int bench_by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of `n` values, `n` odd; sorts them. */
static inline double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bench_by_value);
    return values[n / 2];
}

/* Best of `rounds` calls of `fn(context)`, in seconds: the one with the least disturbance. */
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
