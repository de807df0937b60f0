/* SPDX-License-Identifier: MIT */
/*
 * A part of tracelake.h, which includes it: what can be asked about a trace. Positions, searches,
 * statistics, calls, source, comparisons, regions, notes, and how often code was run.
 */
#ifndef TRACELAKE_LOOKUPS_H
#define TRACELAKE_LOOKUPS_H

#include "tracelake.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- look-ups ----------------------------------------------------------------------------- */

struct tracelake_position {
    uint64_t insn;
    uint64_t time;
    uint64_t byte;
    bool has_time;
};

/* A position given in one unit, in all units. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_locate(struct tracelake *lake, const char *trace,
                                                      const char *stream, enum tracelake_unit unit,
                                                      uint64_t at, struct tracelake_position *out,
                                                      struct tracelake_error *error);

enum tracelake_find_kind {
    TRACELAKE_FIND_PC,     /* executions of addresses */
    TRACELAKE_FIND_SYMBOL, /* where the flow enters a function, also by a return */
    TRACELAKE_FIND_EVENT,  /* exception gap event software mode context, or a reason of gaps */
    TRACELAKE_FIND_CALL,   /* calls of a function: its name, or a part or pattern (*, ?) of names */
    TRACELAKE_FIND_MNEMONIC, /* instructions by mnemonic (*, ?), or a part of the assembly text */
    TRACELAKE_FIND_OPCODE,   /* … by encoding, as in flow text, x for any digit */
    TRACELAKE_FIND_TEXT      /* any of these, as docs/http.md says of `q` */
};

struct tracelake_query {
    const char *trace;
    const char *stream; /* NULL, "": all of the trace, in one order; then not `from` and `to` */
    enum tracelake_find_kind kind;
    uint64_t pc_from; /* PC: [pc_from, pc_to) */
    uint64_t pc_to;
    const char *text; /* of the other kinds */
    uint64_t from;    /* instructions to search: [from, to) */
    uint64_t to;      /* TRACELAKE_END: to the end */
    uint64_t limit;   /* most hits wanted, 0: 100; a few more where they are at one position */
    const char *near; /* only hits behind instruction `at` of this stream, with `backward` those in
                         front of it; NULL: all */
    uint64_t at;
    bool backward; /* the last hits, the nearest first */
    bool count;    /* count all, too */
    uint64_t
        skip; /* > 0: hits at `at` itself, too, but for so many, first ones in this direction */
};

struct tracelake_hit {
    struct tracelake_position at;
    uint64_t pc;
    char text[160];
    char stream[64];
};

struct tracelake_found {
    struct tracelake_hit *hits; /* in order, by time where there are several streams */
    size_t n;
    bool more;       /* the limit cut the list */
    uint64_t total;  /* of all, whatever `near` is, if they were to be counted, … */
    uint64_t before; /* … and of those in front of hits[0] */
    char what[160];  /* what was looked for: "calls of main" */
    uint64_t skip;   /* if there are more: `skip` of the query that goes on, with the last hit's
                        stream and instruction as `near` and `at` */
};

/* Free it with tracelake_found_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_search(struct tracelake *lake,
                                                      const struct tracelake_query *query,
                                                      struct tracelake_found **out,
                                                      struct tracelake_error *error);
TRACELAKE_API void tracelake_found_free(struct tracelake_found *found); /* NULL is fine */

/* The same in short: hits in order; free `*hits` with free(). `*more`: the limit cut the list. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_find(struct tracelake *lake,
                                                    const struct tracelake_query *query,
                                                    struct tracelake_hit **hits, size_t *n,
                                                    bool *more, struct tracelake_error *error);

/* Statistics of instructions [from, to) as JSON text; free `*json` with free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_stats(struct tracelake *lake, const char *trace,
                                                     const char *stream, uint64_t from, uint64_t to,
                                                     char **json, struct tracelake_error *error);

#define TRACELAKE_INNERMOST UINT32_MAX
/*
 * The call at `depth` (0: the outermost) that is under way at an instruction, and what is known of
 * all calls of its function, as JSON text (docs/http.md); free `*json` with free().
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_call(struct tracelake *lake, const char *trace,
                                                    const char *stream, uint64_t insn,
                                                    uint32_t depth, char **json,
                                                    struct tracelake_error *error);

/*
 * Who called whom in a range, and how many instructions that took, as JSON text (docs/http.md);
 * free
 * `*json` with free(). An empty stream is all of them; then the range is one of time. `callers`:
 * from below. `nodes`: how many paths are told, 0: 2000.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_profile(struct tracelake *lake,
                                                       const struct tracelake_range *range,
                                                       bool callers, uint32_t nodes, char **json,
                                                       struct tracelake_error *error);

/*
 * Call stacks of a range of instructions or time, as JSON text (docs/http.md, slices); free `*json`
 * with free(). `columns` of the picture that is made of them, 0: 1024.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_slices(struct tracelake *lake,
                                                      const struct tracelake_range *range,
                                                      uint32_t columns, char **json,
                                                      struct tracelake_error *error);
/*
 * Instructions with their assembly text, function and source line, as JSON text (docs/http.md,
 * insns); free `*json` with free(). `count` 0: 100, at most 4096.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_disassembly(struct tracelake *lake, const char *trace, const char *stream, uint64_t from,
                      uint32_t count, char **json, struct tracelake_error *error);
/*
 * The source file of an instruction (`frame` 0), or of the call of the function inlined there (1:
 * the innermost, 2: the one around it, …), as JSON text (docs/http.md, source); free `*json` with
 * free().
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_source(struct tracelake *lake, const char *trace,
                                                      const char *stream, uint64_t insn,
                                                      uint32_t frame, char **json,
                                                      struct tracelake_error *error);
/*
 * What software trace of a range says, as lines, as JSON text (docs/http.md, log); free `*json`
 * with free(). `limit` 0: 200, at most 10,000, the first or the `last` ones.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_log(struct tracelake *lake,
                                                   const struct tracelake_range *range,
                                                   uint32_t limit, bool last, char **json,
                                                   struct tracelake_error *error);
/*
 * Where two runs part and meet again, and what differs by function, as JSON text (docs/http.md);
 * free
 * `*json` with free(). Ranges are of instructions. `calls`: compare which functions were called,
 * not which instructions were run. `hunks`: how many are told, 0: 100.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_compare(struct tracelake *lake,
                                                       const struct tracelake_range *a,
                                                       const struct tracelake_range *b, bool calls,
                                                       uint32_t hunks, char **json,
                                                       struct tracelake_error *error);

/*
 * Regions of `interval` instructions that stand for all of a range (SimPoint), at most `most`
 * (0: 30), as JSON text (docs/http.md); free `*json` with free(). `vectors` (NULL: nobody) is told
 * the intervals' basic-block vectors as lines of a .bb file, some at a time; a result < 0 ends the
 * call, which returns it. Has no time limit.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_simpoints(struct tracelake *lake, const struct tracelake_range *range, uint64_t interval,
                    uint32_t most, int (*vectors)(void *context, const void *lines, size_t n),
                    void *context, char **json, struct tracelake_error *error);

/* What people wrote at places of a trace. */

