/* SPDX-License-Identifier: MIT */
/*
 * What a timeline draws of a stream's range in columns: states, speed, hits and call stacks.
 * Threads and errors as in lake.h.
 */
#ifndef TL_LAKE_LANES_H
#define TL_LAKE_LANES_H

#include "base/err.h"
#include "lake_ranges.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_gen;
struct tl_lake;

/* Data of a range of a stream in columns. */
struct tl_lane_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, for the range and the result */
    uint64_t from, to;
    uint32_t columns; /* width of the picture, at most 4096; 0: 512 */
};

/* An interval with one process, virtual machine and mode. */
struct tl_state_run {
    uint64_t from, to; /* on the axis */
    uint64_t context, vmid, mode;
    bool has_context, has_vmid, has_mode;
    char mode_text[32]; /* "el0.ns.a64"; "" if not known */
    char name[32];      /* name of the context in the setup, otherwise of the VMID; "": none */
    bool mixed; /* other states were current too, each for less than a column: this one lasted
                   longest */
};
struct tl_states {
    struct tl_state_run *runs; /* in order, contiguous */
    size_t n;
    bool sampled; /* long range: the state sampled once per column */
};
/* States over a range. Ranges of up to 4 M instructions are evaluated in full. TL_USAGE: invalid
 * axis. Free with tl_states_fini(), also after an error. */
TL_MUST_USE int tl_lake_states(struct tl_lake *lake, const struct tl_lane_request *request,
                               struct tl_states *out, struct tl_fail *fail);
void tl_states_fini(struct tl_states *states);

/* A column of counters. */
struct tl_counter {
    uint64_t insns;
    uint64_t time;                /* duration; 0: not known */
    uint64_t cycles, cycle_insns; /* counted cycles, and the number of instructions they cover */
};
struct tl_counters {
    struct tl_counter *p; /* columns of equal width */
    size_t n;
    uint64_t from, to; /* their extent on the axis, clipped to the available trace */
    bool has_time, has_cycles;
    bool sampled; /* long range: cycles cover only parts of it */
};
/* Execution speed over a range. Errors as tl_lake_states(). Free with tl_counters_fini(), also
 * after an error. */
TL_MUST_USE int tl_lake_counters(struct tl_lake *lake, const struct tl_lane_request *request,
                                 struct tl_counters *out, struct tl_fail *fail);
void tl_counters_fini(struct tl_counters *counters);

/* How many hits of a search are in each column, of equal width. */
struct tl_hit_columns {
    uint64_t *hits;
    size_t n;
    uint64_t from, to; /* their extent on the axis, clipped to the available trace */
    uint64_t total;    /* in all of them */
};
/* Search for `text`, of any kind as TL_FIND_TEXT. Errors as tl_lake_states() and tl_lake_find().
 * Free with tl_hit_columns_fini(), also after an error. */
TL_MUST_USE int tl_lake_hit_columns(struct tl_lake *lake, const struct tl_lane_request *request,
                                    const char *text, struct tl_hit_columns *out,
                                    struct tl_fail *fail);
void tl_hit_columns_fini(struct tl_hit_columns *columns);

struct tl_slices_request {
    const char *trace;
    const char *stream;
    enum tl_range_unit axis; /* insn or time, for the range and the result */
    uint64_t from, to;
    uint32_t columns; /* width of the picture, at most 4096; 0: 1024 */
};
struct tl_stack_slice {
    uint64_t from, to; /* on the axis; `to` is clipped to the range */
    uint64_t pc;       /* first address */
    uint32_t depth;
    bool is_exception; /* the handling of an exception, else a function */
    bool interrupt;    /* the exception is an interrupt */
    int32_t exception; /* its number; -1: unknown */
    bool exact;        /* false: `to` is late, by at most the resolution */
    const char *name;  /* name of the function, "" without a symbol */
};
struct tl_slices {
    struct tl_stack_slice *p; /* sorted by depth and begin */
    size_t n;
    uint64_t resolution; /* all slices with more of the range, on the axis, are included */
    bool truncated;      /* shorter slices are omitted */
    struct tl_gen *gen;  /* owns the names */
};
/*
 * Call-stack slices that overlap a range, the 4096 widest on the axis asked. The cost does not
 * depend on the range's length: at most the call stacks of some columns and some hundred chunks are
 * read. Free with tl_slices_fini(), also after an error.
 */
TL_MUST_USE int tl_lake_slices(struct tl_lake *lake, const struct tl_slices_request *request,
                               struct tl_slices *out, struct tl_fail *fail);
void tl_slices_fini(struct tl_slices *slices);

#endif
