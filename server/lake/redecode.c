/* SPDX-License-Identifier: MIT */
/*
 * A new generation of a trace: decoded with another setup, or anew with the same. The served one
 * stays until the new one has caught up.
 */
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_trace_redecode(struct tl_trace *trace, const char *setup, struct tl_fail *fail)
{
    struct tl_lake *const lake = trace->lake;
    pthread_mutex_lock(&trace->lock);
    char *text = strdup(setup ? setup : trace->setup);
    const uint64_t number = trace->wanted + 1;
    pthread_mutex_unlock(&trace->lock);
    struct tl_gen *gen = NULL;
    int r = text ? tl_gen_new(&gen, lake, trace->id, number, text, fail)
                 : tl_fail_set(fail, TL_NOMEM, "no memory");
    if (r < 0) {
        free(text);
        return r;
    }
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *old = trace->making;
    char *old_setup = NULL;
    if (trace->raw_removed) {
        r = tl_fail_set(fail, TL_DENIED,
                        "the raw bytes of %s were removed by retention; it cannot be decoded anew",
                        trace->id);
    } else if (trace->wanted + 1 != number) {
        r = tl_fail_set(fail, TL_AGAIN, "trace %s is being changed by another; try again",
                        trace->id);
    } else {
        trace->making = gen;
        /* The serving generation keeps its setup until another one has been decoded. */
        if (strcmp(text, trace->setup) != 0 && (!old || old == trace->serving)) {
            old_setup = trace->earlier;
            trace->earlier = trace->setup;
        } else {
            old_setup = trace->setup;
        }
        trace->setup = text;
        trace->wanted = number;
        trace->message[0] = '\0';
        trace->state = trace->complete ? TL_TRACE_DECODING : TL_TRACE_LIVE;
        snprintf(trace->format, sizeof(trace->format), "%s", gen->setup.format);
        if (old)
            atomic_store(&old->abandoned, true);
    }
    const bool given_up = r >= 0 && old && old != trace->serving;
    pthread_mutex_unlock(&trace->lock);
    if (r < 0) {
        tl_gen_put(gen);
        free(text);
    } else {
        free(old_setup);
        r = tl_trace_save(trace, fail);
        /* Only once the catalog is updated: until then a restart continues with it. */
        if (r >= 0 && given_up)
            atomic_store(&old->obsolete, true);
        tl_gen_put(old);
        tl_lake_queue(lake, trace, 0);
        tl_trace_changed(trace);
    }
    return r;
}
