/* SPDX-License-Identifier: MIT */
/*
 * Gives names to the contexts in the trace: processes of Intel PT, threads of CoreSight. A context
 * has its last name, which is that of the program it became.
 */
#include "import/perf_parts.h"
#include "perf/map.h"

#include <string.h>

/* Each context has its last name, e.g. that of the last program executed. */
struct names {
    struct tl_perf_map known; /* by ID; index of the setup's context, relative to `first` */
    struct tl_setup *setup;
    size_t first;
    bool is_vmid;
};

static const char *name_of(const struct names *n, int32_t id)
{
    const int64_t at = tl_perf_map_get(&n->known, (uint32_t)id);
    return at < 0 ? NULL : n->setup->contexts[n->first + (size_t)at].name;
}

static int call(struct names *n, int32_t id, const char *name)
{
    const int64_t at = tl_perf_map_get(&n->known, (uint32_t)id);
    const size_t last = n->setup->n_contexts;
    if (id < 0)
        return TL_OK;
    if (at >= 0) {
        tl_setup_context_call(&n->setup->contexts[n->first + (size_t)at], name);
        return TL_OK;
    }
    const int rc = tl_setup_add_context(n->setup, n->is_vmid, (uint32_t)id, name);
    return rc < 0 ? rc : tl_perf_map_set(&n->known, (uint32_t)id, (uint32_t)(last - n->first));
}

/* A child has its parent's name until renamed. */
static int take_fork(struct names *n, int32_t child, int32_t parent)
{
    char name[sizeof n->setup->contexts->name];
    const char *const its = child != parent ? name_of(n, parent) : NULL;
    if (!its)
        return TL_OK;
    memcpy(name, its, sizeof name);
    return call(n, child, name);
}

int tl_perf_import_names(const struct tl_perf_import *im, struct tl_setup *setup)
{
    const bool threads = tl_perf_info_has_threads(&im->info);
    const enum tl_perf_context reported = tl_perf_info_context(&im->info);
    struct names n = {
        .setup = setup, .first = setup->n_contexts, .is_vmid = reported == TL_PERF_CONTEXT_VMID};
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && reported != TL_PERF_CONTEXT_NONE && i < im->n_events; i++) {
        const struct tl_perf_event *const e = &im->events[i];
        if (e->machine)
            continue; /* its numbers are those of the host's other processes */
        if (e->type == TL_PERF_COMM && (threads || e->tid == e->pid))
            rc = call(&n, e->tid, e->comm);
        else if (e->type == TL_PERF_FORK)
            rc = threads ? take_fork(&n, e->tid, e->ptid) : take_fork(&n, e->pid, e->ppid);
    }
    tl_perf_map_fini(&n.known);
    return rc;
}
