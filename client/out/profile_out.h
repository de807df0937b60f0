/* SPDX-License-Identifier: MIT */
/*
 * Profiles in the formats of other tools.
 *
 *   autofdo        text for create_llvm_prof and create_gcov (--profiler=text): runs, addresses
 *                  (none), taken branches, with their counts
 *   llvm-profgen   the same without addresses: llvm-profgen --use-offset=0 --unsymbolized-profile
 *   bolt           pre-aggregated: perf2bolt -pa
 *   perf-branches  taken branches in order: profile_branches.h
 *   folded         call stacks, one per line, for flamegraph.pl
 *   speedscope     call stacks for speedscope.app
 *   pprof          the same, profile.proto, gzip'd
 *   json           in the server's format (docs/http.md), one object per line for each trace
 *
 * Functions return false if memory runs out or the file cannot be written.
 */
#ifndef TL_OUT_PROFILE_OUT_H
#define TL_OUT_PROFILE_OUT_H

#include "tracelake.h"

#include <stdio.h>

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

/* Find a form by name; TL_PROFILE_FORMS: none. */
enum tl_profile_form tl_profile_parse(const char *name);
/* Does the form contain code counts? Otherwise call stacks. */
bool tl_profile_of_code(enum tl_profile_form form);

/* `bias` is subtracted from addresses; those below it, or at or above `end`, are left out. */
struct tl_profile_binary {
    uint64_t bias, end;
    const char *build_id; /* NULL: omitted */
};

bool tl_profile_write_code(enum tl_profile_form form, const struct tracelake_code *code,
                           const struct tl_profile_binary *binary, FILE *file);
/* Neither for the form JSON nor for pprof. */
bool tl_profile_write_stacks(enum tl_profile_form form, const struct tracelake_profile_tree *tree,
                             FILE *file);

/* Write the stacks as profile.proto, packed and gzip'd: profile_pprof.c. `demangle`: the nodes'
 * names are as in the files, and a function gets the demangled one beside its own. */
bool tl_profile_write_pprof(const struct tracelake_profile_tree *tree, bool demangle, FILE *file);

#endif
