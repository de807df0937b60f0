/* SPDX-License-Identifier: MIT */
/* What a range consists of. Threads and errors as in lake.h. */
#ifndef TL_LAKE_STATS_H
#define TL_LAKE_STATS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_gen;
struct tl_lake;

enum tl_stats_group { TL_STATS_MIX, TL_STATS_MODE, TL_STATS_ITEM, TL_STATS_GAP, TL_STATS_RECORD };

struct tl_stats_count {
    enum tl_stats_group group;
    char name[32]; /* "conditional branch", "el1.ns.a64", "exception", "overflow", "INST_REG" */
    uint64_t n;
};

struct tl_stats_function {
    const char *name; /* NULL: instructions without a symbol */
    uint64_t pc;
    uint64_t insns, calls;
};

/*
 * Trace lost for one reason: number of intervals between two timestamps, their total length, and
 * the longest, with the time at which it begins. The loss lies within them. In units of the
 * stream's time.
 */
struct tl_stats_lost {
    char name[32]; /* "overflow" */
    uint64_t n, total, longest, longest_at;
};
#define TL_STATS_REASONS 16

/* A source of formatter frames in the setup. */
struct tl_stats_source {
    const char *name;   /* of its stream */
    const char *device; /* as the setup names it, else its protocol */
};

struct tl_stats {
    uint64_t from, to; /* the range, clipped to the available trace */
    bool behind; /* also to what is indexed so far: what is behind `to` is still being indexed */
    uint64_t insns, taken;
    uint64_t reads, writes;              /* memory accesses recorded in the trace */
    struct tl_stats_function *functions; /* at most 1000, most instructions first */
    size_t n_functions;
    size_t n_run;                  /* total number of functions executed */
    struct tl_stats_count *counts; /* grouped; only those that are not 0 */
    size_t n_counts, cap_counts;
    struct tl_stats_lost lost[TL_STATS_REASONS];
    size_t n_lost;                  /* reasons that cover time */
    struct tl_stats_source *silent; /* from which no trace came; of all streams only */
    size_t n_silent;
    struct tl_gen *gen; /* owns the names */
};
/* Exact statistics of a range, or of all streams in full (`stream` NULL): of those with
 * instructions, or if none has, with samples, what was executed; of software trace its records; of
 * threads' streams only when they did not run. Free with tl_stats_fini(), also after an error. */
TL_MUST_USE int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream,
                              uint64_t from, uint64_t to, struct tl_stats *out,
                              struct tl_fail *fail);
void tl_stats_fini(struct tl_stats *stats);

#endif
