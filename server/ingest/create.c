/* SPDX-License-Identifier: MIT */
/*
 * New traces: their name, first generation, row and entry in the table. Where servers share a store
 * the name is claimed first, so that two rigs never get the same one.
 */
#include "ingest/session.h"
#include "lake/lakeint.h"
#include "lake/mirror.h"
#include "share/share.h"

#include <stdio.h>

int tl_lake_add_trace(struct tl_lake *lake, const char *id, const char *rig, const char *setup,
                      const char *labels, struct tl_trace **out, struct tl_fail *fail)
{
    const int64_t now = tl_lake_now(lake);
    struct tl_catalog_trace row = {.id = id,
                                   .rig = rig,
                                   .format = "",
                                   .setup = setup,
                                   .message = "",
                                   .labels = labels,
                                   .state = TL_TRACE_LIVE,
                                   .created_ns = now,
                                   .updated_ns = now};
    struct tl_trace *trace;
    struct tl_lease *lease = NULL;
    int r = lake->shared ? tl_lake_claim_name(lake, id, &lease, &row.generation, fail)
                         : tl_lake_first_generation(lake, id, &row.generation, fail);
    row.wanted = row.generation;
    if (r >= 0)
        r = tl_trace_make(lake, &row, &trace, fail);
    if (r < 0) {
        if (lease)
            lake->backend->ops->lease_release(lease);
        return r;
    }
    if (lease) {
        trace->lease = lease;
        trace->epoch = row.generation;
    }
    snprintf(trace->format, sizeof(trace->format), "%s", trace->serving->setup.format);
    trace->making = tl_gen_get(trace->serving);
    row.format = trace->format;
    pthread_mutex_lock(&lake->garbage_lock); /* see orphans.c */
    pthread_mutex_lock(&lake->reading); /* nobody reads the row before the trace is in the table */
    r = lake->catalog->ops->add_trace(lake->catalog, &row, fail);
    if (r >= 0) {
        *out = tl_trace_get(trace);
        tl_lake_insert(lake, trace);
    }
    pthread_mutex_unlock(&lake->reading);
    pthread_mutex_unlock(&lake->garbage_lock);
    if (r < 0) {
        tl_trace_put(trace);
        return r;
    }
    tl_trace_mirror(trace);
    return TL_OK;
}
