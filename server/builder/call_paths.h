/* SPDX-License-Identifier: MIT */
/*
 * Counts of the paths of calls and of their functions in a section of a stream, while it is
 * followed: by instructions (call_counter.h) and in time (call_times.h). Not thread-safe.
 */
#ifndef TL_BUILDER_CALL_PATHS_H
#define TL_BUILDER_CALL_PATHS_H

#include "shard/callindex.h"
#include "shard/calltree.h"
#include "shard/timedrows.h"

/* Counts of a path, for its last function. */
struct tl_call_path {
    uint64_t self, calls;   /* as in struct tl_calltree_node */
    uint64_t time;          /* ticks in the function itself */
    uint64_t reported;      /* ticks of `time` of which the sink of spans knows */
    uint64_t timed_calls;   /* that began where times are known */
    uint32_t callee, child; /* the function most recently called from it, its path; 0: none yet */
    uint32_t round;         /* the last one of tl_call_times in which it ran */
    uint32_t function;      /* its number in index.functions */
};

struct tl_call_paths {
    struct tl_calltree tree;
    struct tl_call_index index;
    struct tl_timed_rows rows;
    struct tl_call_path *known; /* of the tree's paths, whose own counts are not used yet */
    size_t n_known, cap_known;
};

/* Begin with the root, path 0. TL_NOMEM. */
TL_MUST_USE int tl_call_paths_begin(struct tl_call_paths *paths);
void tl_call_paths_fini(struct tl_call_paths *paths);
/* Number of the function in index.functions, added if missing. TL_NOMEM. */
TL_MUST_USE int64_t tl_call_paths_add_function(struct tl_call_paths *paths, uint32_t function);
/* For tl_call_paths_find(). */
TL_MUST_USE int64_t tl_call_paths_search(struct tl_call_paths *paths, uint32_t parent,
                                         uint32_t function);
/* Move the counts of paths into the tree and the index, at the end. TL_NOMEM. */
TL_MUST_USE int tl_call_paths_report(struct tl_call_paths *paths);

/* The path of a call from path `parent`; `parent` itself if the tree is full. TL_NOMEM. */
TL_MUST_USE static inline int64_t tl_call_paths_find(struct tl_call_paths *paths, uint32_t parent,
                                                     uint32_t function)
{
    const struct tl_call_path *const known = &paths->known[parent];
    return known->callee == function && known->child != 0
               ? known->child
               : tl_call_paths_search(paths, parent, function);
}

/* The counts of a path's function. */
static inline struct tl_function_calls *tl_call_paths_function(struct tl_call_paths *paths,
                                                               uint32_t path)
{
    return &paths->index.functions[paths->known[path].function];
}

#endif
