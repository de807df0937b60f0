/* SPDX-License-Identifier: MIT */
/*
 * Part of tracelake.h, which includes it: whose time it was (docs/time.md). Functions, calls of a
 * function, exceptions and gaps of a range of a stream, with durations, their distribution and
 * bounds.
 *
 * Durations are in ns if `time_unit_ns`, otherwise in ticks. In a stream without time they are 0,
 * `has_time` is false, and only instructions count. Answers are freed as a whole; texts in them are
 * valid until then.
 */
#ifndef TRACELAKE_TIMING_H
#define TRACELAKE_TIMING_H

#include "tracelake.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cycles are those that the trace counts, of call trees and comparisons. */
enum tracelake_weight { TRACELAKE_BY_INSNS, TRACELAKE_BY_TIME, TRACELAKE_BY_CYCLES };

/* As tracelake_profile(), by time: all numbers are then in the stream's unit (docs/http.md); or by
 * cycles, TRACELAKE_USAGE where the trace counts none. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_profile_by(struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          enum tracelake_weight weight,
                                                          bool callers, uint32_t nodes, char **json,
                                                          struct tracelake_error *error);

/* As tracelake_compare(), with the functions by time or cycles: that is what their `self` and
 * `total` are. */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_compare_by(struct tracelake *lake, const struct tracelake_range *a,
                     const struct tracelake_range *b, bool calls, enum tracelake_weight weight,
                     uint32_t hunks, char **json, struct tracelake_error *error);

/* The range asked about. time = ran + lost + off + switched_out. */
struct tracelake_timing {
    uint64_t from, to; /* instructions [from, to) */
    bool has_time, time_unit_ns;
    uint64_t time_from, time_to; /* of these */
    uint64_t time;               /* between the two */
    uint64_t ran;                /* of it: functions have it */
    uint64_t lost, off;          /* trace is missing; tracing was switched off */
    uint64_t switched_out;       /* the thread whose stream it is did not run */
    bool behind;                 /* what is behind `to` is still being indexed, and not counted */
    uint64_t time_step; /* between two timestamps, on average; what is shorter is an estimate */
};

/* An estimate with its bounds. */
struct tracelake_duration {
    uint64_t value, least, most; /* UINT64_MAX: no upper bound is known */
};

/* Lengths of calls that ended, in instructions or time; all 0 if none did. Quantiles are at most
 * 1 % off. */
struct tracelake_lengths {
    uint64_t total, min, max, p50, p90, p99, p999;
    uint64_t longest; /* position of the longest call */
};

struct tracelake_function_times {
    const char *name; /* "": code without a symbol */
    uint64_t pc;
    uint64_t calls, ended; /* that began; that ended in the range */
    uint64_t self, total;  /* instructions; total: with callees, recursive calls once */
    struct tracelake_duration self_time;
    uint64_t total_time;
    struct tracelake_lengths insns, time; /* of those that ended */
};
struct tracelake_functions {
    struct tracelake_timing about;
    struct tracelake_function_times *p; /* most own time, or instructions, first */
    size_t n;
    uint64_t all;  /* number of functions, also of those left out by `limit` */
    void *message; /* private */
};
/* `limit` 0: 1000, at most 20,000. */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_functions(struct tracelake *lake, const struct tracelake_range *range,
                    enum tracelake_weight weight, uint32_t limit, struct tracelake_functions **out,
                    struct tracelake_error *error);
TRACELAKE_API void tracelake_functions_free(struct tracelake_functions *functions); /* or NULL */

enum tracelake_calls_order { TRACELAKE_LONGEST, TRACELAKE_SHORTEST, TRACELAKE_FIRST };

