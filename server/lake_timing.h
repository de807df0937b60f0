/* SPDX-License-Identifier: MIT */
/*
 * Whose time it was (docs/time.md): functions, calls of a function, exceptions and gaps of a range
 * of a stream, with durations, their distribution and their bounds. Threads, duration and
 * cancelling as in lake.h.
 *
 * Times and durations are in the unit that the stream shows, ns or ticks. In a stream without time
 * they are 0, `has_time` is false, and only instructions count.
 */
#ifndef TL_LAKE_TIMING_H
#define TL_LAKE_TIMING_H

#include "lake_ranges.h"

struct tl_timing_range {
    const char *trace, *stream;
    enum tl_range_unit unit;
    uint64_t from, to;
};

/* What was asked about, in all answers. time = ran + lost + off + switched_out. */
struct tl_timing_about {
    uint64_t from, to; /* instructions [from, to) */
    bool behind;       /* what is behind `to` is still being indexed */
    bool has_time;
    bool time_unit_ns;           /* false: ticks */
    uint64_t time_from, time_to; /* of these */
    uint64_t time;               /* between the two */
    uint64_t ran;                /* of it: functions have it */
    uint64_t lost, off;          /* trace is missing; tracing was switched off */
    uint64_t switched_out;       /* the thread whose stream it is did not run */
    /* Mean distance of two timestamps in the shards of the range; 0: not known. What is shorter is
     * an estimate. */
    uint64_t time_step;
    struct tl_gen *gen; /* owns names */
};

struct tl_duration {
    uint64_t value, least, most; /* UINT64_MAX: no upper bound is known */
};

/* Lengths of calls that ended, in instructions or time. Quantiles are at most 1 % off. */
struct tl_lengths {
    uint64_t total, min, max;
    uint64_t p50, p90, p99, p999;
    uint64_t longest; /* position of the longest call, the first one */
};

/* ---- functions ------------------------------------------------------------------------------ */

struct tl_function_times {
    const char *name; /* "": code without a symbol */
    uint64_t pc;
    uint64_t calls, ended; /* that began; that ended in the range */
    uint64_t self, total;  /* instructions; total: with callees, recursive calls once */
    struct tl_duration self_time;
    uint64_t total_time;
    struct tl_lengths insns, time; /* of those that ended */
};
struct tl_function_table {
    struct tl_timing_about about;
    struct tl_function_times *p; /* most own time or instructions first */
    size_t n;
    size_t all; /* number of functions, also of those that are not in the table */
};
struct tl_function_table_request {
    struct tl_timing_range range;
    enum tl_weight weight; /* order */
    uint32_t limit;        /* 0: 1000, at most 100000 */
};
/* Free with tl_function_table_fini(), also after an error. */
TL_MUST_USE int tl_lake_function_table(struct tl_lake *lake,
                                       const struct tl_function_table_request *request,
                                       struct tl_function_table *out, struct tl_fail *fail);
void tl_function_table_fini(struct tl_function_table *table);

/* ---- calls of a function -------------------------------------------------------------------- */

enum tl_calls_order { TL_CALLS_LONGEST, TL_CALLS_SHORTEST, TL_CALLS_FIRST, TL_CALLS_ORDERS };

struct tl_calls_request {
    struct tl_timing_range range;
    const char *function; /* its name, else part or a pattern (*, ?) of names */
    enum tl_weight weight;
    enum tl_calls_order order;
    uint64_t least,
        most; /* only calls of least <= length < most, by the weight; 0, UINT64_MAX: all */
    bool lengths_in_ns; /* `least` and `most` are ns: TL_USAGE where the clock rate is not known */
    uint64_t skip;      /* for paging: leave out the first ones */
    uint32_t limit;     /* 0: 20; skip + limit at most 100000 */
};
struct tl_call_row {
    const char *name, *caller; /* "": no symbol; caller: none or unknown */
    uint64_t from, to;         /* instructions [from, to), including callees */
    uint64_t self;
    uint64_t time_from, time_to;
    struct tl_duration time;
    uint64_t self_time;     /* own; as `self`, as far as it is in the range */
    uint64_t interrupted;   /* time of exceptions during the call */
    uint64_t interruptions; /* their number */
    uint64_t switched_out;  /* time of it in which the thread did not run */
    uint32_t depth;
    bool cut;  /* a gap hides its begin or end */
    bool open; /* it is still active at the end of the range; its length is not known */
};
struct tl_calls {
    struct tl_timing_about about;
    char what[128]; /* "calls of main" */
    uint64_t all;   /* number of calls found */
    struct tl_call_row *p;
    size_t n;
};
/* Calls that ended in the range, and those still active at its end. TL_NOTFOUND: no such function.
 * Free with tl_calls_fini(), also after an error. */
