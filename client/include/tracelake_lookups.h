/* SPDX-License-Identifier: MIT */
/*
 * Part of tracelake.h, which includes it: queries on a trace. Positions, searches, statistics,
 * calls, source, comparisons, regions, notes, and execution counts.
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

/* Convert a position from one unit to all units. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_locate(struct tracelake *lake, const char *trace,
                                                      const char *stream, enum tracelake_unit unit,
                                                      uint64_t at, struct tracelake_position *out,
                                                      struct tracelake_error *error);

enum tracelake_find_kind {
    TRACELAKE_FIND_PC,     /* executions of an address range */
    TRACELAKE_FIND_SYMBOL, /* entries of a function by the flow, including returns into it */
    TRACELAKE_FIND_EVENT,  /* exception gap event software mode context, or a reason for gaps */
    TRACELAKE_FIND_CALL,   /* calls of a function: its name, or part or a pattern (*, ?) of names */
    TRACELAKE_FIND_MNEMONIC, /* instructions by mnemonic (*, ?), or part of the assembly text */
    TRACELAKE_FIND_OPCODE,   /* instructions by encoding, as in flow text, x for any digit */
    TRACELAKE_FIND_TEXT,     /* any of these kinds, as described for `q` in docs/http.md */
    TRACELAKE_FIND_LINE      /* lines of software trace that contain the text (*, ?) */
};

struct tracelake_query {
    const char *trace;
    /* NULL, "": all streams of the trace, merged; `from` and `to` are not used then. */
    const char *stream;
    enum tracelake_find_kind kind;
    uint64_t pc_from; /* PC: [pc_from, pc_to) */
    uint64_t pc_to;
    const char *text; /* for the other kinds */
    uint64_t from;    /* first instruction to search */
    uint64_t to;      /* end, exclusive; TRACELAKE_END: to the end of the stream */
    /* Maximum number of hits, 0: 100; slightly more if several are at one position. */
    uint64_t limit;
    const char *near; /* only hits after instruction `at` of this stream, or before it if
                         `backward`; NULL: no restriction */
    uint64_t at;
    bool backward; /* return the last hits, nearest first */
    bool count;    /* also count all hits */
    /* > 0: also hits at `at` itself, without this many of them, the first ones in this direction.
     */
    uint64_t skip;
};

struct tracelake_hit {
    struct tracelake_position at;
    uint64_t pc;
    char text[160];
    char stream[64];
};

struct tracelake_found {
    struct tracelake_hit *hits; /* in order; by time if there are several streams */
    size_t n;
    bool more;       /* the limit cut the list */
    uint64_t total;  /* number of all hits regardless of `near`, if `count` was set */
    uint64_t before; /* number of hits before hits[0], if `count` was set */
    char what[160];  /* description of the query: "calls of main" */
    uint64_t skip;   /* if there are more: `skip` for the next query, with the last hit's stream and
                        instruction as `near` and `at` */
    uint64_t functions; /* SYMBOL, CALL: number of functions that the text names */
    /* From this instruction of a stream on the range is still being indexed, and was not searched;
     * TRACELAKE_END: all of it was. */
    uint64_t behind_from;
    char behind_stream[32];
};

/* Search. Free `*out` with tracelake_found_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_search(struct tracelake *lake,
                                                      const struct tracelake_query *query,
                                                      struct tracelake_found **out,
                                                      struct tracelake_error *error);
TRACELAKE_API void tracelake_found_free(struct tracelake_found *found); /* accepts NULL */

/*
 * Short form of tracelake_search(): hits in order; free `*hits` with free(). `*more`: the limit cut
 * the list.
 */
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
 * Describe the call at `depth` (0: the outermost) that is active at an instruction, with totals for
 * all calls of its function, as JSON text (docs/http.md); free `*json` with free().
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_call(struct tracelake *lake, const char *trace,
                                                    const char *stream, uint64_t insn,
                                                    uint32_t depth, char **json,
                                                    struct tracelake_error *error);

/*
 * Call tree of a range with instruction counts, as JSON text (docs/http.md); free `*json` with
 * free(). An empty stream means all streams; the range is then in units of time. `callers`:
 * bottom-up. `nodes`: maximum number of paths returned, 0: 2000.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_profile(struct tracelake *lake,
                                                       const struct tracelake_range *range,
                                                       bool callers, uint32_t nodes, char **json,
                                                       struct tracelake_error *error);

/*
 * Call stacks of a range of instructions or time, as JSON text (docs/http.md, slices); free `*json`
 * with free(). `columns`: width of the picture drawn from them, 0: 1024.
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
 * Source file of an instruction (`frame` 0), or of the call site of an inlined function (1: the
 * innermost, 2: the next outer one, …), as JSON text (docs/http.md, source); free `*json` with
 * free().
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_source(struct tracelake *lake, const char *trace,
                                                      const char *stream, uint64_t insn,
                                                      uint32_t frame, char **json,
                                                      struct tracelake_error *error);
/*
 * Output of software trace in a range, as lines in JSON text (docs/http.md, log); free `*json` with
 * free(). `limit` 0: 200, at most 10,000, the first lines or, with `last`, the last ones.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_log(struct tracelake *lake,
                                                   const struct tracelake_range *range,
                                                   uint32_t limit, bool last, char **json,
                                                   struct tracelake_error *error);
/*
 * Where two runs diverge and rejoin, and the differences by function, as JSON text (docs/http.md);
 * free `*json` with free(). Ranges are in instructions. `calls`: compare the sequence of called
 * functions, not of executed instructions. `hunks`: maximum number of differences returned, 0: 100.
 */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_compare(struct tracelake *lake,
                                                       const struct tracelake_range *a,
                                                       const struct tracelake_range *b, bool calls,
                                                       uint32_t hunks, char **json,
                                                       struct tracelake_error *error);