struct tracelake_calls_query {
    struct tracelake_range range;
    const char *function; /* its name, else part or a pattern (*, ?) of names */
    enum tracelake_weight weight;
    enum tracelake_calls_order order;
    uint64_t least,
        most;           /* only calls of least <= length < most, by the weight; most 0: no limit */
    bool lengths_in_ns; /* `least` and `most` are ns, USAGE for a stream without; false: its unit */
    uint64_t skip;      /* leave out the first ones */
    uint32_t limit;     /* 0: 20, at most 20,000; with `skip` at most 100,000 */
};
struct tracelake_timed_call {
    const char *name, *caller; /* "": no symbol; caller: none, or not known */
    uint64_t from, to;         /* instructions [from, to), including callees */
    uint64_t self;
    uint64_t time_from, time_to;
    struct tracelake_duration time;
    uint64_t self_time;
    uint64_t interrupted, interruptions; /* time of exceptions during it, and their number */
    uint64_t switched_out;               /* time of it in which the thread did not run */
    uint32_t depth;
    bool cut;  /* a gap hides its begin or end */
    bool open; /* active at the end of the range */
};
struct tracelake_calls {
    struct tracelake_timing about;
    const char *what; /* "calls of main" */
    uint64_t all;     /* number of calls found */
    struct tracelake_timed_call *p;
    size_t n;
    void *message; /* private */
};
/* Calls that ended in the range, and those active at its end. NOTFOUND: no such function. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_calls(struct tracelake *lake,
                                                     const struct tracelake_calls_query *query,
                                                     struct tracelake_calls **out,
                                                     struct tracelake_error *error);
TRACELAKE_API void tracelake_calls_free(struct tracelake_calls *calls); /* or NULL */

struct tracelake_exception_times {
    int number;     /* -1: not known, as of signal handlers */
    bool interrupt; /* the trace says that it is one */
    const char *name;
    const char *handler; /* function; "": no symbol */
    uint64_t entered, ended;
    struct tracelake_lengths insns, time; /* of those that ended */
    uint64_t self, self_time;             /* of the handler, without callees */
    uint64_t nested;                      /* entered while another one was active */
    uint32_t deepest;                     /* most that were active with it */
    /* Since an exception returned to code that is no handler; worst: position of the longest. */
    uint64_t latencies, latency_min, latency_max, latency_total, latency_worst;
    /* From one entry to the next; longest: position where it ends; mean and standard deviation. */
    uint64_t periods, period_min, period_max, period_longest;
    double period, jitter;
};
struct tracelake_exceptions {
    struct tracelake_timing about;
    struct tracelake_exception_times *p; /* most time first */
    size_t n;
    void *message; /* private */
};
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_exceptions(struct tracelake *lake,
                                                          const struct tracelake_range *range,
                                                          struct tracelake_exceptions **out,
                                                          struct tracelake_error *error);
TRACELAKE_API void tracelake_exceptions_free(struct tracelake_exceptions *exceptions); /* or NULL */

struct tracelake_timed_gap {
    uint64_t at;                 /* instruction after it */
    uint64_t time_from, time_to; /* last known time before it, next one after it */
    uint64_t gaps;               /* number between the two */
    bool off;                    /* nothing is missing: tracing was off */
    bool switched_out;           /* nothing is missing: the thread did not run */
    char *const *reasons;
    size_t n_reasons;
};
struct tracelake_gaps {
    struct tracelake_timing about;
    uint64_t all;                  /* number in the range, of those that take time */
    struct tracelake_timed_gap *p; /* longest first */
    size_t n;
    void *message; /* private */
};
/* `limit` 0: 100, at most 20,000. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_gaps(struct tracelake *lake,
                                                    const struct tracelake_range *range,
                                                    uint32_t limit, struct tracelake_gaps **out,
                                                    struct tracelake_error *error);
TRACELAKE_API void tracelake_gaps_free(struct tracelake_gaps *gaps); /* or NULL */

/*
 * A row of one of these answers as JSON text, with the names of docs/http.md; free `*json` with
 * free(). `message` is that of the answer, `row` the row's index.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_row_json(const void *message, size_t row,
                                                        char **json, struct tracelake_error *error);

#ifdef __cplusplus
}
#endif

#include "tracelake_answers.h" /* which has durations */

#endif
