/* SPDX-License-Identifier: MIT */
/*
 * Profiles in the forms that others read.
 *
 *   autofdo        text that create_llvm_prof and create_gcov read (--profiler=text): runs,
 *                  addresses (none), taken branches, with their counts
 *   llvm-profgen   the same without addresses: llvm-profgen --use-offset=0 --unsymbolized-profile
 *   bolt           pre-aggregated: perf2bolt -pa
 *   perf-branches  taken branches in their order: profile_branches.h
 *   folded         call stacks, a line each, as flamegraph.pl reads them
 *   speedscope     call stacks as speedscope.app reads them
 *   pprof          the same, profile.proto, gzip'd
 *   json           the same as the server has it (docs/http.md), an object a line for each trace
 *
 * Functions return false where memory or the file gave out.
 */
#ifndef TL_CLI_PROFILE_OUT_H
#define TL_CLI_PROFILE_OUT_H

#include "tracelake.h"

#include <stdio.h>

struct cJSON;

enum tl_profile_form {
    TL_PROFILE_AUTOFDO,
    TL_PROFILE_LLVM_PROFGEN,
    TL_PROFILE_BOLT,
    TL_PROFILE_BRANCHES,
    TL_PROFILE_FOLDED,
    TL_PROFILE_SPEEDSCOPE,
    TL_PROFILE_PPROF,
    TL_PROFILE_JSON,
    TL_PROFILE_FORMS
};

/* A form by its name; TL_PROFILE_FORMS: there is none. */
enum tl_profile_form tl_profile_parse(const char *name);
/* Is it one of counts of code? Else one of call stacks. */
bool tl_profile_of_code(enum tl_profile_form form);

/* `bias` is taken off addresses; those below it, or from `end` on, are left out. */
struct tl_profile_binary {
    uint64_t bias, end;
    const char *build_id; /* NULL: not told */
};

bool tl_profile_write_code(enum tl_profile_form form, const struct tracelake_code *code,
                           const struct tl_profile_binary *binary, FILE *file);
/* `nodes`: the array of that name of a profile's JSON (docs/http.md). Not of the form JSON. */
bool tl_profile_write_stacks(enum tl_profile_form form, const struct cJSON *nodes, FILE *file);

/* profile.proto of the stacks, packed and gzip'd: profile_pprof.c. */
bool tl_profile_write_pprof(const struct cJSON *nodes, FILE *file);

#endif