TL_MUST_USE int tl_lake_calls_of(struct tl_lake *lake, const struct tl_calls_request *request,
                                 struct tl_calls *out, struct tl_fail *fail);
void tl_calls_fini(struct tl_calls *calls);

/* ---- exceptions and interrupts --------------------------------------------------------------- */

struct tl_exception_row {
    int32_t number;      /* -1: not known, as of signal handlers */
    bool interrupt;      /* the trace says that it is one */
    char name[32];       /* as the trace's architecture calls it; "": not known */
    const char *handler; /* function from which it returned first; "": no symbol */
    uint64_t entered, ended;
    struct tl_lengths insns, time; /* of those that ended */
    uint64_t self, self_time;      /* of the handler's frame, without callees */
    uint64_t nested;               /* entered while another one was active */
    uint32_t deepest;              /* most exceptions active with it */
    /* Time since an exception returned to code that is no handler, or 0 if none did yet. */
    uint64_t latencies, latency_min, latency_max, latency_total,
        latency_worst; /* worst: position */
    /* Time from one entry to the next. */
    uint64_t periods, period_min, period_max, period_longest; /* longest: position where it ends */
    double period, jitter;                                    /* mean, standard deviation */
};
struct tl_exception_table {
    struct tl_timing_about about;
    struct tl_exception_row *p; /* most time first */
    size_t n;
};
/* Free with tl_exception_table_fini(), also after an error. */
TL_MUST_USE int tl_lake_exception_table(struct tl_lake *lake, const struct tl_timing_range *range,
                                        struct tl_exception_table *out, struct tl_fail *fail);
void tl_exception_table_fini(struct tl_exception_table *table);

/* ---- gaps ------------------------------------------------------------------------------------ */

struct tl_gap_row {
    uint64_t position;
    uint64_t time_from, time_to; /* last known time before it, next one after it */
    uint64_t gaps;               /* number between the two; 0: only switched off */
    bool off;                    /* nothing is missing: tracing was off */
    bool switched_out;           /* nothing is missing: the thread did not run */
    uint32_t reasons;            /* bit set of enum tl_gap: tl_gap_name() */
};
struct tl_gap_table {
    struct tl_timing_about about;
    uint64_t all;         /* number in the range, of those with a duration */
    struct tl_gap_row *p; /* longest first */
    size_t n;
};
/* `limit` 0: 100, at most 100000. Free with tl_gap_table_fini(), also after an error. */
TL_MUST_USE int tl_lake_gap_table(struct tl_lake *lake, const struct tl_timing_range *range,
                                  uint32_t limit, struct tl_gap_table *out, struct tl_fail *fail);
void tl_gap_table_fini(struct tl_gap_table *table);

/* ---- what is worth a look -------------------------------------------------------------------- */

enum tl_extreme_kind {
    TL_EXTREME_INTERRUPT, /* the longest exception or interrupt */
    TL_EXTREME_CALL,      /* the call that is farthest from the median of its function */
    TL_EXTREME_GAP,       /* the longest gap in which trace is missing */
    TL_EXTREME_KINDS
};
struct tl_extreme {
    enum tl_extreme_kind kind;
    char stream[32];
    char *name;         /* of the function or handler; owned. NULL: none */
    char exception[32]; /* INTERRUPT: as in tl_exception_row */
    int32_t number;     /* INTERRUPT: -1: not known */
    uint32_t reasons;   /* GAP: bit set of enum tl_gap */
    uint64_t position;  /* where it begins; GAP: after it */
    bool has_time;      /* `length` and `usual` are times, otherwise instructions */
    bool time_unit_ns;  /* false: ticks */
    uint64_t length;
    uint64_t usual;              /* the median of its kind; 0: there is none */
    uint64_t time_from, time_to; /* GAP */
};
struct tl_extremes {
    struct tl_extreme p[TL_EXTREME_KINDS]; /* at most one of a kind, in their order */
    size_t n;
    size_t left_out; /* number of streams with more than `most` instructions */
};
/*
 * The extremes of a trace's two longest streams of instructions that are complete, except for those
 * with more than `most` instructions (0: all). Errors as the tables above. Free with
 * tl_extremes_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_extremes(struct tl_lake *lake, const char *trace, uint64_t most,
                                 struct tl_extremes *out, struct tl_fail *fail);
void tl_extremes_fini(struct tl_extremes *extremes);

#endif
