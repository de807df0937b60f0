/* SPDX-License-Identifier: MIT */
/*
 * The lake's larger questions, which look through whole ranges: calls, call trees, two runs
 * compared, counts of code and coverage, representative regions. Part of lake.h, by which it is
 * included; all that is said there of threads, time and cancelling holds.
 */
#ifndef TL_LAKE_ANALYSIS_H
#define TL_LAKE_ANALYSIS_H

#include "lake.h"
#include "regions/simpoints.h"

/* ---- calls -------------------------------------------------------------------------------- */

enum tl_call_kind {
    TL_CALL_ROOT, /* it ran when tracing began, or when the flow was found again: nobody called it
                   */
    TL_CALL_CALL,
    TL_CALL_TAIL, /* entered by a jump; it returns for the one that jumped */
    TL_CALL_EXCEPTION
};

/* A call, taken apart. Numbers of calls are of the whole stream, and of its function alone. */
struct tl_call_info {
    const char *name; /* "" if there is no symbol: then nothing is told of its other calls */
    enum tl_call_kind kind;
    uint16_t exception;      /* EXCEPTION: its number */
    uint32_t depth, deepest; /* its own, 0 is the outermost, and that of the position asked for */
    uint64_t pc;             /* where it begins */
    uint64_t return_pc;      /* where it returns to, 0: not known */
    const char *caller;      /* function that called it, or was interrupted; "": none, no symbol */
    uint64_t caller_from;    /* where that one's call begins, if depth > 0 */
    uint64_t from, to;       /* instructions [from, to), those of what it called, too … */
    uint64_t self;           /* … and without */
    bool ended;              /* else it goes on where the stream ends */
    bool has_time;
    uint64_t time_from, time_to;
    uint64_t number;          /* from 1; of a ROOT 0 */
    uint64_t calls;           /* that began */
    uint64_t finished;        /* calls that ended, and their lengths in instructions: */
    uint64_t total, min, max; /* the sum, the least, the most */
    uint64_t longest;         /* where the longest begins */
    bool has_previous, has_next;
    uint64_t previous, next; /* where they begin */
    struct tl_gen *gen;      /* has the names */
};
#define TL_CALL_INNERMOST UINT32_MAX
/*
 * The call at `depth` (TL_CALL_INNERMOST: the innermost one) that is under way at an instruction.
 * The first time that something is asked of a stream all of it is looked through, by all idle
 * processors; later it is known. TL_NOTFOUND: nothing of that depth is. Free with
 * tl_call_info_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_call(struct tl_lake *lake, const char *trace, const char *stream,
                             uint64_t insn, uint32_t depth, struct tl_call_info *out,
                             struct tl_fail *fail);
void tl_call_info_fini(struct tl_call_info *call);

struct tl_profile_request {
    const char *trace;
    const char
        *stream; /* NULL, "": all that have instructions; then not by instruction, but whole */
    enum tl_range_unit unit;
    uint64_t from, to;
    bool callers;   /* bottom-up: under each function those that called it */
    uint32_t nodes; /* at most; 0: 2000; no more than 20000 */
};
struct tl_profile_node {
    const char *name; /* "": no symbol */
    uint64_t pc;
    uint32_t depth; /* 0: one that nobody called; bottom-up: the function itself */
    uint64_t total; /* instructions, of what it called, too; bottom-up: the function's own that
                       were run for these callers */
    uint64_t self;  /* its own; bottom-up: those for which there are no more callers */
    uint64_t calls; /* that began in the range */
};
struct tl_profile_function {
    const char *name;
    uint64_t pc;
    uint64_t self;
    uint64_t total; /* recursion counts once */
    uint64_t calls;
    uint64_t finished, length, min, max; /* calls that ended in the range: their lengths' sum … */
};
struct tl_profile {
    uint64_t insns;
    uint64_t time; /* that the range takes, if has_time, of one stream */
    bool has_time;
    bool truncated;                /* smaller paths are left out */
    struct tl_profile_node *nodes; /* each behind its parent, of siblings the largest first */
    size_t n_nodes;
    struct tl_profile_function *functions; /* all; most own instructions first */
    size_t n_functions;
    struct tl_gen *gen; /* has the names */
};
/* Who called whom in a range, and how many instructions that took. Free with tl_profile_fini(),
 * also after an error. */
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
    bool calls;     /* which functions were called is compared, not which instructions were run */
    uint32_t hunks; /* told at most; 0: 100, no more than 10000 */
};
/* In the place of instructions [a_from, a_to) of A stand [b_from, b_to) of B. */
struct tl_compare_hunk {
    uint64_t a_from, a_to, b_from, b_to;
};
struct tl_compare_function {
    const char *name;                          /* "": code without symbols */
    uint64_t self_a, self_b, calls_a, calls_b; /* own instructions, and calls that began */
    uint64_t total_a, total_b; /* instructions of calls that ended, with all they called */
};
struct tl_compare {
    uint64_t a_from, a_to, b_from, b_to; /* what was compared, as far as it is there */
    /* Between hunks both are alike: the first ones, in order. None: all is. */
    struct tl_compare_hunk *hunks;
    size_t n_hunks;
    uint64_t total_hunks;
    uint64_t only_a, only_b; /* instructions in all hunks */
    bool lost; /* behind the last hunk's begin they were too different to be laid side by side */
    const char **stack_a, **stack_b; /* what was under way where they part first: outermost first */
    size_t n_stack_a, n_stack_b;
    struct tl_compare_function *functions; /* largest difference of own instructions first */
    size_t n_functions;                    /* at most 200 */
    struct tl_gen *gen_a, *gen_b;          /* have the names */
};
/*
 * Where two runs part, and meet again. Instructions are alike if they are at the same place of a
 * function of the same name, so that the runs may be of programs that were loaded elsewhere;
 * without symbols, at the same address. Takes memory for no more than a window of both. Free with
 * tl_compare_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_compare(struct tl_lake *lake, const struct tl_compare_request *request,
                                struct tl_compare *out, struct tl_fail *fail);
void tl_compare_fini(struct tl_compare *compare);

/* ---- how often code was run ------------------------------------------------------------------ */

