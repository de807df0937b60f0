/* SPDX-License-Identifier: MIT */
/*
 * Analyses that read whole ranges: calls, call trees, comparison of two runs, execution counts and
 * coverage, representative regions, software trace. Threads, duration and cancelling as in lake.h.
 */
#ifndef TL_LAKE_ANALYSIS_H
#define TL_LAKE_ANALYSIS_H

#include "lake_ranges.h"
#include "regions/simpoints.h"

#include <stdio.h>
#include <string.h>

/* ---- calls -------------------------------------------------------------------------------- */

enum tl_call_kind {
    TL_CALL_ROOT, /* active when tracing began or resumed: its caller is unknown */
    TL_CALL_CALL,
    TL_CALL_TAIL, /* entered by a jump; it returns on behalf of the jumping function */
    TL_CALL_EXCEPTION
};

/* Details of a call. Counts of calls cover the whole stream, and only its function. */
struct tl_call_info {
    const char *name; /* "" without a symbol: then its other calls are not known */
    enum tl_call_kind kind;
    int32_t exception;       /* EXCEPTION: its number; -1: unknown */
    bool interrupt;          /* EXCEPTION: it is an interrupt */
    uint32_t depth, deepest; /* depth of the call, 0 is the outermost, and of the innermost call at
                                the position */
    uint64_t pc;             /* entry address */
    uint64_t return_pc;      /* return address, 0: not known */
    const char *caller;   /* function that called it, or was interrupted; "": none, or no symbol */
    uint64_t caller_from; /* first instruction of the caller's call, if depth > 0 */
    uint64_t from, to;    /* instructions [from, to), including callees */
    uint64_t self;        /* instructions excluding callees */
    bool ended;           /* false: still active at the end of the stream */
    bool has_time;
    bool time_unit_ns;
    uint64_t time_from, time_to;
    uint64_t time_least, time_most; /* bounds of its duration; UINT64_MAX: no upper one is known */
    uint64_t number;                /* from 1; 0 for a ROOT */
    uint64_t calls;                 /* calls that began */
    uint64_t finished;              /* calls that ended; of their lengths in instructions: */
    uint64_t total, min, max;       /* sum, minimum, maximum */
    uint64_t longest;               /* position of the longest */
    bool has_previous, has_next;
    uint64_t previous, next; /* their first positions */
    bool behind;             /* from `behind_from` on the stream is still being indexed: neither */
    uint64_t behind_from;    /* the call's end there is known, nor are the calls */
    struct tl_gen *gen;      /* owns the names */
};
#define TL_CALL_INNERMOST UINT32_MAX
/*
 * Describe the call at `depth` (TL_CALL_INNERMOST: the innermost) that is active at an instruction.
 * The first query of a stream scans all of it, using all idle processors; the result is then kept.
 * TL_NOTFOUND: no call at that depth. Free with tl_call_info_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_call(struct tl_lake *lake, const char *trace, const char *stream,
                             uint64_t insn, uint32_t depth, struct tl_call_info *out,
                             struct tl_fail *fail);
void tl_call_info_fini(struct tl_call_info *call);

struct tl_profile_request {
    const char *trace;
    const char *stream; /* NULL, "": all streams with instructions; then whole streams or a range of
                           time, not of instructions */
    enum tl_range_unit unit;
    uint64_t from, to;
    enum tl_weight weight; /* of paths and calls: instructions, time (docs/time.md) in the stream's
                              unit, or cycles; TL_USAGE: none are counted */
    bool callers;          /* bottom-up: below each function its callers */
    uint32_t nodes;        /* maximum; 0: 2000; at most 20000 */
};
struct tl_profile_node {
    const char *name; /* "": no symbol */
    uint64_t pc;
    uint32_t depth; /* 0: no known caller; bottom-up: the function itself */
    uint64_t total; /* instructions including callees; bottom-up: the function's own instructions
                       that were executed for these callers */
    uint64_t self;  /* own instructions; bottom-up: those without further callers */
    uint64_t calls; /* calls that began in the range */
};
struct tl_profile_function {
    const char *name, *program; /* program: "": not known */
    uint64_t pc;
    uint64_t self;
    uint64_t total; /* recursive calls count once */
    uint64_t calls;
    uint64_t finished, length, min,
        max; /* calls that ended in the range: number, sum, minimum and maximum of their lengths */
};
struct tl_profile {
    enum tl_weight weight; /* of all numbers; INSNS for samples */
    uint64_t insns;        /* the sum, also of time or cycles */
    uint64_t time;         /* duration of the range, if has_time, for a single stream */
    bool has_time;
    bool truncated;  /* smaller paths are omitted */
    bool behind;     /* part of the range is still being indexed, and not counted */
    bool sampled;    /* a statistic: all numbers are samples instead of instructions */
    uint64_t asleep; /* further samples, while the processor slept */
    struct tl_profile_node *nodes; /* each after its parent, siblings largest first */
    size_t n_nodes;
    struct tl_profile_function *functions; /* all; most own instructions first */
    size_t n_functions;
    struct tl_gen *gen; /* owns the names */
};
/* Call tree of a range with counts of instructions or of time. Free with tl_profile_fini(), also
 * after an error. */
