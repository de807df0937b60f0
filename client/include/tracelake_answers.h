/* SPDX-License-Identifier: MIT */
/*
 * Part of tracelake.h: answers as structs, of which tracelake_call(),
 * tracelake_profile(), tracelake_slices() and tracelake_log() give the JSON. An answer is freed as
 * a whole; texts in it are valid until then. A position that does not exist is TRACELAKE_END.
 */
#ifndef TRACELAKE_ANSWERS_H
#define TRACELAKE_ANSWERS_H

#include "tracelake_timing.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a call ------------------------------------------------------------------------------- */

enum tracelake_call_kind {
    TRACELAKE_CALL_ROOT, /* active when tracing began or resumed: its caller is not known */
    TRACELAKE_CALL_CALL,
    TRACELAKE_CALL_TAIL, /* entered by a jump */
    TRACELAKE_CALL_EXCEPTION
};
struct tracelake_call_details {
    const char *name; /* "": no symbol; then nothing is known of the function's other calls */
    enum tracelake_call_kind kind;
    int exception;           /* EXCEPTION: its number; -1: not known */
    bool interrupt;          /* EXCEPTION: the trace says that it is one */
    uint32_t depth, deepest; /* 0 is the outermost; depth of the innermost call there */
    uint64_t pc, return_pc;  /* entry; return address, 0: not known */
    const char *caller;      /* "": none, or no symbol */
    uint64_t caller_from;    /* first position of the caller's call */
    uint64_t from, to;       /* positions [from, to), including callees */
    uint64_t insns, self;    /* with and without callees */
    bool ended;              /* false: active at the end of the stream */
    bool has_time, time_unit_ns;
    uint64_t time_from, time_to;
    struct tracelake_duration time;   /* with its bounds */
    uint64_t number;                  /* from 1, of the function's calls; 0: not known */
    uint64_t calls, finished;         /* of the function, in the stream */
    uint64_t total, min, max;         /* instructions of those that finished */
    uint64_t longest, previous, next; /* positions */
    uint64_t behind_from; /* from here on the stream is still being indexed, and not counted;
                             TRACELAKE_END: all of it is indexed */
    void *message;        /* private */
};
/* Describe the call at `depth` (0: the outermost, or TRACELAKE_INNERMOST) that is active at an
 * instruction. Errors: NOTFOUND. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_call(struct tracelake *lake, const char *trace,
                                                        const char *stream, uint64_t insn,
                                                        uint32_t depth,
                                                        struct tracelake_call_details **out,
                                                        struct tracelake_error *error);
TRACELAKE_API void tracelake_call_details_free(struct tracelake_call_details *call); /* or NULL */

/* ---- a call tree -------------------------------------------------------------------------- */

struct tracelake_profile_node {
    const char *name; /* "": no symbol */
    uint32_t depth;   /* one more than that of its parent, the last such node before it */
    uint64_t total, self, calls;
};
struct tracelake_profile_function {
    const char *name;
    uint64_t pc;
    uint64_t self, total, calls;         /* total: recursive calls count once */
    uint64_t finished, length, min, max; /* calls that ended in the range, and their lengths */
};
struct tracelake_profile_tree {
    bool by_time;    /* all numbers are times */
    bool sampled;    /* all numbers are samples of the program counter */
    bool truncated;  /* smaller paths are left out */
    uint64_t sum;    /* of the functions' own numbers */
    uint64_t asleep; /* samples of a sleeping processor */
    bool has_time;
    uint64_t time; /* of the range */
    struct tracelake_profile_node *nodes;
    size_t n_nodes;
    struct tracelake_profile_function *functions; /* most own instructions first */
    size_t n_functions;
    void *message;  /* private */
    bool by_cycles; /* all numbers are cycles */
    bool behind;    /* part of the range is still being indexed, and not counted */
};
/* Arguments as of tracelake_profile_by(). */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_get_profile(struct tracelake *lake, const struct tracelake_range *range,
                      enum tracelake_weight weight, bool callers, uint32_t nodes,
                      struct tracelake_profile_tree **out, struct tracelake_error *error);
TRACELAKE_API void tracelake_profile_tree_free(struct tracelake_profile_tree *tree); /* or NULL */

/* ---- call stacks over a range ------------------------------------------------------------- */

struct tracelake_slice {
    const char *name; /* of the function or exception, or an address */
    uint32_t depth;
    bool exact;        /* false: `to` is late, by at most the resolution */
    uint64_t from, to; /* in the range's unit */
};
struct tracelake_call_stacks {
    struct tracelake_slice *p; /* by depth and begin */
    size_t n;
    bool truncated;      /* shorter ones are left out */
    uint64_t resolution; /* all that are longer than this are there */
    void *message;       /* private */
};
/* Arguments as of tracelake_slices(). */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_get_slices(struct tracelake *lake, const struct tracelake_range *range, uint32_t columns,
                     struct tracelake_call_stacks **out, struct tracelake_error *error);
TRACELAKE_API void tracelake_call_stacks_free(struct tracelake_call_stacks *stacks); /* or NULL */

/* ---- execution speed ---------------------------------------------------------------------- */

/* Of one of equal parts of a range. */
struct tracelake_counter {
    uint64_t insns;
    uint64_t time;        /* that they took; 0: the trace has no times */
    uint64_t cycles;      /* 0: it has no cycles, or none here */
    uint64_t cycle_insns; /* instructions that the cycles are of */
};
struct tracelake_counters {
    struct tracelake_counter *p;
    size_t n;
    uint64_t from, to; /* the range, in its unit, as far as the trace has it */
    bool sampled;      /* cycles are of some instructions only */
    void *message;     /* private */
};
/* `columns`: number of parts, 0: 512, at most 2048. */
TRACELAKE_MUST_USE TRACELAKE_API int tracelake_get_counters(struct tracelake *lake,
                                                            const struct tracelake_range *range,
                                                            uint32_t columns,
                                                            struct tracelake_counters **out,
                                                            struct tracelake_error *error);
TRACELAKE_API void tracelake_counters_free(struct tracelake_counters *counters); /* or NULL */

/* ---- software trace ----------------------------------------------------------------------- */

struct tracelake_log_entry {
    uint64_t at, last; /* positions of the first and last record */
    bool has_time;
    uint64_t time;
    const char *source;  /* "itm", "stm", … */
    const char *channel; /* "": none */
    const char *form;    /* what the setup tells of the channel; "": nothing */
    bool is_text;        /* otherwise `text` is the value of a record of `size` bytes, "0x12ab" */
    const char *text;
    uint64_t records, size;
};
struct tracelake_log_lines {
    struct tracelake_log_entry *p; /* in order */
    size_t n;
    bool more;     /* the range has others */
    void *message; /* private */
};
/* Arguments as of tracelake_log(). */
TRACELAKE_MUST_USE TRACELAKE_API int
tracelake_get_log(struct tracelake *lake, const struct tracelake_range *range, uint32_t limit,
                  bool last, struct tracelake_log_lines **out, struct tracelake_error *error);
TRACELAKE_API void tracelake_log_lines_free(struct tracelake_log_lines *lines); /* or NULL */

#ifdef __cplusplus
}
#endif

#endif
