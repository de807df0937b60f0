/* SPDX-License-Identifier: MIT */
/*
 * A new generation of a trace: decoded with another setup, or anew with the same. The served one
 * stays until the new one has caught up.
 */
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A generation with the present setup, or with `setup` in its place. TL_AGAIN: `from` is no longer
 * the present one. `*text` is to be freed, also after an error. */
static int new_generation(struct tl_trace *trace, const char *from, const char *setup,
                          struct tl_gen **gen, char **text, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    const bool stale = from && strcmp(from, trace->setup) != 0;
    *text = strdup(setup ? setup : trace->setup);
    const uint64_t number = trace->wanted + 1;
    pthread_mutex_unlock(&trace->lock);
    if (stale)
        return tl_fail_set(fail, TL_AGAIN, "the setup of %s was changed by another; try again",
                           trace->id);
    return *text ? tl_gen_new(gen, trace->lake, trace->id, number, *text, fail)
                 : tl_fail_set(fail, TL_NOMEM, "no memory");
}

/* The generation takes the place of the one being made. Returns 1; 0: another one has come first.
 */
static int take_generation(struct tl_trace *trace, struct tl_gen *gen, char *text,
                           struct tl_gen **old, char **old_setup, struct tl_fail *fail)
{
    if (trace->raw_removed)
        return tl_fail_set(fail, TL_DENIED,
                           "the raw bytes of %s were removed by retention; it cannot be decoded "
                           "anew",
                           trace->id);
    if (trace->wanted + 1 != gen->number)
        return 0;
    *old = trace->making;
    trace->making = gen;
    /* The serving generation keeps its setup until another one has been decoded. */
    if (strcmp(text, trace->setup) != 0 && (!*old || *old == trace->serving)) {
        *old_setup = trace->earlier;
        trace->earlier = trace->setup;
    } else {
        *old_setup = trace->setup;
    }
    trace->setup = text;
    trace->wanted = gen->number;
    trace->message[0] = '\0';
    trace->state = trace->complete ? TL_TRACE_DECODING : TL_TRACE_LIVE;
    snprintf(trace->format, sizeof(trace->format), "%s", gen->setup.format);
    if (*old)
        atomic_store(&(*old)->abandoned, true);
    return 1;
}

/* Returns 1; 0: another one has come first. */
static int redecode(struct tl_trace *trace, const char *from, const char *setup,
                    struct tl_fail *fail)
{
    struct tl_gen *gen = NULL, *old = NULL;
    char *text = NULL, *old_setup = NULL;
    int r = new_generation(trace, from, setup, &gen, &text, fail);
    if (r < 0) {
        free(text);
        return r;
    }
    pthread_mutex_lock(&trace->lock);
    r = take_generation(trace, gen, text, &old, &old_setup, fail);
    const bool given_up = r > 0 && old && old != trace->serving;
    pthread_mutex_unlock(&trace->lock);
    if (r <= 0) {
        tl_gen_put(gen);
        free(text);
        return r;
    }
    free(old_setup);
    r = tl_trace_save(trace, fail);
    /* Only once the catalog is updated: until then a restart continues with it. */
    if (r >= 0 && given_up)
        atomic_store(&old->obsolete, true);
    tl_gen_put(old);
    tl_lake_queue(trace->lake, trace, 0);
    tl_trace_changed(trace);
    return r < 0 ? r : 1;
}

int tl_trace_redecode(struct tl_trace *trace, const char *from, const char *setup,
                      struct tl_fail *fail)
{
    int r;
    while ((r = redecode(trace, from, setup, fail)) == 0)
        ;
    return r < 0 ? r : TL_OK;
}