TL_MUST_USE int tl_lake_profile(struct tl_lake *lake, const struct tl_profile_request *request,
                                struct tl_profile *out, struct tl_fail *fail);
void tl_profile_fini(struct tl_profile *profile);

/* ---- two runs compared ---------------------------------------------------------------------- */

struct tl_compare_side {
    const char *trace, *stream;
    uint64_t from, to; /* instructions [from, to) */
};
struct tl_compare_request {
    struct tl_compare_side a, b;
    bool calls;     /* compare the sequence of called functions instead of executed instructions */
    uint32_t hunks; /* maximum returned; 0: 100, at most 10000 */
    enum tl_weight weight; /* of the functions; TL_USAGE: not both streams have times in one unit,
                              or cycle counts */
};
/* Instructions [a_from, a_to) of A correspond to [b_from, b_to) of B. */
struct tl_compare_hunk {
    uint64_t a_from, a_to, b_from, b_to;
};
struct tl_compare_function {
    const char *name;                          /* "": code without symbols */
    uint64_t self_a, self_b, calls_a, calls_b; /* own instructions or time, calls that began */
    uint64_t total_a, total_b;                 /* of the calls that ended, including callees */
};
struct tl_compare {
    uint64_t a_from, a_to, b_from, b_to; /* the ranges compared, clipped to the available trace */
    /* The first differences, in order; between hunks both runs are equal. None: they are
     * identical. */
    struct tl_compare_hunk *hunks;
    size_t n_hunks;
    uint64_t total_hunks;
    uint64_t only_a, only_b; /* instructions in all hunks */
    bool lost; /* from the begin of the last hunk on they differ too much to be aligned */
    const char **stack_a, **stack_b; /* call stacks at the first difference, outermost first */
    size_t n_stack_a, n_stack_b;
    struct tl_compare_function *functions; /* largest difference in `self` first */
    size_t n_functions;                    /* at most 200 */
    enum tl_weight weight;                 /* theirs */
    bool time_unit_ns;                     /* by time */
    bool behind; /* what is behind a_to or b_to is still being indexed, and not compared */
    struct tl_gen *gen_a, *gen_b; /* own the names */
};
/*
 * Find where two runs diverge and rejoin. Instructions are equal if they are at the same offset of
 * a function of the same name, so that programs loaded at different addresses can be compared;
 * without symbols, if their addresses are equal. Memory use is bounded by a window of both. Free
 * with tl_compare_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_compare(struct tl_lake *lake, const struct tl_compare_request *request,
                                struct tl_compare *out, struct tl_fail *fail);
void tl_compare_fini(struct tl_compare *compare);

/* ---- execution counts --------------------------------------------------------------------- */

struct tl_code_source {
    const char *trace;
    const char *stream; /* NULL, "": all streams with instructions; then whole streams or a range of
                           time, not of instructions */
};
struct tl_code_request {
    struct tl_code_source of;
    const struct tl_code_source *also; /* further streams, counted together with it */
    size_t n_also;
    enum tl_range_unit unit;
    uint64_t from, to;
    const uint64_t *contexts; /* only code executed with one of these context IDs; none: all */
    size_t n_contexts;
    /* NULL, "": all code. Otherwise only that of a file, named by its hash, "build-id:…" or name,
     * at the file's own addresses, wherever it was loaded. */
    const char *image;
};
struct tl_code_count {
    uint64_t from, to; /* addresses */
    uint64_t count;
};
struct tl_code {
    uint64_t insns;
    struct tl_code_count *runs; /* instructions `from` to `to` (inclusive), consecutive; where the
                                   image is known, no branch is inside */
    size_t n_runs;
    struct tl_code_count *branches; /* taken branches, from the branch to its target */
    size_t n_branches;
    bool truncated; /* too many distinct entries; some were dropped */
    bool behind;    /* part of the range is still being indexed, and not counted */
};
/* Execution counts of a range, in order of addresses. Free with tl_code_fini(), also after an
 * error. */
TL_MUST_USE int tl_lake_code(struct tl_lake *lake, const struct tl_code_request *request,
                             struct tl_code *out, struct tl_fail *fail);
void tl_code_fini(struct tl_code *code);