struct tracelake_note {
    uint64_t id; /* from 1 in a trace */
    char *stream;
    uint64_t at, to; /* instructions, the last one included */
    char *text;      /* empty: a bookmark */
    bool has_time;
    uint64_t time, time_to;         /* of `at` and `to`, when it was written */
    int64_t created_ns, updated_ns; /* Unix time */
};
struct tracelake_notes {
    struct tracelake_note *notes; /* by id */
    size_t n;
};

/* Free with tracelake_notes_free(). NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_notes(struct tracelake *lake, const char *trace,
                                                          struct tracelake_notes **out,
                                                          struct tracelake_error *error);
TRACELAKE_API void tracelake_notes_free(struct tracelake_notes *notes); /* NULL is fine */
/* Write a new note (`id` 0) or replace one; of the rest, `stream`, `at`, `to` and `text` are read.
 * `*id` (NULL: nobody) is what it got. NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_note(struct tracelake *lake, const char *trace,
                                                        const struct tracelake_note *note,
                                                        uint64_t *id,
                                                        struct tracelake_error *error);
/* NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete_note(struct tracelake *lake,
                                                           const char *trace, uint64_t id,
                                                           struct tracelake_error *error);

/* How often code was run: for compilers, and for coverage. */

struct tracelake_code_source {
    const char *trace, *stream;
};
struct tracelake_code_request {
    struct tracelake_range range; /* an empty stream is all of them: then it is one of time */
    const struct tracelake_code_source *also; /* others, which count together with it */
    size_t n_also;
    const uint64_t *contexts; /* only what ran with one of these context IDs; none: all */
    size_t n_contexts;
    const char *image; /* of tracelake_code(), not NULL: only that file's code, at its own
                          addresses; "sha256:…", "build-id:…" or its name */
};

struct tracelake_code_count {
    uint64_t from, to;
    uint64_t count;
};
struct tracelake_code {
    uint64_t insns;
    struct tracelake_code_count *runs; /* instructions `from` to `to`, one behind another */
    size_t n_runs;
    struct tracelake_code_count *branches; /* that were taken, at `from` to `to` */
    size_t n_branches;
    bool truncated; /* there were too many different ones */
};
/* Free it with tracelake_code_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_code(struct tracelake *lake,
                                                    const struct tracelake_code_request *request,
                                                    struct tracelake_code **out,
                                                    struct tracelake_error *error);
TRACELAKE_API void tracelake_code_free(struct tracelake_code *code); /* NULL is fine */

struct tracelake_covered_function {
    char *name;
    uint64_t pc, calls, insns, executed;
    uint32_t file, line; /* file: from 1 on in `files`, 0: not known */
};
struct tracelake_covered_line {
    uint32_t file, line;
    uint64_t count;
};
struct tracelake_covered_branch {
    uint32_t file, line;
    uint64_t pc, taken, not_taken;
};
struct tracelake_coverage {
    char **files;
    size_t n_files;
    struct tracelake_covered_function *functions; /* of the program, executed or not */
    size_t n_functions;
    struct tracelake_covered_line *lines; /* by file and line, executed or not */
    size_t n_lines;
    struct tracelake_covered_branch *branches; /* conditional ones */
    size_t n_branches;
    bool truncated;
};
/* What of the traces' programs was executed. Free it with tracelake_coverage_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_coverage(struct tracelake *lake, const struct tracelake_code_request *request,
                   struct tracelake_coverage **out, struct tracelake_error *error);
TRACELAKE_API void tracelake_coverage_free(struct tracelake_coverage *coverage); /* NULL is fine */

#ifdef __cplusplus
}
#endif

#endif