/*
 * Representative regions of `interval` instructions each (SimPoint), at most `most` (0: 30), as
 * JSON text (docs/http.md); free `*json` with free(). `vectors` (may be NULL) receives the
 * intervals' basic-block vectors as lines of a .bb file, several at a time; a result < 0 ends the
 * call, which returns it. Has no time limit.
 */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_simpoints(struct tracelake *lake, const struct tracelake_range *range, uint64_t interval,
                    uint32_t most, int (*vectors)(void *context, const void *lines, size_t n),
                    void *context, char **json, struct tracelake_error *error);

/* Notes that users attach to places of a trace. */

struct tracelake_note {
    uint64_t id; /* from 1, unique within a trace */
    char *stream;
    uint64_t at, to; /* instructions, both ends included */
    char *text;      /* empty: a bookmark */
    bool has_time;
    uint64_t time, time_to;         /* times of `at` and `to`, as of when the note was written */
    int64_t created_ns, updated_ns; /* Unix time */
};
struct tracelake_notes {
    struct tracelake_note *notes; /* by id */
    size_t n;
};

/* List a trace's notes. Free with tracelake_notes_free(). Errors: NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_list_notes(struct tracelake *lake, const char *trace,
                                                          struct tracelake_notes **out,
                                                          struct tracelake_error *error);
TRACELAKE_API void tracelake_notes_free(struct tracelake_notes *notes); /* accepts NULL */
/* Create a note (`id` 0) or replace one; besides `id`, only `stream`, `at`, `to` and `text` are
 * read. `*id` (`id` may be NULL) receives its number. Errors: NOTFOUND, USAGE. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_put_note(struct tracelake *lake, const char *trace,
                                                        const struct tracelake_note *note,
                                                        uint64_t *id,
                                                        struct tracelake_error *error);
/* Errors: NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_delete_note(struct tracelake *lake,
                                                           const char *trace, uint64_t id,
                                                           struct tracelake_error *error);

/* Execution counts: for compilers, and for coverage. */

struct tracelake_code_source {
    const char *trace, *stream;
};
struct tracelake_code_request {
    /* An empty stream means all streams; the range is then in units of time. */
    struct tracelake_range range;
    const struct tracelake_code_source *also; /* further streams, counted together with it */
    size_t n_also;
    const uint64_t *contexts; /* only code executed with one of these context IDs; none: all */
    size_t n_contexts;
    const char *image; /* tracelake_code() only: restrict to this file's code, at the file's own
                          addresses; "sha256:…", "build-id:…" or its name; NULL: all code */
};

struct tracelake_code_count {
    uint64_t from, to;
    uint64_t count;
};
struct tracelake_code {
    uint64_t insns;
    struct tracelake_code_count *runs; /* instructions `from` to `to`, consecutive */
    size_t n_runs;
    struct tracelake_code_count *branches; /* taken branches at `from` to `to` */
    size_t n_branches;
    bool truncated; /* too many distinct entries; some were dropped */
    bool behind;    /* part of the range is still being indexed, and not counted */
};
/* Count executed code. Free with tracelake_code_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_code(struct tracelake *lake,
                                                    const struct tracelake_code_request *request,
                                                    struct tracelake_code **out,
                                                    struct tracelake_error *error);
TRACELAKE_API void tracelake_code_free(struct tracelake_code *code); /* accepts NULL */

struct tracelake_covered_function {
    char *name;
    uint64_t pc, calls, insns, executed;
    uint32_t file, line; /* file: index into `files` from 1, 0: not known */
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
    /* All functions of the program, executed or not. */
    struct tracelake_covered_function *functions;
    size_t n_functions;
    struct tracelake_covered_line *lines; /* by file and line, executed or not */
    size_t n_lines;
    struct tracelake_covered_branch *branches; /* conditional branches */
    size_t n_branches;
    bool truncated;
    bool behind; /* part of the range is still being indexed, and not counted */
};
/* Coverage of the traces' programs. Free with tracelake_coverage_free(). */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_coverage(struct tracelake *lake, const struct tracelake_code_request *request,
                   struct tracelake_coverage **out, struct tracelake_error *error);
TRACELAKE_API void tracelake_coverage_free(struct tracelake_coverage *coverage); /* accepts NULL */

#ifdef __cplusplus
}
#endif

#endif