#define TL_COVERAGE_NOWHERE UINT32_MAX
struct tl_coverage_function {
    const char *name;
    uint64_t pc,
        calls; /* one address at which it is loaded; how often its first instruction was executed */
    uint64_t insns, executed; /* its instructions, and how many of them were executed */
    uint32_t file, line;      /* NOWHERE: not known */
};
struct tl_coverage_line {
    uint32_t file, line; /* file: index into `files` */
    uint64_t count;      /* of the line's most frequently executed instruction */
};
struct tl_coverage_branch {
    uint32_t file, line;
    uint64_t pc, taken, not_taken;
};
struct tl_coverage {
    char **files;
    size_t n_files;
    /* Of the images; with a single trace in order of addresses. */
    struct tl_coverage_function *functions;
    size_t n_functions;
    struct tl_coverage_line *lines; /* by file and line, executed or not */
    size_t n_lines;
    /* Conditional branches, in order of functions and addresses. */
    struct tl_coverage_branch *branches;
    size_t n_branches;
    bool truncated;
    bool behind;          /* part of the range is still being indexed, and not counted */
    struct tl_gen **gens; /* own the names */
    size_t n_gens;
};
/*
 * Coverage of the functions in a trace's images over a range. Each function is listed once, no
 * matter at how many places and in how many processes it was loaded. Lines are available if the
 * images have debug information. Functions of several traces are the same if they are at the same
 * place of the same file. Free with tl_coverage_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_coverage(struct tl_lake *lake, const struct tl_code_request *request,
                                 struct tl_coverage *out, struct tl_fail *fail);
void tl_coverage_fini(struct tl_coverage *coverage);

/* ---- representative regions ------------------------------------------------------------------ */

struct tl_simpoints_request {
    const char *trace, *stream;
    uint64_t from, to; /* instructions [from, to) to analyse */
    uint64_t interval; /* instructions per region, 1 to 2^32 - 1 */
    uint32_t most;     /* maximum number of regions */
    /* Receives each interval's vector as a line of a .bb file, in order; a result < 0 ends the
     * search and is returned. NULL: none, which is faster. */
    int (*vector)(void *context, struct tl_bytes line);
    void *context;
};
struct tl_simpoints_found {
    uint64_t from, to;     /* the range, clipped to the available trace */
    uint64_t intervals;    /* number of intervals in it */
    struct tl_simpoint *p; /* in order; `first` is a position in the stream */
    size_t n;
};
/*
 * Find regions that are representative of a range: regions/simpoints.h. Takes some seconds for 10^9
 * instructions. Free with tl_simpoints_found_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_simpoints(struct tl_lake *lake, const struct tl_simpoints_request *request,
                                  struct tl_simpoints_found *out, struct tl_fail *fail);
void tl_simpoints_found_fini(struct tl_simpoints_found *found);

/* ---- software trace ------------------------------------------------------------------------ */

struct tl_soft_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit unit;
    uint64_t from, to; /* entries that begin in this range */
    uint32_t limit;    /* maximum entries; 0: 200, at most 10000 */
    bool last;         /* return the last entries of the range instead of the first */
    bool one_channel;  /* only those of `channel`; of an STM, of any master. No hardware events */
    uint32_t channel;
};
/* A line that a program printed, or a record that is not text. */
struct tl_soft_entry {
    uint64_t at, last; /* positions of its first and last record */
    uint64_t time;     /* of the first, if has_time */
    bool has_time;
    bool is_text; /* otherwise `text` is the payload, "0x12ab", or the value in `form` */
    bool has_channel;
    uint64_t channel; /* ITM port or OSD STM ID; for an STM, master << 32 | channel */
    uint32_t records;
    uint32_t size;   /* bytes of the payload, if not is_text */
    uint8_t form;    /* enum tl_port_form: what the setup tells of the channel */
    char source[16]; /* as in flow text: "itm", "stm", "osd-stm", "uart" … */
    char *text;      /* UTF-8, without the line end */
};
#define TL_SOFT_CHANNEL 40 /* bytes of a channel's text, with its NUL */
/* Write an entry's channel as in flow text, "-" if it has none; returns `out`. */
static inline const char *tl_soft_channel(const struct tl_soft_entry *e,
                                          char out[static TL_SOFT_CHANNEL])
{
    const unsigned long long high = e->channel >> 32, low = e->channel & UINT32_MAX;
    if (!e->has_channel)
        return strcpy(out, "-");
    if (strcmp(e->source, "stm") == 0)
        snprintf(out, TL_SOFT_CHANNEL, "%llx.%llx", high, low);
    else
        snprintf(out, TL_SOFT_CHANNEL, "%llx", (unsigned long long)e->channel);
    return out;
}
struct tl_soft_log {
    struct tl_soft_entry *entries; /* in order */
    size_t n;
    bool more;       /* the range has more entries */
    bool time_is_ns; /* otherwise times are ticks of the stream's clock */
};
/*
 * Software trace of a range: text is assembled into lines by source and channel. Only chunks with
 * software trace are read. Free with tl_soft_log_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_log(struct tl_lake *lake, const struct tl_soft_request *request,
                            struct tl_soft_log *out, struct tl_fail *fail);
void tl_soft_log_fini(struct tl_soft_log *log);

#endif