struct tl_code_source {
    const char *trace;
    const char
        *stream; /* NULL, "": all that have instructions; then not by instruction, but whole */
};
struct tl_code_request {
    struct tl_code_source of;
    const struct tl_code_source *also; /* others, which count together with it */
    size_t n_also;
    enum tl_range_unit unit;
    uint64_t from, to;
    const uint64_t *contexts; /* only what ran with one of these context IDs; none: all */
    size_t n_contexts;
    const char *image; /* NULL, "": all code. Else only that of a file, by its hash, "build-id:…" or
                          name, and at its own addresses, wherever it lay in memory */
};
struct tl_code_count {
    uint64_t from, to; /* addresses */
    uint64_t count;
};
struct tl_code {
    uint64_t insns;
    struct tl_code_count
        *runs; /* instructions `from` to `to` (the last one), one behind another; where
                  the image tells what they are, no branch is in the middle */
    size_t n_runs;
    struct tl_code_count *branches; /* taken, from the branch to where it led */
    size_t n_branches;
    bool truncated; /* there were too many different ones */
};
/* How often which code was run in a range, in order of addresses. Free with tl_code_fini(), also
 * after an error. */
TL_MUST_USE int tl_lake_code(struct tl_lake *lake, const struct tl_code_request *request,
                             struct tl_code *out, struct tl_fail *fail);
void tl_code_fini(struct tl_code *code);

#define TL_COVERAGE_NOWHERE UINT32_MAX
struct tl_coverage_function {
    const char *name;
    uint64_t pc, calls;       /* where it is in memory, in one of the places; how often its first
                                 instruction was executed */
    uint64_t insns, executed; /* its instructions, and those of them that were executed */
    uint32_t file, line;      /* NOWHERE: not known */
};
struct tl_coverage_line {
    uint32_t file, line; /* file: its place in `files` */
    uint64_t count;      /* of the line's instruction that was executed most */
};
struct tl_coverage_branch {
    uint32_t file, line;
    uint64_t pc, taken, not_taken;
};
struct tl_coverage {
    char **files;
    size_t n_files;
    struct tl_coverage_function *functions; /* of the images; of one trace in order of addresses */
    size_t n_functions;
    struct tl_coverage_line *lines; /* by file and line, executed or not */
    size_t n_lines;
    struct tl_coverage_branch *branches; /* conditional ones, in order of functions and addresses */
    size_t n_branches;
    bool truncated;
    struct tl_gen **gens; /* have the names */
    size_t n_gens;
};
/*
 * What of the functions of a trace's images was executed in a range, each once, in however many
 * places and processes it was in memory. Lines are there where the images have debug information.
 * Functions of several traces are the same if they are at the same place of the same file. Free
 * with tl_coverage_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_coverage(struct tl_lake *lake, const struct tl_code_request *request,
                                 struct tl_coverage *out, struct tl_fail *fail);
void tl_coverage_fini(struct tl_coverage *coverage);

/* ---- representative regions ------------------------------------------------------------------ */

struct tl_simpoints_request {
    const char *trace, *stream;
    uint64_t from, to; /* instructions [from, to) that are looked at */
    uint64_t interval; /* instructions of a region, 1 to 2^32 - 1 */
    uint32_t most;     /* regions */
    /* Told each interval's vector as a line of a .bb file, in order; its result < 0 ends the search
     * and is returned. NULL: nobody, which is faster. */
    int (*vector)(void *context, struct tl_bytes line);
    void *context;
};
struct tl_simpoints_found {
    uint64_t from, to;     /* the range, as far as it is there */
    uint64_t intervals;    /* in it */
    struct tl_simpoint *p; /* in order; `first` is the stream's */
    size_t n;
};
/*
 * Regions that stand for all of a range: regions/simpoints.h. Takes some seconds for 10^9
 * instructions. Free with tl_simpoints_found_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_simpoints(struct tl_lake *lake, const struct tl_simpoints_request *request,
                                  struct tl_simpoints_found *out, struct tl_fail *fail);
void tl_simpoints_found_fini(struct tl_simpoints_found *found);

#endif
